# SPDX-License-Identifier: Apache-2.0
"""Tells a child process which span it is started under: in that one child's environment, never in `os.environ`.

A child that multiprocessing makes with `spawn` or `forkserver` gets it in the configuration of its own process object,
since it has this process's environment, or the fork server's. A forked one has the span in memory. What goes on after
that span, or for others, is no part of it: workers of a pool are told nothing.
"""

from __future__ import annotations

import os
import sys

from lens_auto.record import rollcall
from lens_auto.record.foreign import foreign
from lens_auto.record.span import current, origin
from lens_auto.record.starter import VARIABLE, parsed, spelled
from lens_auto.wrap.code import AFTER, BEFORE
from lens_auto.wrap.direct import GIVEN
from lens_auto.wrap.seams import Seams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder

SEAMS = {
    'subprocess': (('Popen._execute_child', GIVEN, 'starting'), ('Popen.__init__', AFTER, 'started')),
    'multiprocessing.process': (
        ('BaseProcess.start', BEFORE, 'leaving'),
        ('BaseProcess._bootstrap', BEFORE, 'arriving'),
    ),
}
_ENV = 7  # the place of `env` among the arguments of `_execute_child`, on 3.10 to 3.14
_SHELL, _GIVEN_ENV = 9, 11  # of `shell` and `env` among those of `Popen`
_CONFIG = 'lens_parent'
# Those serve everybody, for as long as they live.
_POOLS = ('concurrent.futures.process', 'multiprocessing.pool')
_RAY = ('/ray/', '/raylet/')


def children(recorder: Recorder, faults: Faults) -> Seams:
    """The seams of the standard library's ways to start a process.

    Args:
        recorder: The process's recorder.
        faults: Its fault count.
    """
    told = {'starting': Starting(recorder), 'started': Started(), 'leaving': Leaving(recorder), 'arriving': Arriving()}
    return Seams('subprocess', SEAMS, told, recorder, faults)


class Starting:
    """`Popen._execute_child(self, args, executable, ..., env, ...)`: a program is started."""

    __slots__ = ('_recorder',)

    def __init__(self, recorder: Recorder):
        """See the class.

        Args:
            recorder: The process's recorder.
        """
        self._recorder = recorder

    def before(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """A program is about to be started; the answer has the environment it gets.

        Args:
            args: The arguments.
        """
        trace_id, span_id = self._recorder.here()
        env: Mapping[Any, Any] | None = args[_ENV]
        if not span_id or _is_rays(args[1]):
            return None
        if env is not None and 'LENS_PLAN_REF' not in env:
            return None  # it takes no part in the run, or nobody knows: its environment is what the program says
        told = {**(os.environ if env is None else env), VARIABLE: spelled(trace_id, span_id)}
        return (*args[:_ENV], told, *args[_ENV + 1 :])


class Started:
    """`Popen(...)`: a program has been started. One of Python's that cannot see us is put on the run's list by us."""

    __slots__ = ()

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """A program has been started.

        Args:
            args: The Popen object and what it was given.
            result: None.
        """
        words, env = args[1], args[_GIVEN_ENV]
        if args[_SHELL] or not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):  # pyright: ignore[reportUnknownVariableType]
            return
        found = _unseen(words, env)  # pyright: ignore[reportUnknownArgumentType]
        spool = os.environ.get('LENS_SPOOL')
        if found and spool:
            try:
                rollcall.note_child(spool, args[0].pid, *found)
            except OSError as error:  # the spool is gone or full: one process less on the list
                if foreign(error):
                    raise


def _unseen(words: Sequence[str], env: Mapping[Any, Any] | None) -> tuple[str, str] | None:
    """Why a Python started like this cannot see us, and what it runs; None for all others."""
    emptied = env is not None and 'LENS_PLAN_REF' not in env
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
                return ('started with an environment without ours', _program(rest)) if emptied else None
    return ('started with an environment without ours', _program(rest)) if emptied else None


def _program(words: Sequence[str]) -> str:
    named = next((word for word in words[1:] if not word.startswith('-')), '')
    return named.rpartition('/')[2] if named.endswith('.py') else 'python'


def _is_rays(args: Any) -> bool:
    """The daemons of a cluster outlive what started it, and all its workers have their environment."""
    first = args if isinstance(args, (str, bytes)) else args[0] if args else ''
    text = os.fsdecode(first) if isinstance(first, (str, bytes)) or hasattr(first, '__fspath__') else ''
    return any(part in text for part in _RAY) or text.rpartition('/')[2] == 'ray' or _runs_ray(args)


def _runs_ray(args: Any) -> bool:
    if not isinstance(args, (list, tuple)):
        return False
    return any(isinstance(word, str) and any(part in word for part in _RAY) for word in args[1:8])  # pyright: ignore[reportUnknownVariableType]


class Leaving:
    """`BaseProcess.start(self)`: a process of multiprocessing is started."""

    __slots__ = ('_recorder',)

    def __init__(self, recorder: Recorder):
        """See the class.

        Args:
            recorder: The process's recorder.
        """
        self._recorder = recorder

    def before(self, args: tuple[Any, ...]) -> None:
        """Put the current span into what the child gets.

        Args:
            args: The process object.
        """
        process = args[0]
        trace_id, span_id = self._recorder.here()
        if span_id and not _serves_a_pool(process):
            process._config[_CONFIG] = spelled(trace_id, span_id)
        else:
            process._config.pop(_CONFIG, None)  # copied from this process's own


class Arriving:
    """`BaseProcess._bootstrap(self, ...)`: the first thing a child does, if this process was there before it."""

    __slots__ = ()

    def before(self, args: tuple[Any, ...]) -> None:
        """A child begins.

        Args:
            args: The process object, and the rest.
        """
        if _serves_a_pool(args[0]):
            current.set(None)
            origin.set(None)


def of_multiprocessing() -> tuple[bytes, bytes] | None:
    """The span that the process object of this child names, or None."""
    module: Any = sys.modules.get('multiprocessing.process')
    ask = None if module is None else getattr(module, 'current_process', None)
    config: Any = None if ask is None else getattr(ask(), '_config', None)
    text = config.get(_CONFIG) if config else None
    return parsed(text) if text else None


def _serves_a_pool(process: Any) -> bool:
    return getattr(getattr(process, '_target', None), '__module__', '') in _POOLS
