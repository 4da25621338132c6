# SPDX-License-Identifier: Apache-2.0
"""What `yield from` runs inside a place of rewritten source: its iterator, out of the span at each yield."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

_HEAD_GOES = sys.version_info >= (3, 11)  # see `unseen`


class Delegated:
    """An iterator in front of another, with the `send`, `throw` and `close` that `yield from` calls."""

    __slots__ = ('_begun', '_iterator', '_rest', '_step')

    def __init__(self, rest: Callable[[], Any], step: Callable[[], Any], iterator: Any):
        """See the class.

        Args:
            rest: Called before a value is yielded.
            step: Called when the code goes on.
            iterator: The iterator.
        """
        self._rest = rest
        self._step = step
        self._iterator = iterator
        self._begun = False

    def __iter__(self) -> Delegated:
        return self

    def __next__(self) -> Any:
        self._go_on()
        try:
            value = next(self._iterator)
        except:
            unseen()
            raise
        self._rest()
        return value

    def send(self, value: Any) -> Any:
        """See `generator.send`."""
        self._go_on()
        try:
            found = self._iterator.send(value)
        except:
            unseen()
            raise
        self._rest()
        return found

    def throw(self, kind: Any, value: BaseException | None = None, trace: TracebackType | None = None) -> Any:
        """See `generator.throw`; `yield from` passes one argument or three, depending on the Python version."""
        self._go_on()
        try:
            throw: Any = getattr(self._iterator, 'throw', None)
            if throw is None:
                raise _exception(kind, value, trace)
            found = throw(kind) if value is None and trace is None else throw(kind, value, trace)
        except:
            unseen()
            raise
        self._rest()
        return found

    def close(self) -> None:
        """See `generator.close`."""
        self._go_on()
        try:
            close: Any = getattr(self._iterator, 'close', None)
            if close is not None:
                close()
        except:
            unseen()
            raise

    def _go_on(self) -> None:
        if self._begun:
            self._step()
        self._begun = True


def _exception(kind: Any, value: BaseException | None, trace: TracebackType | None) -> BaseException:
    error: Any = value if isinstance(value, BaseException) else kind
    if isinstance(error, type):
        error = error() if value is None else error(value)
    return error if trace is None else error.with_traceback(trace)


def unseen() -> None:
    """Take the frame that calls this, from an `except` clause, out of the traceback of the exception."""
    _, error, trace = sys.exc_info()
    if _HEAD_GOES and error is not None and trace is not None:
        if trace.tb_frame is sys._getframe(1):  # pyright: ignore[reportPrivateUsage]
            BaseException.with_traceback(error, trace.tb_next)
