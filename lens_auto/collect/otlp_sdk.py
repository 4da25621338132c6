# SPDX-License-Identifier: Apache-2.0
"""OTLP JSON lines back into the SDK's objects, and out through the SDK's own exporters.

Headers, TLS, compression, timeouts and retries are theirs, by their environment variables. Ids, times and resources are
those of the lines: no tracer or meter is involved, which would make new ones.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, cast

from opentelemetry.sdk.metrics import Exemplar
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from lens_auto.collect import store
from lens_auto.collect.figures import shortened
from lens_auto.collect.otlp_logs import logs
from lens_auto.settings import redact

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    Json = dict[str, Any]

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Exporters:
    """The SDK's exporters, that of a signal made when its first line comes. Each signal may have its own thread."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the environment.

        Args:
            environ: The launcher's environment.
        """
        self._environ = environ
        self._traces: SpanExporter | None = None
        self._metrics: MetricExporter | None = None
        self._logs: Any = None  # a class in other places of the SDK from version to version
        self._words = _Words()
        for name in ('opentelemetry', 'urllib3', 'requests', 'grpc'):
            logger = logging.getLogger(name)
            logger.addHandler(self._words)
            logger.propagate = False
        # This process is the launcher: what is imported into it must not write on the user's terminal.
        os.environ.setdefault('GRPC_VERBOSITY', 'NONE')
        warnings.simplefilter('ignore')

    def endpoint(self, kind: str) -> str:
        """Where a signal goes and how, for messages: the usual mistake is one protocol at the other one's port.

        Args:
            kind: TRACES, METRICS or LOGS of `store`.
        """
        signal = kind.upper()
        protocol = self._asked_protocol(signal)[1]
        place = (
            self._environ.get(f'OTEL_EXPORTER_OTLP_{signal}_ENDPOINT')
            or self._environ.get('OTEL_EXPORTER_OTLP_ENDPOINT')
            or f'localhost:{4317 if protocol == "grpc" else 4318}'
        )
        return f'{redact.text(place)} ({protocol})'

    def _protocol(self, signal: str) -> str:
        name, said = self._asked_protocol(signal)
        if said not in ('grpc', 'http/protobuf'):
            raise ValueError(f'{name}={said}: lens-auto sends grpc or http/protobuf')
        return said

    def _asked_protocol(self, signal: str) -> tuple[str, str]:
        for name in (f'OTEL_EXPORTER_OTLP_{signal}_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'):
            said = self._environ.get(name, '').strip().lower()
            if said:
                return name, said
        return '', 'grpc'

    def send(self, kind: str, line: str) -> bool:
        """Send one line; True once the backend has acknowledged it.

        Args:
            kind: TRACES, METRICS or LOGS of `store`.
            line: A line of the run folder's files.
        """
        self._words.listen(kind)
        plain = json.loads(line)
        if kind == store.TRACES:
            if self._traces is None:
                self._traces = self._make_traces()
            return self._traces.export(spans(plain)) is SpanExportResult.SUCCESS
        if kind == store.LOGS:
            if self._logs is None:
                self._logs = self._make_logs()
            return self._logs.export(logs(plain)).name == 'SUCCESS'
        if self._metrics is None:
            self._metrics = self._make_metrics()
        # The SDK leaves the type of `**kwargs` open.
        exporter = cast('Any', self._metrics)
        return exporter.export(metrics(plain)) is MetricExportResult.SUCCESS

    def _make_traces(self) -> SpanExporter:
        if self._protocol('TRACES') == 'grpc':
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

            return GrpcExporter()
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()

    def _make_metrics(self) -> MetricExporter:
        if self._protocol('METRICS') == 'grpc':
            from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter

            return GrpcExporter()
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        return OTLPMetricExporter()

    def _make_logs(self) -> Any:
        if self._protocol('LOGS') == 'grpc':
            from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcExporter

            return GrpcExporter()
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

        return OTLPLogExporter()

    def shutdown(self) -> None:
        """Give up what is under way; called from another thread than `send`."""
        exporters: list[Any] = [self._traces, self._metrics, self._logs]
        for exporter in exporters:
            if exporter is not None:
                try:
                    exporter.shutdown()
                except Exception:
                    continue  # it is being given up

    def note(self, kind: str, text: str) -> None:
        """Remember a failure for `said`.

        Args:
            kind: TRACES, METRICS or LOGS of `store`.
            text: What went wrong.
        """
        self._words.last[kind] = text

    def said(self, kind: str) -> str:
        """The last thing an exporter complained about, in one line, without secrets.

        Args:
            kind: TRACES, METRICS or LOGS of `store`.
        """
        last = self._words.last.get(kind) or self._words.last.get('', '')
        return shortened(redact.text(' '.join(last.split())), 200)


class _Words(logging.Handler):
    """Keeps the last line the SDK logged on each signal, away from the user's terminal.

    The SDK's loggers do not tell the signals apart; an exporter logs in the thread that it was called in.

    Attributes:
        last: By signal, '' for what was said in other threads.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last: dict[str, str] = {}
        self._signals: dict[int, str] = {}

    def listen(self, kind: str) -> None:
        """What this thread logs from now on is about this signal."""
        self._signals[get_ident()] = kind

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except Exception:
            text = str(record.msg)
        self.last[self._signals.get(get_ident(), '')] = text


