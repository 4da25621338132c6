# SPDX-License-Identifier: Apache-2.0
"""A span in flight, and the context variable that says which one is current."""

from __future__ import annotations

from _contextvars import ContextVar  # the module in front of it could be the program's own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Attributes = dict[str, Any]
    Link = tuple[int, int, 'Attributes | None']
    Event = tuple[int, str, 'Attributes | None']


class Span:
    """One open span. Plain slots, no methods: it is made and dropped some thousand times a second.

    Attributes:
        span_id: 64-bit id.
        trace_id: 128-bit id of the trace it belongs to, fixed when it starts.
        parent_id: Id of its parent, 0 for the root of a trace.
        up: The span that was current when it opened, or None.
        nest: How many spans enclose it in this context.
        site: The patched place (or API call) that opened it.
        name: Its name.
        start: CLOCK_MONOTONIC nanoseconds.
        attributes: What was read when it opened; more may be added until it ends.
        links: Links as (trace id, span id, attributes), or None.
        events: Events as (time, name, attributes), or None.
        epoch: The recorder's epoch at the start; a forked child is in a later one and does not end its parent's spans.
            -1 once it has ended.
        raised: Address and place of the exception that a span inside it has recorded already, 0 for none.
        subject: id() of the call's first argument; tells an override and the method it overrides from other calls.
        late: What the readers that run at the end need, or None.
        shut: Called when it ends: what puts sites back that are off while this span is the deepest one recorded.
        inside: For a generator's span: what is current inside its body while it waits at a yield, where that is not the
            span itself (a span that refers to itself would wait for the garbage collector).
        outer: For a generator's span: what was current when its body was last resumed.
        pending: Intervals opened inside it that are not current and have not ended, or None.
    """

    __slots__ = (
        'attributes',
        'epoch',
        'events',
        'inside',
        'late',
        'links',
        'name',
        'nest',
        'outer',
        'parent_id',
        'pending',
        'raised',
        'shut',
        'site',
        'span_id',
        'start',
        'subject',
        'trace_id',
        'up',
    )

    span_id: int
    trace_id: int
    parent_id: int
    up: Span | None
    nest: int
    site: Any
    name: str
    start: int
    attributes: Attributes | None
    links: tuple[Link, ...] | None
    events: list[Event] | None
    epoch: int
    raised: tuple[int, Attributes] | int
    subject: int
    late: Any
    shut: list[Any] | None
    pending: list[Span] | None
    inside: Span | None
    outer: Span | None


ENDED_ALREADY = -1  # the epoch of a span that has ended

# The one piece of context that is carried anywhere (threads, tasks): never the whole of `copy_context()`.
current: ContextVar[Span | None] = ContextVar('lens_auto.span', default=None)
