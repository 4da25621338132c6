# SPDX-License-Identifier: Apache-2.0
"""A backend that takes all leaves nothing in the folder; with any other everything stays, and the run never waits."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lens_auto.collect import otlp, store
from lens_auto.collect.replay import replay
from tests.helpers.otlp_receiver import Receiver
from tests.unit.collect.journals import MS, Lab, spans

PROTOCOLS = ['grpc', 'http/protobuf']


def record(lab: Lab) -> None:
    journal = lab.journal(told={'dl.rank': 0})
    for number in (1, 2, 3):
        journal.now += MS
        journal.end_span(number, 'rl.step', trace=2**127 + number, items={'rl.iteration': number})
        journal.point('rl.reward', number / 4, span=(2**127 + number, number))
    journal.point('rl.tokens', 12, 'counter')
    journal.point('rl.latency', 0.3, 'histogram', 's')


def collect(lab: Lab, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, seconds: float = 8.0):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
        lab.environ[name] = value
    record(lab)
    collector = lab.collector({'exporter': 'otlp'})
    collector.start()
    begun = time.monotonic()
    totals = collector.finish(seconds, exit_code=0)
    return totals, time.monotonic() - begun


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_the_backend_gets_the_original_ids_times_and_resources(
    lab: Lab, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Receiver() as backend:
        headers = {'OTEL_EXPORTER_OTLP_HEADERS': 'x-team=rl'}
        totals, _ = collect(lab, {**backend.environment(protocol), **headers}, monkeypatch)
    assert totals.complete and not totals.unsent
    steps = sorted((span for span in backend.spans() if span.name == 'rl.step'), key=lambda span: span.span_id)
    assert [int.from_bytes(span.span_id, 'big') for span in steps] == [1, 2, 3]
    assert steps[2].trace_id == (2**127 + 3).to_bytes(16, 'big')
    assert steps[2].end_time_unix_nano - steps[2].start_time_unix_nano == MS
    assert [span.name for span in backend.spans()].count('lens.run') == 1
    resources = {item.key: item.value for item in backend.traces[0].resource.attributes}
    assert resources['service.name'].string_value == 'trainer'
    assert resources['telemetry.sdk.name'].string_value == 'lens-auto'
    assert resources['dl.rank'].int_value == 0
    found = {metric.name: metric for metric in backend.metric_list()}
    assert [point.as_double for point in found['rl.reward'].gauge.data_points] == [0.25, 0.5, 0.75]
    assert found['rl.tokens'].sum.data_points[0].as_int == 12
    assert found['rl.latency'].histogram.data_points[0].count == 1
    assert backend.headers['x-team'] == 'rl'
    assert not list(Path(lab.folder.path).glob('traces*')) and not os.path.exists(lab.spool)
    assert not os.path.exists(os.path.join(lab.folder.path, 'outbox'))


def test_each_signal_may_have_its_own_protocol(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as backend:
        environ = {
            'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL': 'http/protobuf',
            'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT': backend.http_endpoint + '/v1/traces',
            'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL': 'grpc',
            'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT': backend.grpc_endpoint,
        }
        totals, _ = collect(lab, environ, monkeypatch)
    assert totals.complete
    assert len(backend.spans()) == 4
    assert len(backend.metric_list()) == 3


@pytest.mark.parametrize('protocol', PROTOCOLS)
@pytest.mark.parametrize('behaviour', ['down', 'slow', '4xx', '5xx'])
def test_what_a_backend_does_not_take_stays_and_a_replay_sends_it_once(
    lab: Lab,
    protocol: str,
    behaviour: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Receiver('ok' if behaviour == 'down' else behaviour) as backend:
        environ = backend.environment(protocol)
        if behaviour == 'down':
            backend.__exit__(None, None, None)
        totals, took = collect(lab, environ, monkeypatch, 2.0)
    assert took < 2.5
    assert totals.unsent == {'spans': 4, 'points': 5}
    assert not totals.complete
    assert sorted(span['name'] for span in spans(lab.folder)) == ['lens.run', 'rl.step', 'rl.step', 'rl.step']
    assert capfd.readouterr() == ('', '')

    kept = {span['spanId'] for span in spans(lab.folder)}
    with Receiver() as healthy:
        later = {**lab.environ, **healthy.environment(protocol)}
        for name, value in healthy.environment(protocol).items():
            monkeypatch.setenv(name, value)
        assert replay(lab.folder.path, later) == 0
        assert replay(lab.folder.path, later) == 0
    assert sorted(span.span_id.hex() for span in healthy.spans()) == sorted(kept)
    assert len(healthy.metric_list()) == 3
    assert 'not sent' not in capfd.readouterr().err


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_a_backend_that_takes_no_metrics_gets_every_span_and_the_user_one_line(
    lab: Lab, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Receiver('traces only') as backend:
        environ = backend.environment(protocol)
        totals, _ = collect(lab, environ, monkeypatch)
    assert [span.name for span in backend.spans()].count('rl.step') == 3
    assert totals.unsent == {'points': 5}
    [note] = totals.notes
    assert note.startswith(f'sending metrics to {environ["OTEL_EXPORTER_OTLP_ENDPOINT"]} ({protocol}) failed: ')
    assert 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT' in note and 'metrics_enabled=false' in note
    assert otlp.is_about_sending(note)


class Places:
    """Exporters that only talk."""

    def __init__(self, traces: str, metrics: str) -> None:
        self._places = {store.TRACES: traces, store.METRICS: metrics}

    def endpoint(self, kind: str) -> str:
        return self._places[kind]

    def said(self, kind: str) -> str:
        return 'code: 404' if kind == store.METRICS else ''


@pytest.mark.parametrize(
    ('places', 'left', 'told'),
    [
        (('one', 'one'), {'traces': True, 'metrics': True}, ['sending to one failed']),
        (('one', 'one'), {'traces': False}, ['sending traces to one was not done in time']),
        (
            ('one', 'two'),
            {'traces': False, 'metrics': True},
            [
                'sending traces to one was not done in time',
                'sending metrics to two failed: code: 404; if it takes traces alone: '
                'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT names another place for metrics, '
                '--set metrics_enabled=false leaves them out',
            ],
        ),
    ],
)
def test_what_was_not_sent_is_told_once_for_each_place(
    places: tuple[str, str], left: dict[str, bool], told: list[str]
) -> None:
    notes = otlp.failures(Places(*places), left)  # pyright: ignore[reportArgumentType]
    assert notes == told
    assert all(map(otlp.is_about_sending, notes))


def test_metrics_that_nobody_takes_leave_the_traces_their_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, '_MOST_CHUNKS', 3)
    written = store.Store(str(tmp_path), 'node-1', sending=True)
    for _ in range(5):
        written.put(store.METRICS, '{}', 1)
        written.flush()
        written.commit()
    written.put(store.TRACES, '{}', 1)
    written.flush()
    written.commit()
    kinds = [store.kind_of(path) for path in store.chunks(str(tmp_path))]
    assert kinds == [store.METRICS] * 3 + [store.TRACES]
    assert len((tmp_path / 'metrics-node-1.jsonl').read_text().splitlines()) == 2


def test_without_the_sdk_everything_stays_and_the_user_is_told_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'lens_auto.collect.otlp_sdk', None)
    totals, _ = collect(lab, {'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:1'}, monkeypatch, 2.0)
    assert len(spans(lab.folder)) == 4
    assert len(totals.notes) == 1
    assert "pip install 'lens-auto[otlp]'" in totals.notes[0]


def test_one_batch_that_is_always_refused_does_not_hold_up_the_others(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    class Picky:
        def __init__(self, environ: object) -> None:
            pass

        def send(self, kind: str, line: str) -> bool:
            if 'poison' in line:
                return False
            sent.append(line)
            return True

        def endpoint(self, kind: str) -> str:
            return 'nowhere'

        def note(self, kind: str, text: str) -> None:
            pass

        def shutdown(self) -> None:
            pass

        def said(self, kind: str) -> str:
            return ''

    monkeypatch.setattr('lens_auto.collect.otlp_sdk.Exporters', Picky)
    monkeypatch.setattr(otlp, '_FIRST_RETRY', 0.01)
    outbox = Path(lab.folder.path, 'outbox')
    outbox.mkdir()
    for number, text in enumerate(['poison', 'a', 'b'], 1):
        (outbox / f'node-1-{number:08d}-1-traces.jsonl').write_text(text + '\n')
    sender = otlp.Sender(lab.folder.path, 'node-1', {})
    sender.start()
    deadline = time.monotonic() + 10
    while len(sent) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    sender.drain(time.monotonic())
    assert sorted(sent) == ['a\n', 'b\n']
    assert [path.name for path in outbox.iterdir()] == ['node-1-00000001-1-traces.jsonl']


def test_a_run_that_keeps_its_folder_imports_no_sdk(lab: Lab) -> None:
    code = """
import sys
import lens_auto.collect.collector, lens_auto.collect.replay
assert not [name for name in sys.modules if name.startswith(('opentelemetry', 'google', 'grpc', 'requests'))]
"""
    assert subprocess.run([sys.executable, '-c', code], cwd=Path.cwd()).returncode == 0
