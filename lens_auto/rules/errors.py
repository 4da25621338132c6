# SPDX-License-Identifier: Apache-2.0
"""What a wrong rule file tells its author: the place, the fault, the way out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class RuleError(NamedTuple):
    """One fault of a rule file.

    Attributes:
        path: The file as its reader will recognise it, or the name of an entry point.
        line: Counted from 1; 0 where there is no file to point into.
        column: Counted from 1.
        message: The fault.
        hints: What to do about it, a line each.
    """

    path: str
    line: int
    column: int
    message: str
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f'{self.path}:{self.line}:{self.column}' if self.line else self.path
        return '\n    '.join((f'{place}  {self.message}', *self.hints))


class RuleErrors(Exception):
    """Rule files cannot be used. Holds every fault found, in reading order; `str()` of it is the text to show."""

    def __init__(self, errors: Sequence[RuleError]) -> None:
        super().__init__('\n'.join(str(error) for error in errors))
        self.errors = tuple(errors)


def closest(word: str, known: Iterable[str]) -> str:
    """The known name that looks most like `word`, or an empty string."""
    # Imported where something is wrong: right files are to compile fast.
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, sorted(known), 1)), '')


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean ...?` for the known name that looks most like `word`, or an empty string."""
    found = closest(word, known)
    return f'did you mean `{found}`?' if found else ''


def suggestion(word: str, known: Iterable[str], title: str) -> str:
    """The one hint for a wrong name: the nearest right one, then all that are right."""
    names = sorted(known)
    return '  '.join(filter(None, (nearest(word, names), f'{title}: {", ".join(names)}')))
