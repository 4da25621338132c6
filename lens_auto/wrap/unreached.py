# SPDX-License-Identifier: Apache-2.0
"""Pythons that cannot see us, by how they are started: their parent puts them on the run's list of processes."""

from __future__ import annotations

import os

from lens_auto.record import rollcall
from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_PLAN = 'LENS_PLAN_REF'
_EMPTIED = 'started with an environment without ours'


def takes_part(env: Any) -> bool:
    """Whether an environment is one of the run's, as far as one can tell: the program may have put it together itself.

    Args:
        env: A mapping; None for this process's own.
    """
    return env is None or names(env, _PLAN)


def names(env: Any, variable: str) -> bool:
    """Whether an environment has a variable. Not by `in`: `os.environ` and `os.environb` take one kind of text each.

    Args:
        env: A mapping.
        variable: Its name.
    """
    return any(name in (variable, variable.encode()) for name in env)


def note(pid: int, words: Any, env: Mapping[Any, Any] | None) -> None:
    """Put a process on the run's list if it runs a Python that cannot do so itself.

    Args:
        pid: The process.
        words: Its program and arguments; anything but a list of texts is passed over.
        env: Its environment; None for this process's own.
    """
    given: list[Any] = list(words) if type(words) in (list, tuple) else []
    if not all(isinstance(word, (str, bytes)) or hasattr(word, '__fspath__') for word in given):
        return
    found = why([os.fsdecode(word) for word in given], env)
    spool = os.environ.get('LENS_SPOOL')
    if found and spool:
        try:
            rollcall.note_child(spool, pid, *found)
        except OSError as error:  # the spool is gone or full: one process less on the list
            if foreign(error):
                raise


def why(words: Sequence[str], env: Mapping[Any, Any] | None) -> tuple[str, str] | None:
    """Why a Python started like this cannot see us, and what it runs; None for all others.

    Args:
        words: Program and arguments.
        env: See `note`.
    """
    emptied = not takes_part(env)
    rest = list(words)
    if rest and rest[0].rpartition('/')[2] == 'env':
        rest.pop(0)
        while rest and (rest[0].startswith('-') or '=' in rest[0]):
            emptied |= rest.pop(0) in ('-', '-i', '--ignore-environment')
    if not rest or not rest[0].rpartition('/')[2].startswith('python'):
        return None
    for word in rest[1:]:
        if not word.startswith('-') or word.startswith('--') or word == '-':
            break
        for letter in word[1:]:
            if letter in 'IES':
                return f'started with -{letter}', _program(rest)
            if letter in 'mcWX':
                return (_EMPTIED, _program(rest)) if emptied else None
    return (_EMPTIED, _program(rest)) if emptied else None


def _program(words: Sequence[str]) -> str:
    named = next((word for word in words[1:] if not word.startswith('-')), '')
    return named.rpartition('/')[2] if named.endswith('.py') else 'python'
