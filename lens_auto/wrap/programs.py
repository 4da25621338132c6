# SPDX-License-Identifier: Apache-2.0
"""Tells a program that is started which span it is started under: in that one program's environment.

`os.system` has no environment to give and is left alone: to change that of this process for as long as its command runs
would tell whatever other threads start meanwhile.
"""

from __future__ import annotations

import os

from lens_auto.record.format import EXEC
from lens_auto.record.starter import VARIABLE, spelled
from lens_auto.wrap.unreached import names, note, takes_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lens_auto.record.recorder import Recorder

_ENV = 7  # the place of `env` among the arguments of `_execute_child`, on 3.10 to 3.14
_SHELL, _GIVEN_ENV = 9, 11  # of `shell` and `env` among those of `Popen`
_PARAMETERS = ('path', 'argv', 'env')  # of `execve`, which takes them by name too
_RAY = ('/ray/', '/raylet/')


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
        told = with_parent(env, trace_id, span_id)
        return None if told is None else (*args[:_ENV], told, *args[_ENV + 1 :])


class Started:
    """`Popen(...)`: a program has been started. One of Python's that cannot see us is put on the run's list by us."""

    __slots__ = ('_spawning',)

    def __init__(self, spawning: Spawning):
        """See the class.

        Args:
            spawning: Knows what has been started by way of `os.posix_spawn`, as some are.
        """
        self._spawning = spawning

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """A program has been started.

        Args:
            args: The Popen object and what it was given.
            result: None.
        """
        if not args[_SHELL] and args[0].pid != self._spawning.last:
            note(args[0].pid, args[1], args[_GIVEN_ENV])


def _is_rays(args: Any) -> bool:
    """The daemons of a cluster outlive what started it, and all its workers have their environment."""
    first = args if isinstance(args, (str, bytes)) else args[0] if args else ''
    text = os.fsdecode(first) if isinstance(first, (str, bytes)) or hasattr(first, '__fspath__') else ''
    return any(part in text for part in _RAY) or text.rpartition('/')[2] == 'ray' or _runs_ray(args)


def _runs_ray(args: Any) -> bool:
    if not isinstance(args, (list, tuple)):
        return False
    return any(isinstance(word, str) and any(part in word for part in _RAY) for word in args[1:8])  # pyright: ignore[reportUnknownVariableType]


class Spawning:
    """`posix_spawn(path, argv, env, ...)` and `posix_spawnp`: a program is started, in an environment of its own.

    Attributes:
        last: The process that was started last.
    """

    __slots__ = ('_recorder', 'last')

    def __init__(self, recorder: Recorder):
        """See the class.

        Args:
            recorder: The process's recorder.
        """
        self._recorder = recorder
        self.last = 0

    def before(self, call: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> Any:
        """A program is about to be started.

        Args:
            call: The function, its arguments and keywords.

        Returns:
            The same with the environment that it gets, or None.
        """
        function, args, keywords = call
        trace_id, span_id = self._recorder.here()
        if not span_id or len(args) != 3 or not _is_env(args[2]) or names(args[2] or (), VARIABLE) or _is_rays(args[1]):
            return None
        told = with_parent(args[2], trace_id, span_id)
        return None if told is None else (function, (*args[:2], told), keywords)

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """It has been started; or it could not be.

        Args:
            args: What the function was given.
            result: Its process id; None if it could not.
        """
        if result is not None:
            self.last = result
            note(result, args[1], args[2])


class Becoming:
    """`execv(path, argv)`, `execve(path, argv, env)`: this process goes on as another program.

    All of `os.exec*` and `os.spawn*` end there: those of `spawn` in a child that they have forked.
    """

    __slots__ = ('_recorder', '_told')

    def __init__(self, recorder: Recorder):
        """See the class.

        Args:
            recorder: The process's recorder.
        """
        self._recorder = recorder
        self._told = False

    def before(self, call: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> Any:
        """It is about to, unless there is no such program.

        Args:
            call: The function, its arguments and keywords.

        Returns:
            A function to call in its place with the environment the program gets, or None.
        """
        _, args, keywords = call
        path, words, env = (*args, *(keywords.get(name) for name in _PARAMETERS[len(args) :]))[:3]
        if len(args) + len(keywords) not in (2, 3) or not _is_env(env) or not _is_program(path):
            return None
        note(os.getpid(), words, env)
        if self._recorder.journal.begun:
            self._told = True
            self._recorder.report(EXEC, {})
        trace_id, span_id = self._recorder.here()
        told = None
        if span_id and not names(env or (), VARIABLE) and not _is_rays(words):
            told = with_parent(env, trace_id, span_id)
        return None if told is None else (_execve(), (path, words, told), {})

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """It could not.

        Args:
            args: What the function was given.
            result: None.
        """
        if self._told:
            self._told = False
            self._recorder.report(EXEC, {'failed': True})


def _execve() -> Any:
    return getattr(os.execve, '_original', os.execve)


def _is_env(env: Any) -> bool:
    return env is None or hasattr(env, 'keys')


def _is_program(path: Any) -> bool:
    """False while a search along PATH has not found it yet."""
    return isinstance(path, int) or (
        (isinstance(path, (str, bytes)) or hasattr(path, '__fspath__')) and os.access(path, os.X_OK)
    )


def with_parent(env: Any, trace_id: bytes, span_id: bytes) -> dict[Any, Any] | None:
    """The environment of a program that is started under a span.

    Args:
        env: The one it is given; None for this process's own.
        trace_id: The span's trace field.
        span_id: Its id.

    Returns:
        None where it stays what the program says: it takes no part in the run, or nobody knows.
    """
    if not takes_part(env):
        return None
    return {**(os.environ if env is None else env), VARIABLE: spelled(trace_id, span_id)}
