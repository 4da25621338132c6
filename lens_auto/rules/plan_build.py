# SPDX-License-Identifier: Apache-2.0
"""The cold half of the plan cache: read every rule file and compile them. Needs YAML, so it is imported only then."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from . import document, entry_points
from .compile import compile_files
from .errors import RuleError, RuleErrors
from .finding import LOCAL_NAME, Sources
from .model import RuleFile
from .validate import read_file, shown_path

# A file system tells two writes apart when they are this far from each other (ext4 stamps with the kernel's tick).
_TICK_NS = 20_000_000


class Built:
    """A compiled plan and what went into it.

    Attributes:
        plan: The plan.
        files: Path, framework, package of `when` and origin of each file, in the plan's order.
        read: Everything else that was read, besides the files.
        ignored: What the user has to be told of files that were found and are no rule files, a line each.
    """

    __slots__ = ('files', 'ignored', 'plan', 'read')

    def __init__(
        self,
        plan: dict[str, Any],
        files: tuple[tuple[str, str, str | None, str], ...],
        read: tuple[str, ...],
        ignored: tuple[str, ...],
    ) -> None:
        self.plan = plan
        self.files = files
        self.read = read
        self.ignored = ignored


def build(sources: Sources, agent: str) -> Built:
    """Compile the rule files of `sources`.

    Args:
        sources: From `finding.sources`.
        agent: The agent's version.

    Raises:
        RuleErrors: All faults of all files.
    """
    errors: list[RuleError] = []
    installed: list[tuple[str, str, str]] = []
    try:
        installed += entry_points.files(sources.scan)
    except RuleErrors as error:
        errors += error.errors
    named = dict(sources.first)
    for path, origin in (*((path, origin) for path, origin, _ in installed), *sources.last):
        named.setdefault(path, origin)
    models: list[RuleFile] = []
    origins: list[str] = []
    ignored: list[str] = []
    for path, origin in named.items():
        _settle(path)
        try:
            if origin == LOCAL_NAME and _is_something_else(path):
                ignored.append(f'{shown_path(path)} is no rule file (it has no `framework` and no `rules`): ignored')
                continue
            models.append(read_file(path, origin))
            origins.append(origin)
        except RuleErrors as error:
            errors += error.errors
    if errors:
        raise RuleErrors(errors)
    files = tuple(
        (model.path, model.framework, model.when.module if model.when else None, origin)
        for model, origin in zip(models, origins, strict=True)
    )
    read = tuple(metadata for _, _, metadata in installed)
    return Built(compile_files(models, agent), files, read, tuple(ignored))


def _is_something_else(path: str) -> bool:
    """Whether a file that nobody named is another tool's that happens to have this name.

    Raises:
        RuleErrors: It cannot be read.
    """
    text = document.read(path, shown_path(path), LOCAL_NAME)
    try:
        root = document.parse(text, path)
    except RuleErrors:
        # A slip in a rule file is told as one.
        return not re.search(r'^["\']?(framework|rules)["\']?\s*:', text, re.MULTILINE)
    return root.get('framework') is None and root.get('rules') is None


def _settle(path: str) -> None:
    """Wait out the tick of a file that has just been written: a further write in it would leave the same stamp."""
    try:
        age = time.time_ns() - os.stat(path).st_mtime_ns
    except OSError:
        return
    if 0 <= age < _TICK_NS:
        time.sleep((_TICK_NS - age) / 1e9)
