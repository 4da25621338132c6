# SPDX-License-Identifier: Apache-2.0
"""Takes our frames out of the traceback of an exception that leaves a function of the program.

The program logs tracebacks, Ray sends their text to the driver, tools compare them: they name the program's frames, as
without us. From Python 3.11 on a bare `raise` goes on with the traceback that the exception has by then; in 3.10 it
puts the old one back, so there the frame of the code around the function stays, at the function's `def` line.
"""

from __future__ import annotations

import sys

from lens_auto.record.standard import CodeType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType
    from typing import Any

_HEAD_GOES = sys.version_info >= (3, 11)


def unseen(frame: FrameType, passing: tuple[CodeType, ...] = ()) -> None:
    """Take the frame of our code out of the traceback of the exception it handles, if the original raised it.

    Args:
        frame: That of the code around a function, in an `except` clause that ends with a bare `raise`.
        passing: Code of ours that may be between it and the original.
    """
    _, error, trace = sys.exc_info()
    if error is None or trace is None or trace.tb_frame is not frame:
        return
    inner: TracebackType | None = trace.tb_next
    while inner is not None and inner.tb_frame.f_code in passing:
        inner = inner.tb_next
    if inner is None or not any(code is inner.tb_frame.f_code for code in _originals(frame.f_code)):
        return
    if _HEAD_GOES:
        # Not by assignment: the class of the exception may forbid that.
        BaseException.with_traceback(error, inner)
    else:
        trace.tb_next = inner


def unseen_here() -> None:
    """See `unseen`; for the frame that calls this."""
    unseen(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]


def _originals(code: CodeType) -> Iterator[CodeType]:
    """What our code is around; where that is code of ours for another rule, what this is around as well."""
    while True:
        found: Any = next((const for const in code.co_consts if isinstance(const, CodeType)), None)
        if found is None:
            # As an object, see `direct`.
            functions: Any = (getattr(const, '__code__', None) for const in code.co_consts)
            found = next((inner for inner in functions if isinstance(inner, CodeType)), None)
        if found is None:
            return
        yield found
        if '_lens_g' not in found.co_varnames:
            return
        code = found
