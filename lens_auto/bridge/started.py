# SPDX-License-Identifier: Apache-2.0
"""Spans that a program with no provider of its own starts: `NoOpTracer.start_span`, which every such tracer ends in."""

from __future__ import annotations

from opentelemetry.trace import INVALID_SPAN, get_current_span

from lens_auto.bridge import provider
from lens_auto.bridge.recorded import Recorded, link, monotonic
from lens_auto.bridge.values import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Over, Recorder

KIND = 'span.kind'
"""The attribute that holds a span's kind where that is not INTERNAL: the collector knows it."""

_INTERNAL = 0
SCOPE = '_lens_scope'
"""Where a tracer has its name."""
# What rules record where it does not record itself. vLLM would put our span into `os.environ`, for its children, too:
# the answer to it is the span that is none, not the one around it.
_NATIVE = ('vllm',)


class Named:
    """`ProxyTracer.__init__(self, name, ...)`: whose tracer it is; the no-op it falls back on is not told."""

    __slots__ = ()

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """A tracer has been made.

        Args:
            args: The tracer, its name, and the rest.
            result: None.
        """
        fallback: Any = getattr(args[0], '_noop_tracer', None)
        if fallback is not None:
            fallback.__dict__[SCOPE] = str(args[1])


class Started:
    """`NoOpTracer.start_span(...)`: what it returns is replaced by a span that is recorded.

    Attributes:
        key: The rule key of its records: of no rule.
        on: Spans are on.
    """

    __slots__ = ('_faults', '_recorder', 'key', 'on')

    def __init__(self, recorder: Recorder, faults: Faults):
        """See the class.

        Args:
            recorder: The process's recorder.
            faults: Its fault count.
        """
        self._recorder = recorder
        self._faults = faults
        self.key = ''
        self.on = False

    def after(self, args: tuple[Any, ...], result: Any, root: bool = False) -> Any:
        """A span that nobody would have recorded has been started.

        Args:
            args: Tracer, name, context, kind, attributes, links, start time, and the rest.
            result: The span that does nothing.
            root: It is a trace of its own, as a rule with `root` makes one.
        """
        if not self.on or provider.is_set():
            # The provider the program has set answers with such spans where it is switched off.
            return result
        tracer, name, context, kind, attributes, links, start = args[:7]
        scope = getattr(tracer, SCOPE, '')
        if scope.partition('.')[0] in _NATIVE:
            return INVALID_SPAN
        found = plain(attributes) or {}
        if getattr(kind, 'value', _INTERNAL) != _INTERNAL:
            found[KIND] = kind.name.lower()
        if scope:
            found['otel.scope.name'] = scope
        recorder = self._recorder
        over: Over | tuple[()] | None = None if context is None or root else _in(context)
        text = str(name)[:256]
        span = recorder.open_over(over, self, text, self.key, found, root)
        if start is not None:
            span.start = monotonic(start)
        if links:
            span.links = (
                *(span.links or ()),
                *(link(each.context, each.attributes) for each in links if hasattr(each, 'context')),
            )
        recorder.announce(span, self.key)
        return Recorded(span, recorder, self._faults, kind, found)


def _in(context: Any) -> Over | tuple[()]:
    """The parent that a context given by the program names; without one it is to be a root."""
    theirs = get_current_span(context)
    if theirs is INVALID_SPAN:
        return ()
    if type(theirs) is Recorded:
        return *theirs.ids(), None
    found = theirs.get_span_context()
    if not found.is_valid or not found.trace_flags.sampled:
        return ()
    return found.trace_id.to_bytes(16, 'big'), found.span_id.to_bytes(8, 'big'), None
