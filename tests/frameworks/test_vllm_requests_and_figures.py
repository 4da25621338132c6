# SPDX-License-Identifier: Apache-2.0
"""What the rules for vLLM make of an engine, on a small package with its module paths and signatures.

`vllm_like/` is ours, written for these tests; `test_vllm_on_a_real_engine.py` holds the same to the real one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.run import Place, Run

LIKE = Path(__file__).parent / 'vllm_like'
GENERATE = """
from vllm.entrypoints.llm import LLM
from vllm.v1.engine.output_processor import FinishReason
llm = LLM('tiny')
llm.generate([3, 5, 0])
llm.generate([7])
"""
ALL = '--span-groups=per_step,job,model_init,per_prompt'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    shutil.copytree(LIKE, made.cwd, dirs_exist_ok=True, ignore=shutil.ignore_patterns('__pycache__'))
    return made


def ran(place: Place, *arguments: str, program: str = GENERATE, **env: str) -> Run:
    (place.cwd / 'program.py').write_text(program)
    return place.record(*arguments, 'python', 'program.py', env=env)


def totals(run: Run) -> dict[str, float]:
    """The sum of each metric's last points."""
    found: dict[str, float] = {}
    for point in run.points:
        detail = point.attributes.get('gen_ai.token.type') or point.attributes.get('rl.finish_reason') or ''
        found[f'{point.name} {detail}'.strip()] = point.value
    return found


def test_a_call_of_an_engine_has_a_span_and_its_requests_have_one_each_below_it(place: Place) -> None:
    run = ran(place, ALL)
    assert (
        run.tree('gen_ai.usage.output_tokens')
        == """\
lens.run
  rl.vllm.load_model
  rl.vllm.generate
    rl.vllm.request gen_ai.usage.output_tokens=3
    rl.vllm.request gen_ai.usage.output_tokens=5
    rl.vllm.request! gen_ai.usage.output_tokens=0
  rl.vllm.generate
    rl.vllm.request gen_ai.usage.output_tokens=7"""
    )
    [first, *_] = run.named('rl.vllm.request')
    expected = {
        'gen_ai.provider.name': 'vllm',
        'gen_ai.operation.name': 'text_completion',
        'gen_ai.request.model': 'tiny',
        'gen_ai.request.temperature': 0.5,
        'gen_ai.request.max_tokens': 9,
        'gen_ai.usage.input_tokens': 1,
        'gen_ai.response.id': '0',
        'rl.vllm.preemptions': 1,
    }
    assert expected.items() <= first.attributes.items()
    assert 'gen_ai.request.top_p' not in first.attributes  # it is what it is when nobody sets it
    assert first.attributes['gen_ai.response.finish_reasons'] == {'values': [{'stringValue': 'length'}]}
    assert [name for name, _ in first.events] == ['queued', 'scheduled', 'first_token', 'last_token']
    parts = [first.attributes[f'rl.vllm.{part}_time'] for part in ('queue', 'prefill', 'decode')]
    assert sum(parts) == pytest.approx((first.end - first.start) / 1e9, abs=0.05)


def test_without_asking_the_engine_is_left_as_it_is_and_what_can_be_counted_is(place: Place) -> None:
    program = GENERATE + 'print("stats", llm.llm_engine.log_stats)\n'
    (place.cwd / 'program.py').write_text(program)
    done = place.lens('--no-summary', 'python', 'program.py')
    assert done.stdout == 'stats False\n'
    found = totals(place.run)
    assert 0.008 <= found.pop('rl.vllm.batch.duration') < 1  # four requests of two milliseconds each at least
    assert found == {
        'rl.vllm.generations.ok length': 3,
        'rl.vllm.generations.failed error': 1,
        'gen_ai.client.token.usage input': 1 + 2 + 3 + 1,
        'gen_ai.client.token.usage output': 3 + 5 + 0 + 7,
        'rl.vllm.prompt_tokens': 7,
        'rl.vllm.generation_tokens': 15,
        'rl.vllm.prompt_length': 7,
        'rl.vllm.generation_length': 15,
    }
    assert 'rl.vllm.request' not in place.run.names()


