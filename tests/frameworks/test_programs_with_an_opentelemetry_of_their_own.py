# SPDX-License-Identifier: Apache-2.0
"""Real packages that bring OpenTelemetry along do what they do without us, and nothing is recorded twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.packages import python_with
from tests.helpers.program import Outcome, Program, function

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(900)]

_OTEL = ('opentelemetry-instrumentation-fastapi', 'opentelemetry-sdk')
FASTAPI = {
    'old': ('fastapi==0.100.1', 'httpx<0.28', *_OTEL),
    'newest, with telemetry of its own': ('fastapi', 'httpx', *_OTEL),
}
RULES = [
    function('outer', 'work:outer'),
    function('step', 'work:step', name=('arg', 'what')),
]
WORK = """
def outer(f): return f()
def step(what='step'): return what
"""
EXPORT = """
import json, os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
class Exporter(SpanExporter):
    def export(self, spans):
        with open(os.environ['EXPORTED'], 'a') as file:
            for span in spans:
                parent = f'{span.parent.span_id:016x}' if span.parent else ''
                row = [span.name, span.kind.name, f'{span.context.span_id:016x}', parent]
                file.write(json.dumps(row) + '\\n')
    def shutdown(self): pass
made = TracerProvider(); made.add_span_processor(SimpleSpanProcessor(Exporter())); trace.set_tracer_provider(made)
"""
APP = """
import warnings; warnings.filterwarnings('ignore')
from fastapi import FastAPI
from fastapi.testclient import TestClient
import work
app = FastAPI()
@app.get('/rollout/{n}')
async def rollout(n: int):
    work.step('served')
    return {'n': n}
@app.get('/fails')
def fails():
    work.step('fails')
    raise ValueError('secret')
"""
CONTRIB = """
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
FastAPIInstrumentor.instrument_app(app, exclude_spans=['send', 'receive'])
"""
REQUESTS = """
client = TestClient(app, raise_server_exceptions=False)
print(client.get('/rollout/3').json(), client.get('/fails').status_code, client.get('/rollout/x').status_code)
print(client.get('/rollout/4', headers={'traceparent': '00-' + '12' * 16 + '-' + '34' * 8 + '-01'}).json())
"""
ALONE = 'served\nfails\nserved'
SERVED = """
GET /rollout/{n} span.kind='server'
  served
GET /fails! span.kind='server'
  fails
GET /rollout/{n} span.kind='server'
GET /rollout/{n} span.kind='server'
  served
""".strip()


def _run(folder: Path, source: str, interpreter: str, **environ: str) -> tuple[Outcome, list[list[str]]]:
    program = Program(folder, {'work.py': WORK, 'main.py': source})
    exported = {name: folder / name for name in ('with', 'without')}
    traced = program.traced(RULES, python=interpreter, EXPORTED=str(exported['with']), **environ)
    plain = program.plain(python=interpreter, EXPORTED=str(exported['without']), **environ)
    assert traced.visible() == plain.visible()
    assert traced.code == 0, traced.stderr
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []
    rows = {
        name: [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        for name, path in exported.items()
    }
    assert [row[:2] for row in rows['with']] == [row[:2] for row in rows['without']]
    return traced, rows['with']


@pytest.mark.parametrize('version', FASTAPI)
def test_fastapi_without_a_provider(tmp_path: Path, version: str) -> None:
    traced, _ = _run(tmp_path, APP + REQUESTS, python_with(*FASTAPI[version]))
    assert traced.journal.tree() == ALONE


@pytest.mark.parametrize('version', FASTAPI)
def test_fastapi_with_the_contrib_instrumentor_and_no_provider(tmp_path: Path, version: str) -> None:
    traced, _ = _run(tmp_path, APP + CONTRIB + REQUESTS, python_with(*FASTAPI[version]))
    assert traced.journal.tree('span.kind') == SERVED
    assert traced.journal.spans[-2].parent == b'\x34' * 8


@pytest.mark.parametrize('contrib', ['', CONTRIB], ids=['native', 'contrib'])
@pytest.mark.parametrize('version', FASTAPI)
def test_fastapi_with_an_sdk_has_one_server_span_a_request(tmp_path: Path, version: str, contrib: str) -> None:
    source = EXPORT + APP + contrib + REQUESTS
    traced, theirs = _run(tmp_path, source, python_with(*FASTAPI[version]), LENS_EXPORTER='otlp')
    servers = [row for row in theirs if row[1] == 'SERVER']
    assert len(servers) == (0 if version == 'old' and not contrib else 4)
    assert sorted(traced.journal.names()) == sorted(ALONE.split())
    known = {row[2] for row in theirs}
    assert all(span.parent.hex() in known for span in traced.journal.spans) or not servers


MLFLOW = """
import os, warnings; warnings.filterwarnings('ignore')
os.environ.update(MLFLOW_ENABLE_ASYNC_TRACE_LOGGING='false', MLFLOW_ALLOW_FILE_STORE='true')
import mlflow, tempfile, work
from opentelemetry import trace
mlflow.set_tracking_uri('file://' + tempfile.mkdtemp())
mlflow.create_experiment('e'); mlflow.set_experiment('e')
@mlflow.trace(name='root')
def traced():
    work.step('in mlflow')
    with mlflow.start_span('child') as span:
        span.set_inputs({'a': 1})
        work.step('deeper')
work.outer(traced)
traced()
print(type(trace.get_tracer_provider()))
found = mlflow.search_traces(return_type='list')
print(sorted([(s.name, bool(s.parent_id)) for t in found for s in t.data.spans]))
"""


@pytest.mark.parametrize('own', ['true', 'false'])
@pytest.mark.parametrize('exporter', ['file', 'otlp'])
def test_mlflow_keeps_its_traces_whole(tmp_path: Path, own: str, exporter: str) -> None:
    environ = {'MLFLOW_USE_DEFAULT_TRACER_PROVIDER': own, 'LENS_EXPORTER': exporter}
    traced, _ = _run(tmp_path, MLFLOW, python_with('mlflow-skinny'), **environ)
    assert "[('child', True), ('child', True), ('root', False), ('root', False)]" in traced.stdout
    assert traced.journal.tree() == 'outer\n  in mlflow\n  deeper\nin mlflow\ndeeper'


LOOP = """
import asyncio, decimal, uvloop
from concurrent.futures import ThreadPoolExecutor
import work
async def child(n):
    await asyncio.sleep(0)
    work.step(f'task {n}')
    await asyncio.to_thread(work.step, f'thread {n}')
def main():
    async def several():
        print(type(asyncio.get_running_loop()).__module__)
        await asyncio.gather(child(1), child(2))
        await asyncio.get_running_loop().run_in_executor(None, work.step, 'executor')
        print(await asyncio.get_running_loop().run_in_executor(None, lambda: decimal.getcontext().prec))
    decimal.getcontext().prec = 5
    uvloop.run(several())
work.outer(main)
"""


def test_uvloop_carries_the_span_as_asyncio_does(tmp_path: Path) -> None:
    traced, _ = _run(tmp_path, LOOP, python_with('uvloop'))
    assert traced.stdout == 'uvloop\n28\n'
    outer, *inside = traced.journal.spans
    assert sorted(span.name for span in inside) == ['executor', 'task 1', 'task 2', 'thread 1', 'thread 2']
    assert {span.parent for span in inside} == {outer.id}
