# SPDX-License-Identifier: Apache-2.0
"""A real vLLM engine on this machine's CPU, four ways, each run once and looked at by several tests.

The figures are held to what vLLM itself says in its outputs. Starting an engine takes half a minute on an idle machine.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lens_auto.report.cli import main as report
from lens_auto.rules.cli import main as rules
from tests.helpers import run
from tests.helpers.ray_program import RayPlace
from tests.helpers.run import LENS, Place, Run, Span
from tests.helpers.vllm_venv import NoVllm, model, python_with_vllm, wanted

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(1500)]
PROGRAMS = Path(__file__).parent / 'vllm_programs'
PATIENCE = 1200.0
GROUPS = '--span-groups=per_step,job,model_init,per_prompt'
NATIVE = ('--set', 'vllm_native_tracing=1')
ENGINE = {
    'HF_HUB_OFFLINE': '1',
    'OMP_NUM_THREADS': '1',
    'VLLM_CPU_KVCACHE_SPACE': '1',
    'VLLM_LOGGING_LEVEL': 'WARNING',
    'VLLM_NO_USAGE_STATS': '1',
}
ONE_PROCESS = {'VLLM_ENABLE_V1_MULTIPROCESSING': '0'}


@pytest.fixture(scope='module', params=wanted())
def python(request: pytest.FixtureRequest) -> str:
    try:
        return python_with_vllm(request.param)
    except NoVllm as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope='module', autouse=True)
def _patience() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, 'PATIENCE', PATIENCE)
        yield


def placed(place: Any, python: str) -> Any:
    place.env |= {**ENGINE, 'PATH': f'{Path(python).parent}:{place.env["PATH"]}'}
    shutil.copytree(PROGRAMS, place.cwd, dirs_exist_ok=True, ignore=shutil.ignore_patterns('__pycache__'))
    return place


def lines(text: str) -> list[Any]:
    """The lines of a program's output that are JSON."""
    return [json.loads(line) for line in text.splitlines() if line[:1] in '[{']


def sums(run: Run) -> dict[str, float]:
    """What each metric came to in all, over all processes."""
    last: dict[tuple[str, ...], float] = {}
    for point in run.points:
        kind = str(point.attributes.get('gen_ai.token.type') or point.attributes.get('rl.finish_reason') or '')
        last[point.name, kind, str(point.resource['process.pid'])] = point.value
    found: dict[str, float] = {}
    for (name, kind, _), value in last.items():
        key = f'{name} {kind}'.strip()
        found[key] = found.get(key, 0) + value
    return found


def names_above(run: Run, span: Span) -> list[str]:
    by_id = {each.id: each for each in run.spans}
    found: list[str] = []
    while span.parent in by_id:
        span = by_id[span.parent]
        found.append(span.name)
    return found


