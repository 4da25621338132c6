# SPDX-License-Identifier: Apache-2.0
"""Exporter `otlp` against a backend that answers: what arrives is what the program's own journal holds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from lens_auto.record import format as form
from tests.helpers.journal import Journal, journal
from tests.helpers.otlp_receiver import Receiver
from tests.helpers.run import Place

# Keeps its journal and says what OTEL_* variables it was given.
PROGRAM = """\
import json, os, shutil
import trainer
trainer.fit(trainer.Config(), 5)
shutil.copytree(os.environ['LENS_SPOOL'], 'kept')
print(json.dumps({name: value for name, value in os.environ.items() if name.startswith('OTEL_')}))
"""
PROTOCOLS = ('grpc', 'http/protobuf')
TRAIN = ('--span-groups', 'all', 'python', 'program.py')


def send(place: Place, receiver: Receiver, protocol: str, *flags: str, **env: str) -> dict[str, str]:
    """Run the program with a backend; the answer is its own OTEL_* environment."""
    place.write({'program.py': PROGRAM})
    done = place.lens(*flags, *TRAIN, env={**receiver.environment(protocol), **env})
    assert done.code == 0, done.stderr
    assert 'not sent' not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def shift(kept: Journal) -> int:
    """Wall clock less monotonic clock, as the process's first record has it."""
    header = next(record for record in kept.records if record[0] == form.HEADER)
    return header[3] - header[4]


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_spans_arrive_with_the_ids_and_times_of_the_journal(place: Place, protocol: str):
    with Receiver() as receiver:
        send(place, receiver, protocol)
        arrived = {
            (s.name, s.trace_id, s.span_id, s.end_time_unix_nano - s.start_time_unix_nano): s for s in receiver.spans()
        }
    kept = journal(place.cwd / 'kept')
    recorded = {(span.name, span.trace, span.id, span.duration): span for span in kept.spans}

    assert len(recorded) == 1 + 5 * 4
    assert {name[0] for name in arrived.keys() - recorded.keys()} == {'lens.run'}
    assert recorded.keys() < arrived.keys()
    # One clock for all: the same distance from the journal's to the nanosecond, and nearly that of its own anchor.
    shifts = {arrived[name].start_time_unix_nano - span.start for name, span in recorded.items()}
    assert len(shifts) == 1
    assert abs(shifts.pop() - shift(kept)) < 1_000_000_000
    for name, span in recorded.items():
        assert arrived[name].parent_span_id == span.parent
        assert len(arrived[name].links) == len(span.links)


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_metric_points_arrive_with_their_times(place: Place, protocol: str):
    with Receiver() as receiver:
        send(place, receiver, protocol)
        metrics = {metric.name: metric for metric in receiver.metric_list() if metric.name != 'tokens'}
        gauges = [(p.as_double, p.time_unix_nano) for m in receiver.metric_list() for p in m.gauge.data_points]
        sums = [p for m in receiver.metric_list() if m.name == 'tokens' for p in m.sum.data_points]
        starts = [s.start_time_unix_nano for s in receiver.spans() if s.name == 'job']
    kept = journal(place.cwd / 'kept')
    [job] = [span for span in kept.spans if span.name == 'job']
    recorded = [(record[5], record[1]) for record in kept.records if record[0] == form.POINT and record[2] == 'reward']

    assert list(metrics) == ['reward']
    assert sorted(gauges) == [(value, at + starts[0] - job.start) for value, at in sorted(recorded)]
    assert max(point.as_int or point.as_double for point in sums) == 5 * 8


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_headers_are_sent_and_resource_attributes_honoured(place: Place, protocol: str):
    with Receiver() as receiver:
        given = {
            'OTEL_EXPORTER_OTLP_HEADERS': 'api-key=k1,x-team=rl%20post',
            'OTEL_RESOURCE_ATTRIBUTES': 'deployment.environment=test,team=rl',
            'OTEL_SERVICE_NAME': 'my trainer',
        }
        own = send(place, receiver, protocol, **given)

        assert (receiver.headers['api-key'], receiver.headers['x-team']) == ('k1', 'rl post')
        assert len(receiver.traces) >= 1 and len(receiver.metrics) >= 1
        for group in (*receiver.traces, *receiver.metrics):
            resource = attributes(group.resource.attributes)
            assert (resource['deployment.environment'], resource['team']) == ('test', 'rl')
            assert resource['service.name'] == 'my trainer'
            assert resource['nemo.run.id'] == place.run.path.name
        assert own == {**given, **receiver.environment(protocol)}


def attributes(items: Iterable[Any]) -> dict[str, str]:
    return {item.key: item.value.string_value for item in items}


def test_an_endpoint_in_the_environment_is_enough(place: Place):
    """With it the exporter is `otlp`, and what is recorded is what frameworks document: `default`, not every step."""
    with Receiver() as receiver:
        done = place.lens('python', 'train.py', env=receiver.environment('grpc'))

        assert {span.name for span in receiver.spans()} == {'lens.run', 'job'}
        assert {metric.name for metric in receiver.metric_list()} == {'reward', 'tokens'}
    assert place.run.facts['settings']['exporter'][0] == 'otlp'
    assert 'span groups not selected: policy_update, reward, rollout, step' in done.stderr


def test_grpc_is_the_default_protocol_and_a_signal_may_have_its_own_endpoint(place: Place):
    with Receiver() as grpc, Receiver() as http:
        env = {
            'OTEL_EXPORTER_OTLP_ENDPOINT': grpc.grpc_endpoint,
            'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT': f'{http.http_endpoint}/v1/metrics',
            'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL': 'http/protobuf',
        }
        place.lens('python', 'train.py', env=env)

        assert {span.name for span in grpc.spans()} == {'lens.run', 'job'}
        assert grpc.metric_list() == []
        assert {metric.name for metric in http.metric_list()} == {'reward', 'tokens'}


@pytest.mark.parametrize('compression', ['gzip', 'deflate'])
def test_compressed_payloads_arrive_as_well(place: Place, compression: str):
    with Receiver() as receiver:
        send(place, receiver, 'http/protobuf', OTEL_EXPORTER_OTLP_COMPRESSION=compression)

        assert len(receiver.spans()) == 22


def test_what_was_acknowledged_is_not_kept_twice(place: Place):
    with Receiver() as receiver:
        send(place, receiver, 'grpc')
        requests = receiver.requests

        assert place.run.spans == [] and place.run.points == []
        assert place.run.facts['complete'] is True
        assert place.lens('--replay', str(place.run.path), env=receiver.environment('grpc')).code == 0
        assert receiver.requests == requests
