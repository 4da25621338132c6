# SPDX-License-Identifier: Apache-2.0
"""Whose an exception is that surfaced inside our code: ours to swallow, or the program's on its way to it.

A signal handler of the program runs wherever Python happens to be, so also between two lines of ours, and what it
raises (a TimeoutError that shall end a call) starts there. The same goes for an exception that one thread injects into
another. Every clause of ours that catches and goes on asks here first.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import CodeType, FrameType
    from typing import Any
else:
    import _signal  # what is behind the module signal: built in

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_READING = os.path.join(HOME, 'wrap', 'expression.py')
_STANDARD = os.path.dirname(os.__file__) + os.sep
# Packages whose exceptions C code raises straight into a frame of ours while it reads a value of theirs.
_ARRAYS = ('torch', 'numpy', 'jax', 'jaxlib')
# Of the standard library only these have exceptions that a program would inject and that nothing we call raises.
_INJECTED = ('asyncio', 'concurrent')
_VARARGS = 0x4


def foreign(error: BaseException) -> bool:
    """True when an exception is the program's: raised by a signal handler, or injected, while our code ran.

    A builtin exception that was injected cannot be told from one of ours, and is not.

    Args:
        error: Caught inside our code, with its traceback.
    """
    try:
        return _foreign(error)
    except Exception as second:  # at the end of the stack, or a signal handler strikes just here
        try:
            interrupted = _foreign(second)
        except Exception:
            return False
        if interrupted:
            raise
        return False


def _foreign(error: BaseException) -> bool:
    frames: list[FrameType] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    if not frames:
        return False
    last = len(frames) - 1
    while last >= 0 and not frames[last].f_code.co_filename.startswith(HOME):
        last -= 1
    if last < len(frames) - 1 and _handled(frames[1:]):
        return True
    return _inside(frames, last) and _injected(type(error))


def _handled(frames: list[FrameType]) -> bool:
    """True when one of the frames is a signal handler's: by its code, or by what it was called with."""
    codes = {code for number in _signal.valid_signals() for code in _codes(_handler(number), 4)}
    return any(frame.f_code in codes or _called_by_signal(frame) for frame in frames)


def _handler(number: int) -> Any:
    try:
        return _signal.getsignal(number)
    except (OSError, ValueError):
        return None


def _codes(handler: Any, depth: int) -> list[CodeType]:
    """The code that calling a handler runs: through partials, bound methods, decorators and callable objects."""
    if handler is None or isinstance(handler, int) or not depth:
        return []
    code = getattr(handler, '__code__', None)
    if code is not None:
        return [code]
    found: list[CodeType] = []
    for name in ('__func__', 'func', '__wrapped__'):
        inner = getattr(handler, name, None)
        if inner is not None:
            found += _codes(inner, depth - 1)
    kind: type[Any] = type(handler)  # pyright: ignore[reportUnknownVariableType]
    if issubclass(kind, type):
        found += _codes(getattr(handler, '__init__', None), depth - 1)
    elif not found:
        found += _codes(getattr(kind, '__call__', None), depth - 1)  # noqa: B004
    return found


def _called_by_signal(frame: FrameType) -> bool:
    """A handler that has uninstalled itself: Python called it with a number and the very frame that it interrupted."""
    code = frame.f_code
    if frame.f_back is None or frame.f_code.co_filename.startswith(HOME):
        return False
    names = code.co_varnames[: code.co_argcount]
    given = [frame.f_locals.get(name) for name in names]
    if code.co_flags & _VARARGS:
        rest = frame.f_locals.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        given += rest if isinstance(rest, tuple) else ()
    return any(isinstance(given[at - 1], int) and given[at] is frame.f_back for at in range(1, len(given)))


def _inside(frames: list[FrameType], last: int) -> bool:
    """True when the exception began in our code, or in the standard library's that we had called."""
    if last < 0:
        return all(_frozen(frame) for frame in frames)
    if frames[last].f_code.co_filename == _READING:
        return last == len(frames) - 1  # what reading calls is the program's
    return all(
        _frozen(frame)
        or (
            frame.f_code.co_filename.startswith(_STANDARD)
            and not frame.f_code.co_filename.startswith(os.path.join(_STANDARD, 'site-packages'))
        )
        for frame in frames[last + 1 :]
    )


def _frozen(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith('<frozen ')


def _injected(kind: type[BaseException]) -> bool:
    """True for a class that neither we nor what we call could have raised."""
    root = kind.__module__.partition('.')[0]
    if root in ('builtins', 'lens_auto') or root in _ARRAYS:
        return False
    if root in sys.stdlib_module_names:
        return root in _INJECTED or root == '__main__'
    source = getattr(sys.modules.get(kind.__module__), '__file__', None)
    return source is None or source.endswith(('.py', '.pyc'))
