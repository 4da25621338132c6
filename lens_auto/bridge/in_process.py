# SPDX-License-Identifier: Apache-2.0
"""In-process mode: the recorder of a program that runs an SDK already, and wants our rules' spans to go through that.

No journal and no collector: a span of ours is a span of the program's provider, with the ids that makes.
"""

from __future__ import annotations

from time import monotonic_ns, time_ns

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from lens_auto.record.format import ENDED, POINT, STATUS_ERROR
from lens_auto.record.recorder import NOBODY, Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from opentelemetry.trace import Span as Theirs

    from lens_auto.record.reader import Record
    from lens_auto.record.recorder import Over
    from lens_auto.record.span import Attributes, Span

_NAME = 'lens-auto'
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NO_RUN = b'\0' * 16, b'\0' * 8  # there is no root of a run: what has no parent starts a trace


class Emitter:
    """Stands where the journal does: what is put into it goes to the program's providers."""

    def __init__(self) -> None:
        """Nothing is open."""
        self.flags: dict[str, int] = {}
        self.dropped = 0
        self.begun = False  # as a journal: there is nothing a collector would have to know of an exec
        self.open: dict[bytes, Theirs] = {}
        self._instruments: dict[tuple[str, str], Any] = {}

    def put(self, record: Record, ending: Span | None = None) -> None:
        """Pass a record on.

        Args:
            record: As for a journal.
            ending: The span whose end it tells.
        """
        if ending is not None:
            ending.epoch = -1
        if record[0] == ENDED:
            self._ended(record)
        elif record[0] == POINT:
            self._point(record)

    def _ended(self, record: Record) -> None:
        _, span_id, _, _, start, duration, name, _, status, attributes, _, events = record
        span = self.open.pop(span_id, None)
        if span is None:
            return
        shift = time_ns() - monotonic_ns()
        span.update_name(name)
        span.set_attributes(attributes or {})
        for at, event, values in events or ():
            span.add_event(event, values or {}, at + shift)
        if status == STATUS_ERROR:
            span.set_status(StatusCode.ERROR)
        span.end(start + duration + shift)

    def _point(self, record: Record) -> None:
        _, _, name, instrument, unit, value, attributes, *_ = record
        give = self._instruments.get((name, instrument))
        if give is None:
            meter: Any = metrics.get_meter(_NAME)
            if instrument == 'counter':
                give = meter.create_counter(name, unit).add
            elif instrument == 'gauge' and hasattr(meter, 'create_gauge'):
                give = meter.create_gauge(name, unit).set
            else:
                give = meter.create_histogram(name, unit).record
            self._instruments[name, instrument] = give
        give(value, attributes or {})

    def hold(self) -> None:
        """A fork begins: nothing to hold."""

    def go_on(self) -> None:
        """The fork is over, and this is the parent."""

    def forget(self) -> None:
        """A forked child: the open spans are its parent's to end."""
        self.open = {}

    def flush(self) -> None:
        """The process ends; the program's SDK has its own way to do so."""


class InProcess(Recorder):
    """Opens spans of the program's provider.

    Attributes:
        emitter: Where records go.
    """

    __slots__ = ('_tracer', 'emitter')

    def __init__(self) -> None:
        """The provider is asked for when the first span opens: it may not be set yet."""
        self.emitter = Emitter()
        super().__init__(self.emitter, *_NO_RUN)  # pyright: ignore[reportArgumentType] -- has what a journal has
        self._tracer = trace.get_tracer(_NAME)

    def open_under(
        self,
        up: Span | None,
        site: Any,
        name: str,
        key: str,
        attributes: Attributes | None,
        root: bool,
        announce: bool,
        attach: bool,
        subject: int = NOBODY,
        over: Over | tuple[()] | None = None,
    ) -> Span:
        """See `Recorder.open_under`; nothing is announced: the provider's processors are told of the start."""
        span = super().open_under(up, site, name, key, attributes, root, False, attach, subject, over)
        links = [
            Link(_context(trace_id, span_id), values)
            for trace_id, span_id, values in span.links or ()
            if span_id.strip(b'\0')
        ]
        within = Context()  # an empty one: a root
        if span.parent_id.strip(b'\0'):
            parent = NonRecordingSpan(_context(span.trace_id, span.parent_id))
            within = trace.set_span_in_context(parent, within)
        kind = SpanKind.INTERNAL
        shift = time_ns() - monotonic_ns()
        theirs = self._tracer.start_span(name, within, kind, attributes, links, span.start + shift)
        context = theirs.get_span_context()
        if context.is_valid:
            span.trace_id, span.span_id = context.trace_id.to_bytes(16, 'big'), context.span_id.to_bytes(8, 'big')
            self.emitter.open[span.span_id] = theirs
        return span

    def announce(self, span: Span, key: str) -> None:
        """See `Recorder.announce`: nothing to do."""

    def newest(self, span: Span) -> bool:
        """See `Recorder.newest`; the ids are not ours to compare."""
        return False


def _context(trace_id: bytes, span_id: bytes) -> SpanContext:
    number = int.from_bytes(trace_id[:16], 'big'), int.from_bytes(span_id, 'big')
    return SpanContext(*number, is_remote=False, trace_flags=_SAMPLED)
