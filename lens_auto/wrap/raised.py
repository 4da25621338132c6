# SPDX-License-Identifier: Apache-2.0
"""Ends a span with the exception that leaves its call; told once, by the innermost span that it ends."""

from __future__ import annotations

from lens_auto.record.recorder import exception_event, is_error, status_of
from lens_auto.record.span import ENDED_ALREADY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span


def close_with(recorder: Recorder, span: Span, error: BaseException, end: int, key: str) -> None:
    """Store the end of a span whose call raised.

    Args:
        recorder: The process's recorder.
        span: The span, no longer current.
        error: What leaves its call.
        end: CLOCK_MONOTONIC nanoseconds.
        key: Rule key.
    """
    if not is_error(error) or span.epoch == ENDED_ALREADY:
        # (Of one that has ended already, what ended it told the exception, or left that to the span around it.)
        recorder.close(span, end, key, status_of(error))
        return
    event = exception_event(error, end)
    # With its place: a later exception of the program may have the address of one that is gone.
    raised = (id(error), event[2])
    if span.raised != raised:
        span.events = [*(span.events or ()), event]
    recorder.close(span, end, key, status_of(error))
    if span.up is not None:
        # On its way out it passes the enclosing spans: they get the status, not the event again. Only now that it is
        # stored: they tell it when this span could not.
        span.up.raised = raised