def test_a_group_switches_statistics_on_and_the_engines_log_says_so(place: Place) -> None:
    program = f'import logging\nlogging.basicConfig(level="INFO")\n{GENERATE}print("stats", llm.llm_engine.log_stats)\n'
    (place.cwd / 'program.py').write_text(program)
    done = place.lens('--no-summary', '--span-groups=per_step,engine', 'python', 'program.py')
    assert done.stdout == 'stats True\n'
    said = 'INFO:vllm.engine.arg_utils:lens-instrument: statistics are switched on (asked for by span group engine)\n'
    assert done.theirs == said
    names = place.run.metric_names()
    assert {
        'gen_ai.server.request.duration',
        'gen_ai.server.time_to_first_token',
        'gen_ai.server.time_per_output_token',
        'rl.vllm.request.queue_time',
        'rl.vllm.request.prefill_time',
        'rl.vllm.request.decode_time',
        'rl.vllm.preemptions',
        'rl.vllm.requests.running',
        'rl.vllm.kv_cache.usage',
        'rl.vllm.prefix_cache.hit_rate',
    } <= names


def test_an_engine_is_seen_at_work_however_short_and_apart_from_its_neighbours(place: Place) -> None:
    program = """
from types import SimpleNamespace
from vllm.v1.metrics.loggers import StatLoggerManager
manager = StatLoggerManager()
def record(running, queries, engine):
    prefix = SimpleNamespace(queries=queries, hits=queries // 2)
    stats = SimpleNamespace(
        num_running_reqs=running, num_waiting_reqs=2 * running, kv_cache_usage=running / 8, prefix_cache_stats=prefix
    )
    manager.record(stats, SimpleNamespace(num_generation_tokens=4), engine_idx=engine)
record(3, 10, 0)
record(2, 6, 1)
record(2, 0, 1)
record(0, 0, 1)
record(0, 0, 0)
record(0, 2, 1)
"""
    points = ran(place, program=program).points

    def course(name: str, engine: int | None) -> list[float]:
        return [one.value for one in points if (one.name, one.attributes.get('rl.vllm.engine')) == (name, engine)]

    assert course('rl.vllm.requests.running', None) == [3, 0]
    assert course('rl.vllm.requests.running', 1) == [2, 0, 0]  # the last was done in one step
    assert course('rl.vllm.requests.waiting', None) == [6, 0]
    assert course('rl.vllm.kv_cache.usage', 1) == [0.25, 0, 0]
    assert course('rl.vllm.prefix_cache.queries', None)[-1:] == [10]
    assert course('rl.vllm.prefix_cache.queries', 1)[-1:] == [8]
    assert course('rl.vllm.prefix_cache.hit_rate', 1) == [0.5, 0.5]
    assert [len(course('rl.vllm.tokens_per_sec', engine)) for engine in (None, 1)] == [1, 1]


def test_what_is_aborted_and_what_dies_with_its_engine_has_failed(place: Place) -> None:
    program = """
from vllm.entrypoints.llm import LLM
from types import SimpleNamespace
engine = LLM('tiny').llm_engine
asked = SimpleNamespace(temperature=0.5)
engine.add_request(0, 1, asked)
engine.output_processor.abort_requests(['0'], False)
engine.add_request(1, 1, asked)
engine.output_processor.abort_requests(['1-0000'], True)
engine.add_request(2, 1, asked)
engine.output_processor.propagate_error(RuntimeError())
engine.output_processor.request_states.clear()
engine.add_request(3, 1, asked)
"""
    run = ran(place, ALL, program=program)
    found = totals(run)
    assert found['rl.vllm.generations.failed abort'] == 2
    assert found['rl.vllm.generations.failed engine_dead'] == 1
    ends = [(span.error, span.attributes.get('lens.truncated', False)) for span in run.named('rl.vllm.request')]
    assert ends == [(False, False), (False, False), (True, False), (True, True)]


def test_under_nemo_rls_worker_its_driver_counts_the_tokens(place: Place) -> None:
    folder = place.cwd / 'nemo_rl/models/generation/vllm'
    folder.mkdir(parents=True)
    (folder / 'vllm_worker.py').write_text('class VllmGenerationWorkerImpl:\n    def generate(self): ...\n')
    (folder / 'vllm_worker_async.py').write_text('')
    sync = ran(place, program='import nemo_rl.models.generation.vllm.vllm_worker\n' + GENERATE)
    assert totals(sync)['rl.vllm.generations.ok length'] == 3
    of_the_driver = {'gen_ai.client.token.usage', 'rl.vllm.prompt_tokens', 'rl.vllm.generation_tokens'}
    assert not (of_the_driver | {'rl.vllm.batch.duration'}) & sync.metric_names()
    place.write({'nemo_rl/telemetry.py': 'import nemo.lens\nimport opentelemetry.sdk\n', 'nemo/lens/__init__.py': ''})
    native = 'import nemo_rl.telemetry\n' + GENERATE
    assert 'rl.vllm.generations.ok' in ran(place, program=native).metric_names()
    for variable in ('NEMO_RL_OTEL_ENABLED', 'NEMO_LENS_ENABLED'):
        counted = ran(place, program=native, **{variable: '1'}).metric_names()
        assert 'rl.vllm.prompt_length' in counted and not (of_the_driver | {'rl.vllm.generations.ok'}) & counted
    both = (
        'import nemo_rl.models.generation.vllm.vllm_worker\nimport nemo_rl.models.generation.vllm.vllm_worker_async\n'
    )
    assert 'gen_ai.client.token.usage' in ran(place, program=both + GENERATE).metric_names()


