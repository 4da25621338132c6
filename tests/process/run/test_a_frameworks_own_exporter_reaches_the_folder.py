# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.helpers.run import Place

# As vLLM is told to: the SDK with its HTTP exporter, below a span that the run knows.
PROGRAM = """
import os, sys
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import work
trace, _, span = os.environ['LENS_RUN_ROOT'].partition('-')
provider = TracerProvider(resource=Resource({'vllm.process_id': str(os.getpid())}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(os.environ['LENS_NATIVE_ENDPOINT'] + '/v1/traces')))
above = TraceContextTextMapPropagator().extract({'traceparent': f'00-{trace}-{span}-01'})
for number in range(3):
    with provider.get_tracer('vllm').start_as_current_span('llm_request', above):
        work.step(number)
provider.shutdown()
"""
FILES = {
    'work.py': 'def step(n): ...\n',
    'program.py': PROGRAM,
    'lens.yaml': 'framework: w\nrules:\n- {kind: function, target: work:step, group: step, name: rl.w.step}\n',
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path).write(FILES)


def test_its_spans_are_in_the_run_folder_with_those_of_the_same_process(place: Place) -> None:
    run = place.record('--set', 'vllm_native_tracing=1', sys.executable, 'program.py')
    natives, [root] = run.named('llm_request'), run.named('lens.run')
    assert [(span.trace, span.parent) for span in natives] == 3 * [(root.trace, root.id)]
    assert {span.resource['service.instance.id'] for span in natives} == {
        span.resource['service.instance.id'] for span in run.named('rl.w.step')
    }
    for native, step in zip(natives, run.named('rl.w.step'), strict=True):
        assert native.start <= step.start + 1_000_000 and step.end <= native.end + 1_000_000  # one clock, to the ms


def test_beside_the_command_too(place: Place) -> None:
    done = place.lens('--exec', '--set', 'vllm_native_tracing=1', sys.executable, 'program.py')
    assert done.code == 0, done.stderr
    until = time.monotonic() + 30
    while time.monotonic() < until and not (place.runs and place.run.named('lens.run')):
        time.sleep(0.1)
    assert len(place.run.named('llm_request')) == 3


@pytest.mark.parametrize(
    'flags', [(), ('--set', 'vllm_native_tracing=1', '--exporter', 'otlp'), ('--set', 'vllm_native_tracing=0')]
)
def test_nothing_listens_unless_it_is_asked_for_and_there_is_no_backend(place: Place, flags: tuple[str, ...]) -> None:
    (place.cwd / 'program.py').write_text('import os\nprint(os.environ.get("LENS_NATIVE_ENDPOINT"))\n')
    env = {'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:1'} if 'otlp' in flags else {}
    assert place.lens('--no-summary', *flags, sys.executable, 'program.py', env=env).stdout == 'None\n'