def spans(plain: Json) -> list[ReadableSpan]:
    """The spans of an OTLP JSON object.

    Args:
        plain: With `resourceSpans`.
    """
    found: list[ReadableSpan] = []
    for group in plain['resourceSpans']:
        resource = Resource(_attributes(group['resource'].get('attributes')))
        for scoped in group['scopeSpans']:
            scope = InstrumentationScope(scoped['scope']['name'], scoped['scope'].get('version'))
            found += [_span(one, resource, scope) for one in scoped['spans']]
    return found


def _span(one: Json, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    context = _context(one['traceId'], one['spanId'])
    parent = one.get('parentSpanId')
    status: Json = one.get('status') or {}
    return ReadableSpan(
        one['name'],
        context,
        _context(one['traceId'], parent) if parent else None,
        resource,
        _attributes(one.get('attributes')),
        [Event(e['name'], _attributes(e.get('attributes')), int(e['timeUnixNano'])) for e in one.get('events') or ()],
        [
            Link(_context(link['traceId'], link['spanId']), _attributes(link.get('attributes')))
            for link in one.get('links') or ()
        ],
        SpanKind(one.get('kind', 1) - 1),
        None,
        Status(StatusCode(int(status.get('code', 0))), str(status.get('message') or '') or None),
        int(one['startTimeUnixNano']),
        int(one['endTimeUnixNano']),
        scope,
    )


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), False, _SAMPLED)


def metrics(plain: Json) -> MetricsData:
    """The metrics of an OTLP JSON object.

    Args:
        plain: With `resourceMetrics`.
    """
    groups: list[ResourceMetrics] = []
    for group in plain['resourceMetrics']:
        resource = Resource(_attributes(group['resource'].get('attributes')))
        scopes: list[ScopeMetrics] = []
        for scoped in group['scopeMetrics']:
            scope = InstrumentationScope(scoped['scope']['name'], scoped['scope'].get('version'))
            scopes.append(ScopeMetrics(scope, [_metric(one) for one in scoped['metrics']], ''))
        groups.append(ResourceMetrics(resource, scopes, ''))
    return MetricsData(groups)


def _metric(one: Json) -> Metric:
    data: Gauge | Sum | Histogram
    if 'gauge' in one:
        data = Gauge([_number_point(point) for point in one['gauge']['dataPoints']])
    elif 'sum' in one:
        data = Sum(
            [_number_point(point) for point in one['sum']['dataPoints']],
            AggregationTemporality(one['sum']['aggregationTemporality']),
            one['sum'].get('isMonotonic', False),
        )
    else:
        data = Histogram(
            [_histogram_point(point) for point in one['histogram']['dataPoints']],
            AggregationTemporality(one['histogram']['aggregationTemporality']),
        )
    return Metric(one['name'], one.get('description', ''), one.get('unit', ''), data)


def _number_point(point: Json) -> NumberDataPoint:
    start = point.get('startTimeUnixNano')
    return NumberDataPoint(
        _attributes(point.get('attributes')),
        int(start) if start else None,  # pyright: ignore[reportArgumentType] -- the encoder takes None for gauges
        int(point['timeUnixNano']),
        _number(point),
        _exemplars(point),
    )


def _histogram_point(point: Json) -> HistogramDataPoint:
    return HistogramDataPoint(
        _attributes(point.get('attributes')),
        int(point['startTimeUnixNano']),
        int(point['timeUnixNano']),
        int(point['count']),
        float(point['sum']),
        [int(count) for count in point['bucketCounts']],
        point['explicitBounds'],
        float(point.get('min', 'inf')),
        float(point.get('max', '-inf')),
        _exemplars(point),
    )


def _exemplars(point: Json) -> Sequence[Exemplar]:
    return [
        Exemplar({}, _number(one), int(one['timeUnixNano']), int(one['spanId'], 16), int(one['traceId'], 16))
        for one in point.get('exemplars') or ()
    ]


def _number(point: Json) -> int | float:
    return int(point['asInt']) if 'asInt' in point else float(point['asDouble'])


def _attributes(listed: Sequence[Json] | None) -> dict[str, AttributeValue]:
    return {item['key']: _value(item['value']) for item in listed or ()}


def _value(value: Json) -> Any:
    kind, item = next(iter(value.items()))
    if kind == 'intValue':
        return int(item)
    if kind == 'doubleValue':
        return float(item)  # NaN and the infinities are strings in JSON
    if kind == 'arrayValue':
        return [_value(one) for one in item.get('values') or ()]
    return item
