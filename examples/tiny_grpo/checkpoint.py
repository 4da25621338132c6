# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that are either whole or not there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import torch
from torch import Tensor


class CheckpointManager:
    """Keeps the newest `keep` checkpoints under one folder, as `step_<n>/`."""

    def __init__(self, folder: str, keep: int = 2) -> None:
        self._folder = Path(folder)
        self._keep = keep
        self._saved: list[Path] = []

    def save(self, step: int, weights: dict[str, Tensor]) -> Path:
        """Write `step_<step>/policy.pt`; returns the folder.

        Written beside its place and renamed into it, so a run killed half-way leaves no half checkpoint.
        """
        final = self._folder / f'step_{step}'
        draft = self._folder / f'tmp_step_{step}'
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        torch.save(weights, draft / 'policy.pt')
        shutil.rmtree(final, ignore_errors=True)
        os.replace(draft, final)

        self._saved = [path for path in self._saved if path != final] + [final]
        while len(self._saved) > self._keep:
            shutil.rmtree(self._saved.pop(0), ignore_errors=True)
        return final
