# SPDX-License-Identifier: Apache-2.0
"""What a rewritten call calls in place of its function: the function, in a span.

Whatever the function finds out about its caller (`warnings`, `logging`, `namedtuple` and `Enum` look one frame up), it
finds the caller's module, file, name and line: our frame in between has them, too. Only its locals are ours.
"""

from __future__ import annotations

import sys

from lens_auto.record.standard import FunctionType
from lens_auto.wrap.code import one_line
from lens_auto.wrap.delegated import unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from lens_auto.record.span import Span


class StandIns:
    """Makes them, for sync and for awaited calls."""

    __slots__ = ('_codes', '_enter', '_fail', '_leave')

    def __init__(
        self,
        enter: Callable[..., Span | None],
        leave: Callable[[Span, Any], None],
        fail: Callable[[Span], None],
    ):
        """See the class.

        Args:
            enter: Opens a span by key.
            leave: Ends it with a result.
            fail: Ends it with the exception at hand.
        """
        self._enter = enter
        self._leave = leave
        self._fail = fail
        self._codes: dict[bytes, CodeType] = {}

    def call(self, key: bytes, function: Any, frame: FrameType) -> Any:
        """For a call.

        Args:
            key: The place's.
            function: What is called there.
            frame: Of the caller.
        """
        return self._of(_called(self._enter, self._leave, self._fail, unseen, key, function), key, frame)

    def wait(self, key: bytes, function: Any, frame: FrameType) -> Any:
        """For a call that an `await` waits for.

        Args:
            key: The place's.
            function: What is called there.
            frame: Of the caller.
        """
        return self._of(_awaited(self._enter, self._leave, self._fail, unseen, key, function), key, frame)

    def _of(self, function: Any, key: bytes, frame: FrameType) -> Any:
        code = self._codes.get(key)
        if code is None or code.co_filename != frame.f_code.co_filename:
            ours, theirs = function.__code__, frame.f_code
            changes: dict[str, Any] = {
                'co_name': theirs.co_name,
                'co_filename': theirs.co_filename,
                'co_firstlineno': frame.f_lineno or theirs.co_firstlineno,
                'co_linetable': one_line(len(ours.co_code)),
            }
            if sys.version_info >= (3, 11):
                changes['co_qualname'] = theirs.co_qualname
            code = self._codes[key] = ours.replace(**changes)
        return FunctionType(code, frame.f_globals, code.co_name, None, function.__closure__)


# No name in these but their own and those of the function that makes them: their globals are the program's.
def _called(
    enter: Callable[..., Span | None],
    leave: Callable[[Span, Any], None],
    fail: Callable[[Span], None],
    unseen: Callable[[], None],
    key: bytes,
    function: Any,
) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        span = enter(key, ())
        try:
            result = function(*args, **kwargs)
        except:
            if span is not None:
                fail(span)
            unseen()
            raise
        if span is not None:
            leave(span, result)
        return result

    return call


def _awaited(
    enter: Callable[..., Span | None],
    leave: Callable[[Span, Any], None],
    fail: Callable[[Span], None],
    unseen: Callable[[], None],
    key: bytes,
    function: Any,
) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        span = enter(key, ())
        try:
            result = await function(*args, **kwargs)
        except:
            if span is not None:
                fail(span)
            unseen()
            raise
        if span is not None:
            leave(span, result)
        return result

    return call
