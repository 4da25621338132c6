# SPDX-License-Identifier: Apache-2.0
"""vLLM's own tracer, switched on where the setting `vllm_native_tracing` asks for it, and joined to our spans.

vLLM 0.30 to 0.32 traces its start and, at the end of each request, the request. The engine gets an endpoint as if its
user had given it; a request without trace headers gets those of the span it is made under.
"""

from __future__ import annotations

import os
import sys

from lens_auto.record.format import MISSING
from lens_auto.record.ids import Spans, root_trace
from lens_auto.record.span import current
from lens_auto.vllm.destination import PROTOCOL, VARIABLE, Nowhere, destination
from lens_auto.vllm.requests import span_of
from lens_auto.vllm.statistics import switch_on
from lens_auto.vllm.steps import Step
from lens_auto.wrap.site import Site
from lens_auto.wrap.w3c import PARENT, headers, parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_TRACE = 16
_DELAY, _HALF_A_SECOND = 'OTEL_BSP_SCHEDULE_DELAY', '0500'  # written so that it is known again


class OptionsSite(Site):
    """`EngineArgs.create_engine_config(self, ...)`: called once by whoever makes an engine, in that process alone."""

    __slots__ = ()

    def told(self, args: tuple[Any, ...]) -> None:
        """The options of an engine are about to be read.

        Args:
            args: The options, and the rest.
        """
        options = args[0]
        self.figures.calls += 1
        if options.otlp_traces_endpoint is not None:
            return  # the user's own
        try:
            # What vLLM itself goes by: without these packages it would refuse the endpoint.
            available = getattr(sys.modules.get('vllm.tracing'), 'is_tracing_available', None)
            if available is None or not available():
                raise Nowhere('OpenTelemetry and its OTLP exporters cannot be imported there')
            endpoint, protocol = destination(os.environ)
        except Nowhere as reason:
            fields = {'key': self.key, 'target': '', 'reason': f'vLLM cannot send its spans: {reason}'}
            self._recorder.report(MISSING, fields)
            return
        if os.environ.get(VARIABLE) or not os.environ.get(PROTOCOL):
            os.environ[PROTOCOL] = protocol
        # Its tracer asserts that there are statistics.
        switch_on(options, 'vllm_native_tracing')
        options.otlp_traces_endpoint = endpoint


class HeadersSite(Site):
    """`OutputProcessor.add_request(self, request, ...)`: every request of either engine, before it is on its way.

    Not `generate`: `LLM.generate` takes no trace headers, and what calls the engines below it would be missed.
    """

    __slots__ = ()

    def returned(self, args: tuple[Any, ...], result: Any) -> None:
        """A request has been registered.

        Args:
            args: Output processor, request, and the rest.
            result: None.
        """
        processor, request = args[0], args[1]
        if not processor.tracing_enabled:
            return
        self.figures.calls += 1
        span = span_of(request.request_id) or current.get()
        if span is None:
            return
        given = request.trace_headers
        # What a caller over HTTP sent along is above our span of the request, if there is one.
        if not given or str(given.get('traceparent')).split('-')[1:2] == [span.trace_id[:_TRACE].hex()]:
            request.trace_headers = headers(span)


class StartupSite(Site):
    """`LLMEngine.__init__`, `AsyncLLM.__init__`: what vLLM traces meanwhile, here and in children, is below our span.

    vLLM looks for the parent of such spans in the environment, where it puts its own for its children as well. For an
    engine that does not trace nothing is put there.
    """

    __slots__ = ()

    def open(self, args: tuple[Any, ...], attach: bool) -> Any:
        """An engine is about to be made. See `Site.open`."""
        self.figures.calls += 1
        observed = getattr(args[1], 'observability_config', None)
        if not getattr(observed, 'otlp_traces_endpoint', None):
            return None
        if 'traceparent' in os.environ or 'TRACEPARENT' in os.environ:
            return None
        span = current.get()
        if span is not None:
            os.environ.update(headers(span))
        elif self._recorder.run_trace:
            os.environ[PARENT] = parent(self._recorder.run_trace, self._recorder.run_root)
        else:
            return None
        return Step(self)

    def leave(self, span: Any, result: Any) -> None:
        """It is made.

        Args:
            span: From `open`.
            result: None.
        """
        span.epoch = -1
        os.environ.pop('traceparent', None)
        os.environ.pop('tracestate', None)

    def fail(self, span: Any, error: BaseException) -> None:
        """It could not be made.

        Args:
            span: From `open`.
            error: Why.
        """
        self.leave(span, None)

    def cut(self, span: Any) -> None:
        """An exception on its way to the program has cut our part of the call short.

        Args:
            span: From `open`.
        """
        self.leave(span, None)


class TracerSite(Site):
    """`init_otel_tracer(...)`: vLLM sets up a tracer in this process.

    Its processor sends every five seconds, and a worker that Ray or a parent ends takes what waits along: it is told to
    send twice a second, unless the environment says otherwise. And the SDK draws ids from `random`, which vLLM seeds:
    each process of each run would have the same ones, and the program's own draws would be others than without the
    tracer.
    """

    __slots__ = ()

    def open(self, args: tuple[Any, ...], attach: bool) -> Any:
        """It is about to. See `Site.open`."""
        self.figures.calls += 1
        if _DELAY not in os.environ:
            os.environ[_DELAY] = _HALF_A_SECOND
        return Step(self)

    def leave(self, span: Any, result: Any) -> None:
        """It has.

        Args:
            span: From `open`.
            result: The tracer.
        """
        self._restore(span)
        api: Any = sys.modules.get('opentelemetry.trace')
        provider: Any = None if api is None else api.get_tracer_provider()
        for holder in (provider, result):
            generator = getattr(holder, 'id_generator', None)
            if generator is not None and type(generator).__name__ == 'RandomIdGenerator':
                holder.id_generator = _own(type(generator))

    def fail(self, span: Any, error: BaseException) -> None:
        """It could not.

        Args:
            span: From `open`.
            error: Why.
        """
        self._restore(span)

    def cut(self, span: Any) -> None:
        """An exception on its way to the program has cut our part of the call short.

        Args:
            span: From `open`.
        """
        self._restore(span)

    def _restore(self, span: Any) -> None:
        span.epoch = -1
        if os.environ.get(_DELAY) == _HALF_A_SECOND:
            del os.environ[_DELAY]


def _own(kind: Any) -> Any:
    spans = Spans()
    generator = kind()
    generator.generate_span_id = lambda: int.from_bytes(spans.next(), 'big')
    generator.generate_trace_id = lambda: int.from_bytes(root_trace(os.urandom(16), spans.next()), 'big')
    return generator
