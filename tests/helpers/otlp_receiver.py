# SPDX-License-Identifier: Apache-2.0
"""An OTLP backend on the loopback interface, over gRPC and HTTP, that behaves as a test asks."""

from __future__ import annotations

import gzip
import threading
import zlib
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, ResourceMetrics
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

_REFUSALS = {'4xx': (400, grpc.StatusCode.INVALID_ARGUMENT), '5xx': (503, grpc.StatusCode.UNAVAILABLE)}
_PATHS = {
    '/v1/logs': (logs_service_pb2.ExportLogsServiceRequest, logs_service_pb2.ExportLogsServiceResponse),
    '/v1/traces': (trace_service_pb2.ExportTraceServiceRequest, trace_service_pb2.ExportTraceServiceResponse),
    '/v1/metrics': (metrics_service_pb2.ExportMetricsServiceRequest, metrics_service_pb2.ExportMetricsServiceResponse),
}


class Receiver:
    """A backend; use it in a `with`.

    Attributes:
        behaviour: 'ok', 'slow' (answers after `delay` seconds), '4xx', '5xx' or 'traces only' (as Phoenix is); may
            be changed at any time. For a backend that is down, take its endpoint and leave the `with`.
        delay: Seconds a slow answer takes.
        requests: How many came, refused ones included.
        headers: Those of the last request, names in lower case.
        traces: What was taken, ResourceSpans.
        metrics: What was taken, ResourceMetrics.
        logs: What was taken, ResourceLogs.
    """

    def __init__(self, behaviour: str = 'ok', delay: float = 30.0) -> None:
        self.behaviour = behaviour
        self.delay = delay
        self.requests = 0
        self.headers: dict[str, str] = {}
        self.traces: list[ResourceSpans] = []
        self.metrics: list[ResourceMetrics] = []
        self.logs: list[ResourceLogs] = []
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._grpc = grpc.server(futures.ThreadPoolExecutor(4))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Traces(self), self._grpc)
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Metrics(self), self._grpc)
        logs_service_pb2_grpc.add_LogsServiceServicer_to_server(_Logs(self), self._grpc)
        self.grpc_endpoint = f'http://127.0.0.1:{self._grpc.add_insecure_port("127.0.0.1:0")}'
        self._http = _server(self)
        self.http_endpoint = f'http://127.0.0.1:{self._http.server_address[1]}'

    def __enter__(self) -> Receiver:
        self._grpc.start()
        threading.Thread(target=self._http.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._grpc.stop(0).wait()
        self._http.shutdown()
        self._http.server_close()

    def environment(self, protocol: str) -> dict[str, str]:
        """The variables that make an exporter send here.

        Args:
            protocol: 'grpc' or 'http/protobuf'.
        """
        endpoint = self.grpc_endpoint if protocol == 'grpc' else self.http_endpoint
        return {'OTEL_EXPORTER_OTLP_ENDPOINT': endpoint, 'OTEL_EXPORTER_OTLP_PROTOCOL': protocol}

    def spans(self) -> list[Span]:
        """All spans taken."""
        with self._lock:
            return [span for group in self.traces for scope in group.scope_spans for span in scope.spans]

    def metric_list(self) -> list[Metric]:
        """All metrics taken."""
        with self._lock:
            return [metric for group in self.metrics for scope in group.scope_metrics for metric in scope.metrics]

    def take(self, request: Any, headers: dict[str, str]) -> tuple[int, grpc.StatusCode] | None:
        """Behave; the answer is the refusal, or None when the request was taken."""
        with self._lock:
            self.requests += 1
            self.headers = headers
        if self.behaviour == 'slow':
            self._over.wait(self.delay)
        refusal = _REFUSALS.get(self.behaviour)
        if self.behaviour == 'traces only' and not hasattr(request, 'resource_spans'):
            refusal = (405, grpc.StatusCode.UNIMPLEMENTED)
        if refusal is None and not self._over.is_set():
            with self._lock:
                self.traces.extend(getattr(request, 'resource_spans', ()))
                self.metrics.extend(getattr(request, 'resource_metrics', ()))
                self.logs.extend(getattr(request, 'resource_logs', ()))
        return refusal


class _Traces(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def Export(self, request: Any, context: Any) -> Any:
        refusal = self._receiver.take(request, dict(context.invocation_metadata()))
        if refusal:
            context.abort(refusal[1], 'as the test asked')
        return trace_service_pb2.ExportTraceServiceResponse()


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def Export(self, request: Any, context: Any) -> Any:
        refusal = self._receiver.take(request, dict(context.invocation_metadata()))
        if refusal:
            context.abort(refusal[1], 'as the test asked')
        return metrics_service_pb2.ExportMetricsServiceResponse()


class _Logs(logs_service_pb2_grpc.LogsServiceServicer):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def Export(self, request: Any, context: Any) -> Any:
        refusal = self._receiver.take(request, dict(context.invocation_metadata()))
        if refusal:
            context.abort(refusal[1], 'as the test asked')
        return logs_service_pb2.ExportLogsServiceResponse()


def _server(receiver: Receiver) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
            encoding = self.headers.get('Content-Encoding', '')
            if encoding == 'gzip':
                body = gzip.decompress(body)
            elif encoding == 'deflate':
                body = zlib.decompress(body)
            kinds = _PATHS.get(self.path)
            if kinds is None:
                self._answer(404, b'')
                return
            request = kinds[0]()
            request.ParseFromString(body)
            refusal = receiver.take(request, {name.lower(): value for name, value in self.headers.items()})
            self._answer(refusal[0] if refusal else 200, b'' if refusal else kinds[1]().SerializeToString())

        def _answer(self, status: int, body: bytes) -> None:
            try:
                self.send_response(status)
                self.send_header('Content-Type', 'application/x-protobuf')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the exporter did not wait for a slow answer

    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.daemon_threads = True
    return server
