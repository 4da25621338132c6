# SPDX-License-Identifier: Apache-2.0
"""A span of ours as the parent of one that the program's own SDK starts."""

from __future__ import annotations

from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)

from lens_auto.bridge.provider import is_of_the_global_provider
from lens_auto.record.span import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from opentelemetry.trace import Span

    from lens_auto.record.span import Span as Ours

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Parents:
    """`Tracer.start_span(self, name, context, ...)` of the SDK: given a context that names our span where it is nearer.

    Attributes:
        on: Spans are on, and both sides' go to a backend, where they can be one tree.
    """

    __slots__ = ('on',)

    def __init__(self) -> None:
        """Off at first."""
        self.on = False

    def before(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """A span is about to be started; the answer takes the place of the arguments.

        Args:
            args: Tracer, name, context, and the rest.
        """
        up = current.get()
        tracer, name, context, *rest = args
        if not self.on or up is None or context is not None or not is_of_the_global_provider(tracer):
            return None
        theirs = get_current_span()
        if theirs is INVALID_SPAN:
            # An id for its trace would have been drawn here, from the stream of random numbers that the program seeds.
            tracer.id_generator.generate_trace_id()
        elif up.seen is not theirs or not theirs.get_span_context().trace_flags.sampled:
            return None
        return tracer, name, set_span_in_context(_Parent(up, theirs)), *rest


class _Parent(NonRecordingSpan):
    """Names our span to the one who asks first, which is the tracer.

    Who asks then is the sampler. It shall decide as it would have without us: a program that keeps one trace in a
    hundred must not send them all because ours is there.
    """

    def __init__(self, ours: Ours, theirs: Span):
        number = int.from_bytes(ours.trace_id[:16], 'big'), int.from_bytes(ours.span_id, 'big')
        super().__init__(SpanContext(*number, is_remote=False, trace_flags=_SAMPLED))
        self._theirs: Span | None = theirs
        self._asked = False

    def get_span_context(self) -> SpanContext:
        """See `opentelemetry.trace.Span`."""
        if not self._asked:
            self._asked = True
            return super().get_span_context()
        return INVALID_SPAN.get_span_context() if self._theirs is None else self._theirs.get_span_context()
