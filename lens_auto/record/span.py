# SPDX-License-Identifier: Apache-2.0
"""A span in flight, and the context variable that says which one is current."""

from __future__ import annotations

from _contextvars import ContextVar  # the module in front of it could be the program's own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Attributes = dict[str, Any]
    Link = tuple[bytes, bytes, 'Attributes | None']
    Event = tuple[int, str, 'Attributes | None']


class Rare:
    """What few spans have; made when one of them gets it."""

    __slots__ = ('events', 'links', 'pending', 'raised', 'rested', 'seen', 'shut', 'told')

    def __init__(self) -> None:
        self.events: list[Event] | None = None
        self.links: tuple[Link, ...] | None = None
        self.pending: list[Span] | None = None
        self.raised: tuple[int, Attributes] | int = 0
        self.rested = 0
        self.seen: Any = None
        self.shut: list[Any] | None = None
        self.told: Attributes | None = None


class Span:
    """One open span. Plain slots, no methods: it is made and dropped some thousand times a second.

    Attributes:
        span_id: 8 bytes.
        trace_id: The trace it belongs to, 16 bytes, fixed when it starts; 24 below a Ray task's first span (`format`).
        parent_id: Id of its parent, b'' for the root of a trace.
        up: The span that was current when it opened, or None.
        nest: How many spans enclose it in this context.
        site: The patched place (or API call) that opened it.
        name: Its name.
        start: CLOCK_MONOTONIC nanoseconds.
        attributes: Those to be stored with its end: what its opening record told is not among them.
        epoch: The recorder's epoch at the start; a forked child is in a later one and does not end its parent's spans.
            -1 once it has ended.
        subject: id() of the call's first argument; tells an override and the method it overrides from other calls.
        late: What the readers that run at the end need, or None; set by the sites that have any.
        rare: What follows here, or None while it has none of it.
        links: Links as (trace id, span id, attributes), or None.
        events: Events as (time, name, attributes), or None.
        raised: Address and place of the exception that a span inside it has recorded already, 0 for none.
        rested: When it came to rest, if it waits to be continued (see `wrap.continued`); 0 while it runs.
        seen: The span of the program's own OpenTelemetry that was current when it opened, or None.
        shut: Called when it ends: what puts sites back that are off while this span is the deepest one recorded.
        pending: Intervals opened inside it that are not current and have not ended, or None.
        inside: For a generator's span: what is current inside its body while it waits at a yield, where that is not the
            span itself (a span that refers to itself would wait for the garbage collector). No other span has it.
        outer: For a generator's span: what was current when its body was last resumed.
    """

    __slots__ = (
        'attributes',
        'epoch',
        'inside',
        'late',
        'name',
        'nest',
        'outer',
        'parent_id',
        'rare',
        'site',
        'span_id',
        'start',
        'subject',
        'trace_id',
        'up',
    )

    span_id: bytes
    trace_id: bytes
    parent_id: bytes
    up: Span | None
    nest: int
    site: Any
    name: str
    start: int
    attributes: Attributes | None
    epoch: int
    subject: int
    late: Any
    rare: Rare | None
    inside: Span | None
    outer: Span | None
    if TYPE_CHECKING:
        links: tuple[Link, ...] | None
        events: list[Event] | None
        raised: tuple[int, Attributes] | int
        rested: int
        seen: Any
        shut: list[Any] | None
        pending: list[Span] | None


def _rarely(name: str, default: Any) -> property:
    def read(span: Span) -> Any:
        return default if span.rare is None else getattr(span.rare, name)

    def write(span: Span, value: Any) -> None:
        if span.rare is None:
            span.rare = Rare()
        setattr(span.rare, name, value)

    return property(read, write)


for _name in ('events', 'links', 'pending', 'seen', 'shut'):
    setattr(Span, _name, _rarely(_name, None))
setattr(Span, 'raised', _rarely('raised', 0))  # noqa: B010 -- to a type checker it is a plain field
setattr(Span, 'rested', _rarely('rested', 0))  # noqa: B010


ENDED_ALREADY = -1  # the epoch of a span that has ended

# The one piece of context that is carried anywhere (threads, tasks): never the whole of `copy_context()`.
current: ContextVar[Span | None] = ContextVar('lens_auto.span', default=None)

# The Ray task, with its attempt, that started this thread while no span was current; asked for where there is no span.
origin: ContextVar[tuple[bytes, int] | None] = ContextVar('lens_auto.origin', default=None)
