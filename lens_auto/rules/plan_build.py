# SPDX-License-Identifier: Apache-2.0
"""The cold half of the plan cache: read every rule file and compile it. YAML is imported for files not compiled yet."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from . import entry_points, precompiled
from .errors import RuleError, RuleErrors
from .finding import BUILT_IN, LOCAL_NAME, Sources
from .merging import merge

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
    plans: list[dict[str, Any]] = []
    origins: list[str] = []
    ignored: list[str] = []
    for path, origin in named.items():
        _settle(path)
        try:
            if origin == LOCAL_NAME and _is_something_else(path):
                ignored.append(f'{_shown(path)} is no rule file (it has no `framework` and no `rules`): ignored')
                continue
            known = precompiled.load(path) if origin == BUILT_IN else None
            plans.append(known or _compiled(path, origin))
            origins.append(origin)
        except RuleErrors as error:
            errors += error.errors
    if errors:
        raise RuleErrors(errors)
    files = tuple(
        (file['path'], file['framework'], file['when']['module'] if file['when'] else None, origin)
        for file, origin in zip([plan['files'][0] for plan in plans], origins, strict=True)
    )
    read = tuple(metadata for _, _, metadata in installed)
    return Built(merge(plans, agent), files, read, tuple(ignored))


def _compiled(path: str, origin: str) -> dict[str, Any]:
    from .compile import compile_file
    from .validate import read_file

    return compile_file(read_file(path, origin))


def _shown(path: str) -> str:
    from .validate import shown_path

    return shown_path(path)


def _is_something_else(path: str) -> bool:
    """Whether a file that nobody named is another tool's that happens to have this name.

    Raises:
        RuleErrors: It cannot be read.
    """
    from . import document

    text = document.read(path, _shown(path), LOCAL_NAME)
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
