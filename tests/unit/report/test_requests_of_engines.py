# SPDX-License-Identifier: Apache-2.0
"""Queue, prefill and decode of requests to engines, from files, from journals, and from both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lens_auto.report.cli import main
from lens_auto.report.distributions import Distribution, Sum
from lens_auto.report.folder import Run, load
from lens_auto.report.requests import Requests, requests
from tests.unit.collect.journals import SECOND, Journal, Lab, Sleeper
from tests.unit.report.planted import BEGIN, attributes, synchronous

TIMES = ('queue', 'prefill', 'decode')
FIRST, TOKEN = 'gen_ai.server.time_to_first_token', 'gen_ai.server.time_per_output_token'


def point(
    values: list[float], begun: int = 0, at: int = BEGIN, bounds: tuple[float, ...] = (1.0, 2.0, 4.0), **labels: Any
) -> dict[str, Any]:
    counts = [0] * (len(bounds) + 1)
    for value in values:
        counts[sum(value > bound for bound in bounds)] += 1
    return {
        'startTimeUnixNano': str(begun),
        'timeUnixNano': str(at),
        'attributes': attributes(labels),
        'count': str(len(values)),
        'sum': sum(values),
        'bucketCounts': [str(one) for one in counts],
        'explicitBounds': list(bounds),
        'min': min(values),
        'max': max(values),
    }


def line(process: int, points: dict[str, list[dict[str, Any]]], temporality: int | str = 2) -> str:
    metrics = [
        {'name': name, 'unit': 's', 'histogram': {'dataPoints': each, 'aggregationTemporality': temporality}}
        for name, each in points.items()
    ]
    told: dict[str, Any] = {'process.pid': 1000 + process, 'service.instance.id': f'{process:032x}'}
    resource = {
        'attributes': attributes({'host.name': 'node0', 'ray.actor.class': 'Gen', 'lens.role': 'worker', **told})
    }
    return json.dumps({'resourceMetrics': [{'resource': resource, 'scopeMetrics': [{'metrics': metrics}]}]}) + '\n'


def engine(queue: list[float], prefill: list[float], decode: list[float], **more: Any) -> dict[str, Any]:
    parts = zip(TIMES, (queue, prefill, decode), strict=True)
    return {f'rl.vllm.request.{part}_time': [point(values, **more)] for part, values in parts}


def read(folder: Path, *lines: str) -> Run:
    (folder / 'metrics-node0-1.jsonl').write_text(''.join(lines))
    return load(str(folder))


def only(run: Run) -> Requests:
    (one,) = requests(run.store)
    return one


def test_shares_are_of_the_time_of_all_requests_together(tmp_path: Path) -> None:
    run = read(tmp_path, line(1, {**engine([1.0, 3.0], [1.0, 1.0], [2.0, 2.0]), FIRST: [point([2.0, 4.0])]}))
    found = only(run)
    assert found.process is None
    assert (found.count, found.mean) == (2, 5 * SECOND)
    assert found.shares == {'queue': 0.4, 'prefill': 0.2, 'decode': 0.4}
    assert (found.first, found.token, found.token_p95) == (3 * SECOND, None, None)


def test_the_last_of_a_running_sum_counts_and_every_difference(tmp_path: Path) -> None:
    grown = [engine([1.0] * n, [1.0] * n, [2.0] * n, at=BEGIN + n) for n in (1, 2, 7)]
    assert only(read(tmp_path, *(line(1, one) for one in grown))).count == 7
    for temporality in (1, 'AGGREGATION_TEMPORALITY_DELTA'):
        assert only(read(tmp_path, *(line(1, one, temporality) for one in grown))).count == 10


def test_a_sum_that_begins_anew_adds_to_the_one_before(tmp_path: Path) -> None:
    parts = [(1, 0), (4, 0), (2, 5), (3, 5)]  # how many, since when
    grown = [engine([1.0] * n, [1.0] * n, [2.0] * n, begun=begun) for n, begun in parts]
    assert only(read(tmp_path, *(line(1, one) for one in grown))).count == 4 + 3


def test_label_sets_add_up_and_engines_are_told_apart(tmp_path: Path) -> None:
    name = 'rl.vllm.request.queue_time'
    two = {name: [point([1.0], model='a'), point([3.0], model='b')]}
    run = read(tmp_path, line(1, two), line(2, engine([1.0], [1.0], [6.0])))
    everything, slower, faster = requests(run.store)
    assert (everything.process, everything.count, everything.queue) == (None, 3, 5 * SECOND)
    labels = [run.store.processes[one.process].label for one in (slower, faster) if one.process is not None]
    assert labels == ['Gen 1002', 'Gen 1001']
    assert faster.shares == {'queue': 1.0, 'prefill': 0.0, 'decode': 0.0}


def test_quantiles_are_as_near_as_buckets_tell() -> None:
    one = Sum(100, 0.0, 0.5, 3.0, (1.0, 2.0, 4.0), (50, 40, 10, 0))
    assert one.quantile(0.5) == pytest.approx(1.0)
    assert one.quantile(0.7) == pytest.approx(1.5)
    assert one.quantile(0.95) == pytest.approx(2.5)  # the bucket reaches to 4, and nothing is above 3
    assert one.quantile(1.0) == pytest.approx(3.0)
    assert one.quantile(0.0) == pytest.approx(0.5)
    assert Sum(5, 10.0).quantile(0.5) is None
    unlike = one.plus(Sum(1, 1.0, 1.0, 1.0, (7.0,), (1, 0)))
    assert (unlike.count, unlike.counts, unlike.quantile(0.5)) == (101, (), None)


def test_an_observation_that_a_sum_has_already_is_left_out() -> None:
    one = Distribution('x', 0, unit='s')
    one.take(Sum(2, 3.0, 1.0, 2.0, (1.5,), (1, 1)), since=0, at=10, delta=False)
    for at in (9, 10, 11):
        one.observe(at, 4.0)
    one.observe(12, float('nan'))
    assert (one.sum.count, one.sum.total, one.sum.counts) == (3, 7.0, (1, 2))


def _asked(journal: Journal, seconds: float) -> None:
    for part in TIMES:
        journal.point(f'rl.vllm.request.{part}_time', seconds, instrument='histogram', unit='s')
        journal.now += 1000


def test_a_live_run_has_those_that_are_written_and_those_that_are_not_once(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.folder.register(lab.spool)
    sleeper = Sleeper()
    try:
        journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
        _asked(journal, 1.0)
        run = load(lab.folder.path)
        assert run.live and only(run).count == 1
        collector = lab.collector()
        collector.reading.round()
        assert collector.flush()
        assert only(load(lab.folder.path)).count == 1
        _asked(journal, 2.0)
        found = only(load(lab.folder.path))
        assert (found.count, found.queue) == (2, 3 * SECOND)
    finally:
        sleeper.end()


def test_the_overview_shows_them_and_gives_them_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv('COLUMNS', '110')
    synchronous(steps=3).write(tmp_path)
    told = {**engine([1.0, 3.0], [1.0, 1.0], [2.0, 2.0]), FIRST: [point([2.0, 4.0])], TOKEN: [point([0.5, 0.5])]}
    read(tmp_path, line(1, told))
    assert main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    _, _, section = shown.partition('requests of the engines\n')
    bar, shares, heads, row, *_ = section.splitlines()
    assert len(bar.strip()) == 50
    assert [one for one in shares.split() if one[0].isalnum() and one != 'x'] == [
        *('queue', '40.0', 'prefill', '20.0', 'decode', '40.0'),
    ]
    assert heads.split() == 'of requests mean queue prefill decode first token p95 a token p95'.split()
    assert row.split() == 'all 2 5.00 s 40.0 % 20.0 % 40.0 % 3.00 s 3.80 s 500 ms 500 ms'.split()
    assert main(['overview', '--json', str(tmp_path)]) == 0
    (one,) = json.loads(capsys.readouterr().out)['requests']
    assert (one['process'], one['count'], one['queue'], one['first']) == (None, 2, 4 * SECOND, 3 * SECOND)
    monkeypatch.setenv('COLUMNS', '80')
    assert main([str(tmp_path)]) == 0
    assert '…' not in capsys.readouterr().out.partition('requests of the engines\n')[2].partition('\n\n')[0]


def test_a_run_without_an_engine_has_no_such_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    synchronous(steps=3).write(tmp_path)
    read(tmp_path, line(1, {FIRST: [point([1.0])]}))
    assert requests(load(str(tmp_path)).store) == []
    assert main([str(tmp_path)]) == 0
    assert 'requests of the engines' not in capsys.readouterr().out