def test_every_rule_finds_its_functions(python: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rules(['check', '--python', python, str(run.REPOSITORY / 'rules' / 'vllm.yaml')]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    count = int(last.split()[0])
    assert last == f'{count} rules: {count} matched' and count > 30


# ------------------------------------------------------------------------------------------------------------- offline
@pytest.fixture(scope='module')
def offline(python: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[Any]]:
    place: Place = placed(Place(tmp_path_factory.mktemp('offline')), python)
    done = place.lens('--no-summary', GROUPS, *NATIVE, python, 'offline.py', str(model()))
    assert done.code == 0, done.stderr
    return place.run, lines(done.stdout)


def told_by_vllm(said: list[Any]) -> list[dict[str, Any]]:
    return [request for batch in said[:3] for request in batch]


def test_an_offline_engine_starts_in_three_processes_below_one_span(offline: tuple[Run, list[Any]]) -> None:
    run, _ = offline
    [load] = run.named('rl.vllm.load_model')
    ours = ('engine_core.start', 'worker.start', 'worker.load_model', 'engine_core.init_kv_cache', 'worker.warm_up')
    for name in ours:
        assert names_above(run, run.only(f'rl.vllm.{name}'))[-2:] == ['rl.vllm.load_model', 'lens.run']
    roles = {span.resource['lens.role'] for span in run.spans if span.trace == load.trace}
    assert {'driver', 'vllm engine core', 'vllm worker'} <= roles
    # vLLM's own, sent by the exporters of three processes and joined here.
    assert names_above(run, run.only('Load weights'))[-2:] == ['rl.vllm.load_model', 'lens.run']
    assert run.only('Load weights').resource['lens.role'] == 'vllm worker'


def test_each_request_is_below_its_call_and_vllms_own_span_below_it(offline: tuple[Run, list[Any]]) -> None:
    run, said = offline
    sequences = sum(len(request['tokens']) for request in told_by_vllm(said))
    requests = run.named('rl.vllm.request')
    assert len(requests) == sequences == 17
    above = [names_above(run, span) for span in requests]
    assert above == 15 * [['rl.vllm.generate', 'lens.run']] + 2 * [['rl.vllm.chat', 'lens.run']]
    natives = run.named('llm_request')
    assert sorted(span.parent for span in natives) == sorted(span.id for span in requests)
    for native in natives:
        [ours] = [span for span in requests if span.id == native.parent]
        # Its start is a wall-clock time as a float, and taken before the request is registered.
        assert abs(native.start - ours.start) < 1e9
        for name in ('gen_ai.latency.time_in_queue', 'gen_ai.latency.time_to_first_token'):
            own = {'time_in_queue': 'queue_time', 'time_to_first_token': 'time_to_first_token'}[name.split('.')[-1]]
            assert ours.attributes[f'rl.vllm.{own}'] == native.attributes[name]


def test_ids_of_vllms_spans_are_no_seeded_ones(offline: tuple[Run, list[Any]]) -> None:
    run, _ = offline
    ids = [span.id for span in run.spans]
    assert len(ids) == len(set(ids))
    assert 'e3e70682c2094cac' not in ids  # the first draw after `random.seed(0)`


def test_figures_are_the_engines_own(offline: tuple[Run, list[Any]]) -> None:
    run, said = offline
    single = [request for request in told_by_vllm(said) if len(request['tokens']) == 1]
    requests = run.named('rl.vllm.request')[: len(single)]
    for span, told in zip(requests, single, strict=True):
        assert span.attributes['gen_ai.usage.input_tokens'] == told['prompt']
        assert span.attributes['gen_ai.usage.output_tokens'] == len(told['tokens'][0])
        assert span.attributes['gen_ai.response.finish_reasons'] == {'values': [{'stringValue': told['reasons'][0]}]}
        assert span.attributes['rl.vllm.time_to_first_token'] == told['first']
        assert span.attributes['rl.vllm.queue_time'] == told['queue']
        assert span.attributes['rl.vllm.decode_time'] == told['decode']
        assert [name for name, _ in span.events] == ['queued', 'scheduled', 'first_token', 'last_token']
    found = sums(run)
    generated = sum(len(tokens) for request in told_by_vllm(said) for tokens in request['tokens'])
    asked = sum(request['prompt'] * len(request['tokens']) for request in told_by_vllm(said))
    assert found['rl.vllm.generation_tokens'] == found['gen_ai.client.token.usage output'] == generated
    assert found['rl.vllm.prompt_tokens'] == found['gen_ai.client.token.usage input'] == asked
    ok = {name: value for name, value in found.items() if name.startswith('rl.vllm.generations.')}
    assert sum(ok.values()) == 17 and {name.split()[0] for name in ok} == {'rl.vllm.generations.ok'}
    first = sum(span.attributes['rl.vllm.time_to_first_token'] for span in run.named('rl.vllm.request'))
    assert found['gen_ai.server.time_to_first_token'] == pytest.approx(first)
    calls = [*run.named('rl.vllm.generate'), *run.named('rl.vllm.chat')]
    took = sum(span.end - span.start for span in calls) / 1e9
    assert found['rl.vllm.batch.duration'] == pytest.approx(took, rel=0.01)
    assert 0 < found['rl.vllm.engine.steps'] and 0 < found['rl.vllm.engine.executions']


def test_what_a_worker_does_for_a_call_is_below_it(offline: tuple[Run, list[Any]]) -> None:
    run, _ = offline
    reload = run.only('rl.vllm.worker.reload_weights')
    assert names_above(run, reload) == ['rl.vllm.engine_core.call', 'rl.vllm.collective_rpc', 'lens.run']
    [call] = [span for span in run.named('rl.vllm.engine_core.call') if span.id == reload.parent]
    assert (call.resource['lens.role'], call.attributes['rl.vllm.method']) == ('vllm engine core', 'collective_rpc')


def test_the_report_has_the_shares_of_what_requests_waited_for(
    offline: tuple[Run, list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = offline
    spent = {
        part: sum(span.attributes[f'rl.vllm.{part}_time'] for span in run.named('rl.vllm.request'))
        for part in ('queue', 'prefill', 'decode')
    }
    assert report(['overview', '--json', str(run.path)]) == 0
    [told] = json.loads(capsys.readouterr().out)['requests']
    assert told['count'] == 17
    assert told['shares'] == pytest.approx({part: each / sum(spent.values()) for part, each in spent.items()})
    firsts = [span.attributes['rl.vllm.time_to_first_token'] * 1e9 for span in run.named('rl.vllm.request')]
    assert told['first'] == pytest.approx(sum(firsts) / 17)
    assert min(firsts) <= told['first_p95'] <= max(firsts)
    assert report([str(run.path)]) == 0
    shown = capsys.readouterr().out.partition('requests of the engines')[2]
    assert all(f'{part} {100 * told["shares"][part]:.1f} %' in shown for part in spent)


def test_the_program_generates_what_it_generates_without_us(
    offline: tuple[Run, list[Any]], python: str, tmp_path: Path
) -> None:
    _, said = offline
    plain = placed(Place(tmp_path), python).plain(python, 'offline.py', str(model()), env=ONE_PROCESS)
    assert plain.code == 0, plain.stderr
    without = lines(plain.stdout)
    assert [[r['tokens'] for r in batch] for batch in without[:3]] == [
        [r['tokens'] for r in batch] for batch in said[:3]
    ]
    assert without[0][0]['first'] is None  # an offline engine keeps no statistics unless it is asked to


# ------------------------------------------------------------------------------------------------------------ compiled
def test_a_compiled_model_has_the_same_graphs_and_no_more_also_with_a_rule_inside(python: str, tmp_path: Path) -> None:
    def made_by(how: str, *command: str) -> tuple[Place, dict[str, Any]]:
        (tmp_path / how).mkdir()
        place: Place = placed(Place(tmp_path / how), python)
        # Everything is compiled anew in each run.
        place.env |= {**ONE_PROCESS, 'VLLM_CACHE_ROOT': str(tmp_path / f'{how}.vllm')}
        place.env |= {'TORCHINDUCTOR_CACHE_DIR': str(tmp_path / f'{how}.inductor')}
        done = place.plain(*command, python, 'compiled.py', str(model()))
        assert done.code == 0, done.stderr
        [told] = lines(done.stdout)
        return place, told

    _, without = made_by('plain')
    place, with_us = made_by('lens', LENS, '--no-summary', '--rules', 'compiled.yaml', GROUPS)
    assert without['torch']['stats']['unique_graphs'] >= 1 and without['torch']['stats']['calls_captured'] > 100
    assert without['torch']['graph_break'] == {}
    # Graphs, calls in them, breaks, compilations, reasons to compile once more, what the backends did; and the answers.
    assert with_us == without
    assert len(place.run.named('rl.vllm.request')) == 32
    [rule] = [rule for rule in place.run.facts['rules'] if rule['name'] == 'rl.layers.mlp']
    assert rule['targets'] and not rule['missing'] and rule['spans'] == 0  # inside a graph nothing is recorded


# -------------------------------------------------------------------------------------------------------- side by side
@pytest.fixture(scope='module')
def side_by_side(python: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[Any]]:
    place: Place = placed(Place(tmp_path_factory.mktemp('side')), python)
    command = ('--rules', 'trainer.yaml', GROUPS, *NATIVE, python, 'side_by_side.py', str(model()), 'kill')
    done = place.lens('--no-summary', *command)
    assert done.code == 0, done.stderr
    return place.run, lines(done.stdout)


def test_sixty_four_requests_at_once_are_each_below_their_own_rollout(side_by_side: tuple[Run, list[Any]]) -> None:
    run, (said, _) = side_by_side
    rollouts = {span.id: span for span in run.named('rl.trainer.rollout')}
    requests = {span.attributes['gen_ai.response.id']: span for span in run.named('rl.vllm.request')}
    natives = {span.parent for span in run.named('llm_request')}
    for told in said[:63]:
        span = requests[told['id']]
        assert f'r{rollouts[span.parent].attributes["rl.rollout"]}' == told['id']
        assert span.attributes['gen_ai.usage.output_tokens'] == told['generated']
        assert span.attributes['rl.vllm.time_to_first_token'] == told['first']
        assert span.attributes['rl.vllm.queue_time'] == told['queue']
        each = span.attributes.get('rl.vllm.time_per_output_token')
        assert each == (pytest.approx(told['each']) if told['generated'] > 1 else None)
        assert span.id in natives
    # The last was given up by its reader, so vLLM has no span of it; ours says so.
    given_up = requests['r63']
    assert given_up.attributes['gen_ai.response.finish_reasons'] == {'values': [{'stringValue': 'abort'}]}
    assert not given_up.error and given_up.id not in natives


def test_calls_side_by_side_are_joined_each_to_its_own(side_by_side: tuple[Run, list[Any]]) -> None:
    run, _ = side_by_side
    rollouts = {span.id: span for span in run.named('rl.trainer.rollout')}
    by_id = {span.id: span for span in run.spans}
    reloads = run.named('rl.vllm.worker.reload_weights')
    calls = [by_id[span.parent] for span in reloads]
    outer = [by_id[span.parent] for span in calls]
    assert [span.name for span in (*calls, *outer)] == 2 * ['rl.vllm.engine_core.call'] + 2 * ['rl.vllm.collective_rpc']
    assert sorted(rollouts[span.parent].attributes['rl.rollout'] for span in outer) == [70, 71]
    for reload, call, caller in zip(reloads, calls, outer, strict=True):
        assert caller.start <= call.start <= reload.start < reload.end <= call.end


def test_an_engine_core_that_is_killed_takes_no_request_along(side_by_side: tuple[Run, list[Any]]) -> None:
    run, (_, errors) = side_by_side
    assert errors == 8 * ['EngineDeadError']
    dead = [span for span in run.named('rl.vllm.request') if span.error]
    assert {span.attributes['gen_ai.response.id'] for span in dead} == {f'r{n}' for n in range(100, 108)}
    assert sums(run)['rl.vllm.generations.failed engine_dead'] == 8
    assert run.facts['exit_code'] == 0
    assert len(run.named('rl.vllm.engine_core.start')) == 1  # what the killed process had finished is there


# -------------------------------------------------------------------------------------------------------------- server
@pytest.fixture(scope='module')
def served(python: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[Any]]:
    return _serve(placed(Place(tmp_path_factory.mktemp('serve')), python), python)


def _serve(place: Place, python: str, *more: str) -> tuple[Run, list[Any]]:
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    options = f'--dtype float32 --max-model-len 256 --enforce-eager --max-num-seqs 8 --host 127.0.0.1 --port {port}'
    command = (LENS, '--no-summary', GROUPS, *NATIVE, 'vllm', 'serve', str(model()), *options.split(), *more)
    with open(place.folder / 'log', 'wb') as log:
        server = place.start(*command, out=log)
        try:
            _wait(f'http://127.0.0.1:{port}/health', server)
            done = place.plain(python, 'client.py', f'http://127.0.0.1:{port}', str(model()))
            assert done.code == 0, done.stderr
            time.sleep(2)  # several servers are ended at once, and vLLM's own exporter sends twice a second
        finally:
            server.terminate()
            server.wait(PATIENCE)
    return place.run, lines(done.stdout)


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise AssertionError('the server did not start')


def test_a_served_request_is_below_its_caller_also_when_it_is_streamed(served: tuple[Run, list[Any]]) -> None:
    _is_below_its_caller(*served)


def _is_below_its_caller(run: Run, said: list[Any]) -> None:
    [usage] = said
    plain, streamed = run.only('POST /v1/completions'), run.only('POST /v1/chat/completions')
    assert (streamed.trace, streamed.parent) == ('0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331')
    assert names_above(run, plain) == ['lens.run']
    for span, told in zip((plain, streamed), usage, strict=True):
        [request] = [each for each in run.named('rl.vllm.request') if each.parent == span.id]
        [native] = [each for each in run.named('llm_request') if each.parent == request.id]
        assert request.trace == native.trace == span.trace
        assert request.attributes['gen_ai.usage.output_tokens'] == told['completion_tokens']
        assert request.attributes['gen_ai.usage.input_tokens'] == told['prompt_tokens']
        assert span.start <= request.start < request.end <= span.end


# --------------------------------------------------------------------------------------------------------------- on Ray
@pytest.fixture(scope='module')
def on_ray(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, list[Any]]]:
    place = placed(RayPlace(tmp_path_factory.mktemp('ray'), python), python)
    command = ('--rules', 'trainer.yaml', GROUPS, *NATIVE, python, 'on_ray.py', str(model()))
    done = place.execute(LENS, '--no-summary', *command, env=ONE_PROCESS, patience=PATIENCE)
    assert done.code == 0, done.stderr
    yield place.run, lines(done.stdout)
    place.close()


def test_an_engine_in_a_ray_actor_is_below_the_drivers_step(on_ray: tuple[Run, list[Any]]) -> None:
    run, [generated] = on_ray
    assert generated == [[5, 5, 5], [5, 5, 5]]
    steps = run.named('rl.trainer.step')
    calls = [span for span in run.named('rl.vllm.generate') if 'rl.trainer.step' in names_above(run, span)]
    assert len(calls) == len(steps) == 2
    for step, call in zip(steps, calls, strict=True):
        assert call.trace == step.trace
        requests = [span for span in run.named('rl.vllm.request') if span.parent == call.id]
        assert [span.attributes['gen_ai.usage.output_tokens'] for span in requests] == [5, 5, 5]
        natives = [span for span in run.named('llm_request') if span.parent in {each.id for each in requests}]
        assert {span.trace for span in natives} == {step.trace} and len(natives) == 3
    assert sums(run)['rl.vllm.generations.ok length'] == 7


# --------------------------------------------------------------------------------------------------- several processes
def roles(run: Run) -> list[str]:
    """Of the processes of the run that took part, as its roll-call has them."""
    return sorted(row['role'] for row in run.facts['processes'] if row['outcome'] == 'armed')


def engines(run: Run, name: str) -> dict[Any, Span]:
    """The spans of a name by the number of their engine."""
    return {span.resource.get('rl.vllm.engine'): span for span in run.named(name)}


def test_engines_side_by_side_start_below_one_span_and_are_told_apart(python: str, tmp_path: Path) -> None:
    place: Place = placed(Place(tmp_path), python)
    done = place.lens('--no-summary', '--rules', 'trainer.yaml', GROUPS, python, 'data_parallel.py', str(model()))
    assert done.code == 0, done.stderr
    run = place.run
    assert lines(done.stdout) == [16 * [8]]
    started = engines(run, 'rl.vllm.engine_core.start')
    assert set(started) == {0, 1}
    for span in (*started.values(), run.only('rl.vllm.coordinator.start')):
        assert names_above(run, span)[-2:] == ['rl.vllm.load_model', 'lens.run']
    # Each worker below its own engine.
    workers = run.named('rl.vllm.worker.start')
    assert {span.parent for span in workers} == {span.id for span in started.values()}
    assert {'vllm engine core': 2, 'vllm worker': 2, 'vllm coordinator': 1}.items() <= Counter(roles(run)).items()
    rollouts = {span.id: span.attributes['rl.rollout'] for span in run.named('rl.trainer.rollout')}
    requests = run.named('rl.vllm.request')
    told = {span.attributes['gen_ai.response.id']: f'r{rollouts[span.parent]}' for span in requests}
    assert len(told) == 16 and all(name == above for name, above in told.items())
    # Both have worked, and their figures are apart.
    running = {point.attributes.get('rl.vllm.engine', 0) for point in run.points if 'requests.running' in point.name}
    steps = {point.resource.get('rl.vllm.engine') for point in run.points if point.name == 'rl.vllm.engine.steps'}
    assert running == steps == {0, 1}


def test_several_servers_before_several_engines_are_named_and_joined(python: str, tmp_path: Path) -> None:
    run, said = _serve(placed(Place(tmp_path), python), python, '--data-parallel-size', '2')
    _is_below_its_caller(run, said)
    assert {span.resource['lens.role'] for span in run.named('rl.vllm.request')} == {'vllm api server'}
    found = Counter(roles(run))
    assert {
        'vllm api server': 2,
        'vllm engine core': 2,
        'vllm worker': 2,
        'vllm coordinator': 1,
    }.items() <= found.items()
    started = engines(run, 'rl.vllm.engine_core.start')
    assert set(started) == {0, 1} and {names_above(run, span)[-1] for span in started.values()} == {'lens.run'}


def test_workers_that_are_ray_actors_are_below_the_engine_that_made_them(python: str, tmp_path: Path) -> None:
    place = placed(RayPlace(tmp_path, python), python)
    try:
        command = ('--rules', 'trainer.yaml', GROUPS, python, 'ray_executor.py', str(model()))
        env = {**ONE_PROCESS, 'PYTHONPATH': str(place.cwd)}
        done = place.execute(LENS, '--no-summary', *command, env=env, patience=PATIENCE)
        assert done.code == 0, done.stderr
        run = place.run
    finally:
        place.close()
    assert lines(done.stdout) == [[[5, 5], [5, 5]]]
    start = run.only('rl.vllm.worker.start')
    assert start.resource['lens.role'] == 'vllm worker'
    assert names_above(run, start)[-2:] == ['rl.vllm.load_model', 'lens.run']
    assert names_above(run, run.only('rl.vllm.worker.load_model'))[0] == 'rl.vllm.worker.start'
    assert 'worker' in roles(run)
    for span in run.named('rl.vllm.request'):
        assert names_above(run, span)[:2] == ['rl.vllm.generate', 'rl.trainer.step']
    assert sums(run)['rl.vllm.engine.executions'] > 0


# ----------------------------------------------------------------------------------------------------- by other ways
def test_vllms_own_hook_reaches_its_processes_where_the_path_does_not(python: str, tmp_path: Path) -> None:
    place: Place = placed(Place(tmp_path), python)
    site = tmp_path / 'site'
    information = site / 'lens_auto-0.dist-info'
    information.mkdir(parents=True)
    (site / 'lens_auto').symlink_to(run.REPOSITORY / 'lens_auto')
    (information / 'METADATA').write_text('Metadata-Version: 2.1\nName: lens-auto\nVersion: 0\n')
    (information / 'entry_points.txt').write_text('[vllm.general_plugins]\nlens_auto = lens_auto.vllm.plugin:load\n')
    # Not the folder of ours that has stage 1 in it: as if lens-auto were installed in vLLM's environment.
    command = ('env', f'PYTHONPATH={site}', python, 'offline.py', str(model()))
    done = place.lens('--no-summary', GROUPS, *command)
    assert done.code == 0, done.stderr
    found = place.run
    assert len(found.named('rl.vllm.request')) == 17
    assert {'driver', 'vllm engine core', 'vllm worker'} <= set(roles(found))
    steps = {point.resource['lens.role'] for point in found.points if point.name.startswith('rl.vllm.engine.')}
    assert steps == {'vllm engine core', 'vllm worker'}


def test_the_demo_with_a_real_engine_has_the_shares_in_its_report(
    python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place: Place = placed(Place(tmp_path), python)
    example = (str(run.REPOSITORY / 'examples' / 'run_grpo.py'), '--engine', 'vllm', '--heads', '2', '--steps', '2')
    done = place.lens('--no-summary', '--span-groups=per_step,job,per_prompt', python, *example)
    assert done.code == 0, done.stderr
    found = place.run
    generates = [
        span for span in found.named('rl.vllm.generate') if 'rl.grpo.collect_rollouts' in names_above(found, span)
    ]
    assert len(generates) == 2
    # New weights, in the worker's process, below the step that brings them.
    reloads = [names_above(found, span) for span in found.named('rl.vllm.worker.reload_weights')]
    assert len(reloads) >= 2
    for names in reloads:
        assert names[:2] == ['rl.vllm.engine_core.call', 'rl.vllm.collective_rpc'] and 'rl.grpo.step' in names
    assert report(['overview', '--json', str(found.path)]) == 0
    [told] = json.loads(capsys.readouterr().out)['requests']
    assert told['count'] == len(found.named('rl.vllm.request')) > 100
    assert sum(told['shares'].values()) == pytest.approx(1) and told['decode'] > 0 < told['prefill']
    assert report([str(found.path)]) == 0
    shown = capsys.readouterr().out
    assert 'requests of the engines' in shown and ' x\n' in shown and 'so many were open at once' in shown
