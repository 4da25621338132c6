# SPDX-License-Identifier: Apache-2.0
"""A program that exports over HTTP: its exporter says that its own requests are not to be traced, and they are not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.helpers.run import Place

pytest.importorskip('opentelemetry.exporter.otlp.proto.http')

MAIN = """
import http.server, threading
import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

asked = []
class Backend(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers['content-length']))
        asked.append((self.path, 'traceparent' in self.headers))
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass

server = http.server.HTTPServer(('127.0.0.1', 0), Backend)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f'http://127.0.0.1:{server.server_port}'
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f'{url}/v1/traces')))
trace.set_tracer_provider(provider)
with trace.get_tracer('mine').start_as_current_span('theirs'):
    requests.post(f'{url}/score', data='x')
provider.shutdown()
server.shutdown()
print(sorted(asked))
"""


def test_only_what_the_program_asks_for_is_a_request(tmp_path: Path) -> None:
    place = Place(tmp_path).write({'main.py': MAIN})
    assert place.plain(sys.executable, 'main.py').stdout == "[('/score', False), ('/v1/traces', False)]\n"
    done = place.lens('--span-groups', 'http', '--no-summary', sys.executable, 'main.py')
    assert done.stdout == "[('/score', True), ('/v1/traces', False)]\n", done.stderr
    assert len(place.run.named('POST')) == 1
