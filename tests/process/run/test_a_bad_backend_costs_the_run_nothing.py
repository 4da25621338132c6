# SPDX-License-Identifier: Apache-2.0
"""A backend that is down, slow, or refuses: the program does not notice, and a replay sends the run later."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from tests.helpers.otlp_receiver import Receiver
from tests.helpers.run import PATIENCE, Done, Place, Run

TRAIN = ('--span-groups', 'all', 'python', 'train.py', '5')
SPANS = 22
BAD = ('down', 'slow', '4xx', '5xx')
PROTOCOLS = ('grpc', 'http/protobuf')
Sent = set[tuple[str, str, str, str, int, int]]


@contextlib.contextmanager
def backend(behaviour: str, protocol: str) -> Iterator[tuple[Receiver, dict[str, str]]]:
    """A backend that behaves, and the environment that leads to it; a slow one answers after the test is over."""
    if behaviour == 'down':
        with Receiver() as gone:
            env = gone.environment(protocol)
        yield gone, env
        return
    with Receiver(behaviour, delay=600.0) as receiver:
        yield receiver, receiver.environment(protocol)


def sent(receiver: Receiver) -> Sent:
    return {
        (
            span.name,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.start_time_unix_nano,
            span.end_time_unix_nano,
        )
        for span in receiver.spans()
    }


def kept(run: Run) -> Sent:
    return {span.times for span in run.spans}


@pytest.mark.parametrize('protocol', PROTOCOLS)
@pytest.mark.parametrize('behaviour', BAD)
def test_the_program_and_the_launcher_end_and_the_data_stays(place: Place, behaviour: str, protocol: str):
    plain = place.plain('python', 'train.py', '5')
    with backend(behaviour, protocol) as (receiver, env):
        # That this returns at all is the promise: a slow backend answers only when the `with` is left.
        done: Done = place.lens(*TRAIN, env=env)
        assert receiver.spans() == [] and receiver.metric_list() == []

    assert (done.code, done.stdout) == (plain.code, plain.stdout)
    run = place.run
    assert (run.facts['complete'], run.facts['unsent']) == (False, {'spans': SPANS, 'points': len(run.points)})
    assert run.metric_names() == {'reward', 'tokens'}
    assert (len(run.spans), len(kept(run))) == (SPANS, SPANS)
    assert f'not sent: {SPANS} spans and {len(run.points)} points' in done.stderr
    assert '--replay' in done.stderr
    assert 'Traceback' not in done.stderr


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_a_replay_sends_it_once_with_its_original_ids_and_times(place: Place, protocol: str):
    with backend('5xx', protocol) as (_, env):
        place.lens(*TRAIN, env=env)
    run = place.run
    with Receiver() as receiver:
        env = receiver.environment(protocol)
        first = place.lens('--replay', str(run.path), env=env)

        assert first.code == 0, first.stderr
        assert len(receiver.spans()) == SPANS
        assert sent(receiver) == kept(run)
        gauges = [p for m in receiver.metric_list() if m.name == 'reward' for p in m.gauge.data_points]
        assert [(p.as_double, p.time_unix_nano) for p in gauges] == [
            (p.value, p.at) for p in run.points if p.name == 'reward'
        ]
        assert (run.facts['complete'], run.facts['unsent']) == (True, {})

        requests = receiver.requests
        assert place.lens('--replay', str(run.path), env=env).code == 0
        assert receiver.requests == requests, 'a second replay sends nothing'


def test_a_replay_that_fails_sends_the_rest_next_time(place: Place):
    with backend('down', 'grpc') as (_, env):
        place.lens(*TRAIN, env=env)
    run = place.run
    with Receiver('5xx') as receiver:
        # The SDK's own retries go on as long as it may take: ten seconds, if nobody says otherwise.
        env = {**receiver.environment('http/protobuf'), 'OTEL_EXPORTER_OTLP_TIMEOUT': '1'}
        failed = place.lens('--replay', str(run.path), env=env)

        assert failed.code == 1
        assert 'failed' in failed.stderr and 'Traceback' not in failed.stderr
        assert run.facts['complete'] is False
        receiver.behaviour = 'ok'
        assert place.lens('--replay', str(run.path), env=env).code == 0
        assert sent(receiver) == kept(run)


def test_a_replay_that_succeeds_says_so_and_forgets_what_failed_before(place: Place):
    with backend('down', 'grpc') as (_, env):
        place.lens(*TRAIN, env=env)
    with Receiver() as receiver:
        sent = place.lens('--replay', str(place.run.path), env=receiver.environment('grpc'))
        again = place.lens('--replay', str(place.run.path), env=receiver.environment('grpc'))
    assert 'sending: all of it is at ' in sent.stderr and 'sending: there was nothing left to send' in again.stderr
    assert 'failed' not in sent.stderr + again.stderr
    assert not any('failed' in note for note in place.run.facts['notes'])


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_a_backend_without_metrics_gets_the_traces_and_another_one_the_metrics_later(place: Place, protocol: str):
    with backend('down', protocol) as (_, env):
        place.lens(*TRAIN, env={**env, 'OTEL_EXPORTER_OTLP_TIMEOUT': '1'})
    run = place.run
    with Receiver('traces only') as traces, Receiver() as metrics:
        env = traces.environment(protocol)
        first = place.lens('--replay', str(run.path), env=env)

        assert first.code == 1
        assert sent(traces) == kept(run)
        assert run.facts['unsent'] == {'points': len(run.points)}
        assert f'not sent: {len(run.points)} points;' in first.stderr
        assert 'sending metrics to ' in first.stderr and 'sending traces' not in first.stderr

        there = metrics.environment(protocol)['OTEL_EXPORTER_OTLP_ENDPOINT']
        there += '' if protocol == 'grpc' else '/v1/metrics'
        second = place.lens('--replay', str(run.path), env={**env, 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT': there})

        assert second.code == 0, second.stderr
        assert len(traces.spans()) == SPANS, 'each once'
        assert {metric.name for metric in metrics.metric_list()} == {'reward', 'tokens'} and metrics.spans() == []
        assert (run.facts['complete'], run.facts['unsent']) == (True, {})


def test_a_run_meant_for_the_default_endpoint_is_replayed_to_it(place: Place):
    place.lens('--exporter', 'otlp', *TRAIN, env={'OTEL_EXPORTER_OTLP_TIMEOUT': '1'})
    tried = place.lens('--replay', str(place.run.path), env={'OTEL_EXPORTER_OTLP_TIMEOUT': '1'})
    assert tried.code == 1 and 'sending to ' in tried.stderr


def test_a_run_kept_in_a_folder_can_be_sent_afterwards(place: Place):
    run = place.record(*TRAIN)
    with Receiver() as receiver:
        assert place.lens('--replay', str(run.path), env=receiver.environment('grpc')).code == 0
        assert sent(receiver) == kept(run)


def test_a_backend_that_comes_back_during_the_run_gets_everything(place: Place):
    """The first steps are refused, the rest waits for the file that says the backend is well again."""
    place.write(
        {
            'program.py': 'import os, time, trainer\n'
            'def each(step):\n'
            '    while step == 3 and not os.path.exists("well"): time.sleep(0.02)\n'
            'trainer.fit(trainer.Config(), 5, each)\n'
            'while not os.path.exists("arrived"): time.sleep(0.02)\n'
        }
    )
    with Receiver('5xx') as receiver:
        env = receiver.environment('http/protobuf')
        launcher = place.start('lens-instrument', '--span-groups', 'all', 'python', 'program.py', env=env)
        try:
            while not receiver.requests:
                assert launcher.poll() is None
            receiver.behaviour = 'ok'
            place.write({'well': ''})
            while len(receiver.spans()) < SPANS - 1:
                assert launcher.poll() is None
            place.write({'arrived': ''})
            assert launcher.wait(60) == 0
        finally:
            if launcher.poll() is None:
                launcher.kill()
            launcher.communicate()
        assert len(sent(receiver)) == SPANS
    assert (place.run.facts['complete'], place.run.facts['unsent']) == (True, {})


@pytest.mark.parametrize('behaviour', ['ok', 'down', '5xx'])
def test_with_the_launcher_killed_a_replay_sends_what_no_backend_had(place: Place, behaviour: str):
    """The program runs on to its end. What the backend had acknowledged before is in no file any more."""
    place.write(
        {
            'program.py': 'import time, trainer\n'
            'trainer.fit(trainer.Config(), 150, lambda step: time.sleep(0.02))\nopen("over", "w").close()\n'
        }
    )
    with backend(behaviour, 'http/protobuf') as (before, env), Receiver() as after:
        command = ('lens-instrument', '--span-groups', 'all', 'python', 'program.py')
        with open(place.folder / 'out', 'wb') as out:
            launcher = place.start(*command, env=env, out=out)
            patient(lambda: (before.requests if behaviour != 'down' else 0) or step_said(place, 75))
            launcher.kill()
            launcher.wait()
        patient((place.cwd / 'over').exists)
        env = after.environment('http/protobuf')
        patient(lambda: not place.lens('--replay', str(place.run.path), env=env).code)

        spans = {span[2]: span for span in (*sent(before), *sent(after))}
        names = [span[0] for span in spans.values()]
        assert (names.count('step'), names.count('score'), names.count('job')) == (150, 150, 1)
        assert len(spans) == 2 + 150 * 4
        assert len(sent(after)) == len(after.spans()), 'each once'
        assert place.run.facts['complete'] is True


def step_said(place: Place, step: int) -> bool:
    return f'step {step} '.encode() in (place.folder / 'out').read_bytes()


def patient(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_without_the_sdk_the_launcher_says_what_to_install(place: Place):
    hidden = 'import sys; sys.modules["opentelemetry"] = None; from lens_auto.launch.main import main; main()'
    env = {'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:9'}

    done = place.plain('python', '-c', hidden, *TRAIN, env=env)

    assert done.code == 0
    assert "pip install 'lens-auto[otlp]'" in done.stderr
    assert len(place.run.spans) == SPANS