def test_once_the_budget_is_spent_the_slowest_the_longest_and_the_failed_are_kept(place: Place) -> None:
    rules = (place.cwd / 'few.yaml').resolve()
    rules.write_text('framework: few\nrules:\n- {kind: vllm, on: request, group: per_prompt, budget: 5}\n')
    builtin = 'rl.vllm.request'
    run = ran(
        place,
        ALL,
        f'--rules={rules}',
        program=GENERATE.replace('[3, 5, 0]', '[0 if n == 70 else 50 if n == 60 else 1 + n % 3 for n in range(100)]'),
    )
    own = [rule for rule in run.facts['rules'] if rule['where'].endswith('few.yaml:3')]
    [row] = own
    # Five by the budget, one that failed, eight slowest and the longest of the batch, and the one of the second batch.
    assert row['spans'] == 5 + 1 + 9 + 1
    keys = {span.attributes['gen_ai.response.id'] for span in run.named(builtin)}
    assert {'0', '60', '70'} <= keys  # the straggler is the first prompt: the engine finishes it last


def test_a_request_passes_its_span_on_to_vllms_own_tracer(place: Place) -> None:
    program = (
        GENERATE
        + """
request = llm.llm_engine.sent[0]
print(request.trace_headers['traceparent'], llm.llm_engine.traceparent)
for number, trace in enumerate(('a' * 32, request.trace_headers['traceparent'].split('-')[1])):
    llm.llm_engine.add_request(10 + number, 1, None, {'traceparent': f'00-{trace}-' + 'b' * 16 + '-01'})
    print(llm.llm_engine.sent[-1].trace_headers['traceparent'])
import os
print([name for name in os.environ if name.lower().startswith(('otel', 'tracep'))], llm.llm_engine.log_stats)
"""
    )
    (place.cwd / 'program.py').write_text(program)
    done = place.lens('--no-summary', ALL, '--set', 'vllm_native_tracing=1', 'python', 'program.py')
    assert done.code == 0, done.stderr
    first_line, theirs, below, environ = done.stdout.splitlines()
    ours, start = first_line.split()
    [first, *_] = place.run.named('rl.vllm.request')
    assert ours == f'00-{first.trace}-{first.id}-01'
    assert start == f'00-{first.trace}-{place.run.only("rl.vllm.load_model").id}-01'
    assert theirs == f'00-{"a" * 32}-{"b" * 16}-01'  # the caller's own
    assert below == f'00-{first.trace}-{place.run.named("rl.vllm.request")[-1].id}-01'  # it is above ours
    assert environ == "['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] True"


@pytest.mark.parametrize(
    ('env', 'told'),
    [
        ({'FAKE_OTEL': '0'}, 'OpenTelemetry and its OTLP exporters cannot be imported there'),
        ({'HTTP_PROXY': 'http://proxy:1'}, 'HTTP_PROXY is set, and 127.0.0.1 is not in no_proxy'),
    ],
)
def test_where_vllm_cannot_send_it_is_left_alone_and_the_run_says_why(
    place: Place, env: dict[str, str], told: str
) -> None:
    run = ran(place, ALL, '--set', 'vllm_native_tracing=1', **env)
    [rule] = [rule for rule in run.facts['rules'] if rule['kind'] == 'vllm' and rule['name'] == 'rl.vllm.tracing']
    assert list(rule['missing']) == [f'vLLM cannot send its spans: {told}']
    assert len(run.named('rl.vllm.request')) == 4


def test_with_the_setting_off_nothing_of_vllms_tracer_is_touched(place: Place) -> None:
    program = GENERATE + 'print(llm.llm_engine.sent[0].trace_headers, llm.llm_engine.traceparent)\n'
    (place.cwd / 'program.py').write_text(program)
    assert place.lens('--no-summary', ALL, 'python', 'program.py').stdout == 'None None\n'
