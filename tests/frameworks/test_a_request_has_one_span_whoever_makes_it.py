# SPDX-License-Identifier: Apache-2.0
"""An `http` rule beside each way in which OpenTelemetry makes spans of requests to FastAPI: one SERVER span each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.run import Place
from tests.helpers.venvs import python_with

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

PROGRAM = """
import sys
from fastapi import FastAPI
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

class Exporter(SpanExporter):
    def export(self, spans):
        print('exported', [span.name for span in spans if span.kind.name == 'SERVER'], flush=True)
    def shutdown(self): pass

how, provider = sys.argv[1:]
if provider == 'set':
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(Exporter()))
    trace.set_tracer_provider(made)
app = FastAPI() if how == 'native' else FastAPI(telemetry={'tracing': False})

@app.get('/run/{task}')
def run(task: int):
    return task

if how == 'instrumented':
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
    FastAPIInstrumentor.instrument_app(app)
elif how == 'contrib':
    from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
    app.add_middleware(OpenTelemetryMiddleware)
elif how == 'starlette':
    from starlette.middleware.opentelemetry import OpenTelemetryMiddleware
    app.add_middleware(OpenTelemetryMiddleware)
client = TestClient(app)
print([client.get(f'/run/{task}').json() for task in range(3)])
"""


@pytest.fixture(scope='module')
def python() -> str:
    return python_with(
        'fastapi-each-way', 'fastapi', 'httpx', 'opentelemetry-sdk', 'opentelemetry-instrumentation-fastapi'
    )


@pytest.mark.parametrize('provider', ['set', 'none'])
@pytest.mark.parametrize('how', ['bare', 'native', 'instrumented', 'contrib', 'starlette'])
def test_one_server_span_a_request(python: str, tmp_path: Path, how: str, provider: str) -> None:
    place = Place(tmp_path).write({'main.py': PROGRAM})
    plain = place.plain(python, 'main.py', how, provider)
    done = place.lens('--span-groups', 'http', '--no-summary', python, 'main.py', how, provider)
    assert (done.code, done.stdout) == (plain.code, plain.stdout)
    ours = [span.name for span in place.run.spans if span.kind == 2]
    theirs = done.stdout.count("['GET")
    # With a provider of its own, a span is the program's; else it is ours, by a rule or through the bridge.
    assert len(ours) == (3 if how == 'bare' or provider == 'none' else 0)
    assert theirs == (0 if how == 'bare' or provider == 'none' else 3)
