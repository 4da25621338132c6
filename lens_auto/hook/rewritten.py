# SPDX-License-Identifier: Apache-2.0
"""The slow half of `sources`: parses and changes a module's source. Loaded where the cache does not have the code."""

from __future__ import annotations

import sys

from lens_auto.hook.shown import BOUND
from lens_auto.rewrite.bound import mark
from lens_auto.rewrite.edit import rewrite
from lens_auto.rewrite.pattern import parse
from lens_auto.rewrite.places import Wanted as Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import Module
    from types import CodeType
    from typing import Any

    from lens_auto.hook.wanted import Wanted

    Kept = tuple[CodeType, tuple[list[tuple[int, str]], tuple[str, ...]]]


def make(source: bytes, path: str, edits: list[Wanted], names: tuple[str, ...], main: bool) -> tuple[Kept, bool]:
    """The code of a module as rules change it.

    Args:
        source: Its source.
        path: Its file.
        edits: What the rules name in it.
        names: The names whose binding its code is to tell of.
        main: It runs as `__main__`, and nobody but us caches its code.

    Returns:
        The code; for each of `edits` the places changed, and why none was; the names it does bind. And whether that
        may be kept: not of a script whose compilation warns, which it does at every start.

    Raises:
        SyntaxError, ValueError, RecursionError: The source has no code.
    """
    lasting = not main or _is_silent(source, path)
    # Of alternatives within one module the first that is there counts.
    alternatives: dict[str, list[int]] = {}
    for at, wanted in enumerate(edits):
        alternatives.setdefault(wanted.rule['key'], []).append(at)
    outcomes = [(0, '')] * len(edits)
    bound: list[str] = []

    def marked(tree: Module) -> None:
        bound[:] = mark(tree, names, BOUND)

    while True:
        order = [waiting[0] for waiting in alternatives.values()]
        done = rewrite(source, path, [_place(edits[at]) for at in order], also=marked if names else None)
        again = False
        for waiting, found in zip(alternatives.values(), done.found, strict=True):
            outcomes[waiting[0]] = (len(found.places), found.problem)
            if found.problem and len(waiting) > 1:
                del waiting[0]
                again = True
        if not again:
            return (done.code, (outcomes, tuple(bound))), lasting


def _place(wanted: Wanted) -> Place:
    rule = wanted.rule
    if not wanted.is_place:
        return Place(rule['key'], 'function', wanted.qualname, None, (1, 1), rule['force'])
    pattern = parse(rule['kind'], rule['match'])
    return Place(rule['key'], rule['kind'], wanted.qualname, pattern, rule['expect'], rule['force'])


def _is_silent(source: bytes, path: str) -> bool:
    """Whether the interpreter compiles a source without a warning."""
    filters: list[Any] = sys.modules['_warnings'].__dict__['filters']
    changed: Any = sys.modules['_warnings'].__dict__['_filters_mutated']
    strict = ('error', None, Warning, None, 0)
    filters.insert(0, strict)
    changed()
    try:
        compile(source, path, 'exec', dont_inherit=True)
    except SyntaxError:
        return False
    finally:
        filters.remove(strict)
        changed()
    return True
