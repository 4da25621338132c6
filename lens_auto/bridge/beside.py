# SPDX-License-Identifier: Apache-2.0
"""Which span encloses a new one of ours: our current one, or a later one of the program's OpenTelemetry."""

from __future__ import annotations

from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, get_current_span

from lens_auto.bridge.provider import is_of_the_global_provider
from lens_auto.bridge.recorded import Recorded
from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Over, Recorder
    from lens_auto.record.span import Span

NOBODY: tuple[()] = ()


class Beside:
    """Asked by the recorder for each span it opens, once the program has OpenTelemetry.

    Two context variables say what is current, ours and theirs, and neither knows when the other was set. So a span of
    ours remembers which of theirs was current when it opened: if that is so still, ours is the later one.

    Attributes:
        joins: Spans of an SDK of the program are parents of ours; else ours keep their own and link to them.
    """

    __slots__ = ('_faults', '_left', '_recorder', 'joins')

    def __init__(self, recorder: Recorder, faults: Faults):
        """See the class.

        Args:
            recorder: The process's recorder.
            faults: Its fault count.
        """
        self._recorder = recorder
        self._faults = faults
        self.joins = False
        self._left: Any = INVALID_SPAN

    def leave(self) -> None:
        """This process begins to serve others: what is current here, of the process it was forked from, is no parent.

        It stays current in the program's own context, which is not ours to change.
        """
        self._left = get_current_span()

    def __call__(self, up: Span | None, span: Span | None) -> Over | tuple[()]:
        """The program's span that a new one of ours is inside, or an empty tuple.

        Args:
            up: Our current span, or None.
            span: The new one; None to be told only where this is.
        """
        try:
            theirs = get_current_span()
            if theirs is INVALID_SPAN or theirs is self._left:
                return NOBODY
            if span is not None:
                span.seen = theirs
            if up is not None and up.seen is theirs:
                return NOBODY
            if type(theirs) is Recorded:
                return *theirs.ids(), None
            context = theirs.get_span_context()
            if not context.is_valid or not context.trace_flags.sampled:
                return NOBODY  # whoever reads the spans would look for it in vain
            trace_id, span_id = context.trace_id.to_bytes(16, 'big'), context.span_id.to_bytes(8, 'big')
            if isinstance(theirs, NonRecordingSpan):
                return trace_id, span_id, None  # of another process, brought along by a request
            if self.joins and is_of_the_global_provider(theirs):
                return (
                    trace_id,
                    span_id,
                    None if up is None else ((up.trace_id, up.span_id, {'lens.link': 'enclosing'}),),
                )
            return b'', b'', ((trace_id, span_id, {'lens.link': 'app'}),)
        except Exception as error:
            if foreign(error):
                raise
            self._recorder.beside = None
            self._faults.take('bridge', '', error)
            return NOBODY
