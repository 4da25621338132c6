# SPDX-License-Identifier: Apache-2.0
"""Reads a config with what it inherits from, and what the command line says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml


class BaseModel:
    """Keeps what it is given, known or not, as NeMo-RL's pydantic classes do."""

    def __init__(self, /, **data: Any) -> None:
        for name, value in data.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Section(BaseModel):
    """A part of a config that is read by attribute."""


def load_config(config_path: str | Path) -> dict[str, Any]:
    """The config of a file, over those that its `defaults:` name."""
    path = Path(config_path)
    own = yaml.safe_load(path.read_text()) or {}
    parents = own.pop('defaults', [])
    merged: dict[str, Any] = {}
    for parent in [parents] if isinstance(parents, str) else parents:
        merged = _merge(merged, load_config(path.parent / parent))
    return _merge(merged, own)


def parse_hydra_overrides(cfg: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The config with `a.b=value`, or `++a.b=value` for keys it does not have."""
    for override in overrides:
        path, _, value = override.partition('=')
        *parents, last = path.lstrip('+').split('.')
        place = cfg
        for name in parents:
            if name not in place and not path.startswith('++'):
                raise KeyError(path)
            place = place.setdefault(name, {})
        place[last] = yaml.safe_load(value)
    return cfg


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merge(merged[name], value) if both else value
    return merged
