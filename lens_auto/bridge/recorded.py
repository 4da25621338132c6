# SPDX-License-Identifier: Apache-2.0
"""A span that the program starts by hand and its OpenTelemetry would drop: it goes into our journal."""

from __future__ import annotations

from time import monotonic_ns, time_ns

from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from lens_auto.bridge.values import plain
from lens_auto.record.foreign import foreign
from lens_auto.record.format import STATUS_ERROR, STATUS_UNSET
from lens_auto.record.recorder import exception_event, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span as Ours

_LONGEST_NAME = 256
_MOST = 128  # attributes, events and links of one span: the default limits of OpenTelemetry's SDKs
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_STATUS_OK = 1


def _guarded(act: Callable[..., None]) -> Callable[..., None]:
    """A method of the API: what goes wrong in it is not the program's concern."""

    def method(self: Recorded, *args: Any, **keywords: Any) -> None:
        try:
            act(self, *args, **keywords)
        except Exception as error:
            if foreign(error):
                raise
            self.faults.take('bridge', '', error)

    method.__name__, method.__qualname__, method.__doc__ = act.__name__, act.__qualname__, act.__doc__
    return method


class Recorded(Span):
    """What `start_span` hands the program: a span of the API whose record is ours.

    It is recording and has a valid context, as a span of an SDK would be. Whether it is current is the API's affair.

    Who sees that it is recording may take it for the SDK's and read the fields that has; they are here as well.

    Attributes:
        faults: The process's fault count.
        kind: Its kind.
        resource, instrumentation_scope: None: known to the collector.
    """

    resource = instrumentation_scope = None

    def __init__(self, span: Ours, recorder: Recorder, faults: Faults, kind: SpanKind, told: Any):
        """See the class.

        Args:
            span: Our span, opened.
            recorder: The process's recorder.
            faults: Its fault count.
            kind: Its kind.
            told: The attributes it started with.
        """
        self._span = span
        self.kind = kind
        self._told = told
        self.start_time = time_ns() - (monotonic_ns() - span.start)
        self.end_time: int | None = None
        self._recorder = recorder
        self.faults = faults
        self._status = STATUS_UNSET
        self._context: SpanContext | None = None

    def ids(self) -> tuple[bytes, bytes]:
        """Its trace and span id, as our records have them."""
        return self._span.trace_id, self._span.span_id

    def get_span_context(self) -> SpanContext:
        """See `opentelemetry.trace.Span`."""
        context = self._context
        if context is None:
            trace_id, span_id = self.ids()
            # A task of Ray: which trace it belongs to, the collector will know.
            numbers = int.from_bytes(trace_id[:16], 'big'), int.from_bytes(span_id, 'big')
            context = self._context = SpanContext(*numbers, is_remote=False, trace_flags=_SAMPLED)
        return context

    context = property(get_span_context)

    @property
    def name(self) -> str:
        """Its name."""
        return self._span.name

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes, as they are recorded; a copy."""
        return {**self._told, **(self._span.attributes or {})}

    @property
    def parent(self) -> SpanContext | None:
        """What it is inside, where the program could know of that."""
        return None

    @property
    def events(self) -> tuple[Any, ...]:
        """None: they are in the journal."""
        return ()

    links = events

    @property
    def status(self) -> Status:
        """Its status so far."""
        return Status({_STATUS_OK: StatusCode.OK, STATUS_ERROR: StatusCode.ERROR}.get(self._status, StatusCode.UNSET))

    def is_recording(self) -> bool:
        """See `opentelemetry.trace.Span`."""
        return self._span.epoch >= 0

    @_guarded
    def end(self, end_time: int | None = None) -> None:
        """See `opentelemetry.trace.Span`."""
        if self.is_recording():
            self.end_time = time_ns() if end_time is None else end_time
            self._recorder.close(self._span, monotonic(end_time), '', self._status)

    @_guarded
    def set_attributes(self, attributes: Any) -> None:
        """See `opentelemetry.trace.Span`."""
        span = self._span
        if self.is_recording():
            found = {**(span.attributes or {}), **(plain(attributes) or {})}
            span.attributes = found if len(found) <= _MOST else dict(list(found.items())[:_MOST])

    def set_attribute(self, key: str, value: Any) -> None:
        """See `opentelemetry.trace.Span`."""
        self.set_attributes({key: value})

    @_guarded
    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        """See `opentelemetry.trace.Span`."""
        self._tell((monotonic(timestamp), str(name)[:_LONGEST_NAME], plain(attributes)))

    def _tell(self, event: Any) -> None:
        span = self._span
        events = span.events
        if self.is_recording() and len(events or ()) < _MOST:
            if events is None:
                events = span.events = []
            events.append(event)

    @_guarded
    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        """See `opentelemetry.trace.Span`."""
        span = self._span
        if self.is_recording() and len(span.links or ()) < _MOST:
            span.links = (*(span.links or ()), link(context, attributes))

    @_guarded
    def update_name(self, name: str) -> None:
        """See `opentelemetry.trace.Span`."""
        if self.is_recording():
            self._span.name = str(name)[:_LONGEST_NAME]

    @_guarded
    def set_status(self, status: Any, description: str | None = None) -> None:
        """See `opentelemetry.trace.Span`; a description is not recorded, it would be an exception's message."""
        code = getattr(status, 'status_code', status)
        if not self.is_recording() or self._status == _STATUS_OK or code is StatusCode.UNSET:
            return  # the program's OK is final, says the specification
        self._status = _STATUS_OK if code is StatusCode.OK else STATUS_ERROR

    @_guarded
    def record_exception(
        self, exception: BaseException, attributes: Any = None, timestamp: int | None = None, escaped: bool = False
    ) -> None:
        """See `opentelemetry.trace.Span`; its type and place are recorded, not its message."""
        at, name, found = exception_event(exception, monotonic(timestamp))
        self._tell((at, name, {**(plain(attributes) or {}), **(found or {})}))

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """A `with tracer.start_span(...)` ends."""
        if error is not None and status_of(error) == STATUS_ERROR and self.is_recording():
            self.record_exception(error)
            self.set_status(StatusCode.ERROR)
        self.end()


def link(context: SpanContext, attributes: Any) -> tuple[bytes, bytes, dict[str, Any] | None]:
    """A link as our records have it.

    Args:
        context: What is linked to.
        attributes: The link's attributes.
    """
    return context.trace_id.to_bytes(16, 'big'), context.span_id.to_bytes(8, 'big'), plain(attributes)


def monotonic(wall: Any) -> int:
    """A wall-clock time the program gave, on our clock; now where it gave none, or no number.

    Args:
        wall: Nanoseconds, or None.
    """
    now = monotonic_ns()
    return now - (time_ns() - int(wall)) if isinstance(wall, (int, float)) else now
