# SPDX-License-Identifier: Apache-2.0
"""One run in which everything is known, through the command: every figure of every table is within 1 % of it.

The truth is worked out here from what was planted, with plain arithmetic; the system's tables and the ages of open
spans have files of their own.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from lens_auto.report.cli import main
from tests.unit.report.planted import BEGIN, MS, Plant
from tests.unit.report.test_requests_of_engines import engine, line

STEPS = range(1, 13)
SPEEDS = (1.0, 1.02, 0.98, 1.6)  # of the four generators; the last one is slow by itself
BEFORE, AFTER = 5, 3  # milliseconds of the rollout in which no generator is at work
OTHER = 10
UNITS = {'h': 3600e9, 'm': 60e9, 's': 1e9, 'ms': 1e6, 'us': 1e3, 'ns': 1.0}


def generated(step: int, worker: int) -> float:
    return (300 + 5 * step) * SPEEDS[worker]


def phases(step: int, slower: float = 1.0) -> dict[str, float]:
    """Milliseconds of what follows each other in a step."""
    return {
        'rl.grpo.data_processing': 20,
        'rl.idle.buffer_starvation': 50,
        'rl.grpo.collect_rollouts': generated(step, 3) + BEFORE + AFTER,
        'rl.grpo.compute_rewards': 30 + step,
        'rl.grpo.compute_logprobs': 120,
        'rl.grpo.policy_update': (350 + 7 * (step % 3)) * slower,
        'rl.grpo.weight_sync': 30,
    }


KIND = {
    'rl.grpo.data_processing': 'data',
    'rl.idle.buffer_starvation': 'wait',
    'rl.grpo.collect_rollouts': 'generation',
    'rl.grpo.compute_rewards': 'reward',
    'rl.grpo.compute_logprobs': 'logprob',
    'rl.grpo.policy_update': 'training',
    'rl.grpo.weight_sync': 'refit',
}


def length(step: int, slower: float = 1.0) -> float:
    return sum(phases(step, slower).values()) + OTHER


def planted(folder: Path, slower: float = 1.0) -> str:
    plant = Plant()
    driver = plant.process(0, lens__role='driver')
    for worker in range(4):
        plant.process(worker + 1, lens__role='worker', ray__actor__class='Gen', ray__actor__name=f'gen-{worker}')
    now = BEGIN
    for step in STEPS:
        top = plant.span(driver, 'rl.grpo.step', now, now + round(length(step, slower) * MS), rl__iteration=step)
        at = now + OTHER // 2 * MS
        for name, spent in phases(step, slower).items():
            end = at + round(spent * MS)
            phase = plant.span(driver, name, at, end, top)
            if name == 'rl.grpo.collect_rollouts':
                plant.span(driver, 'ray.get Gen.generate', at, end, phase)
                for worker in range(4):
                    begin = at + BEFORE * MS
                    done = begin + round(generated(step, worker) * MS)
                    plant.span(worker + 1, 'rl.grpo.generate', begin, done, phase)
            at = end
        now += round(length(step, slower) * MS)
    points = [{'timeUnixNano': str(BEGIN + step * MS), 'asDouble': (step - 4) ** 2 / 100} for step in STEPS]
    metric = {'name': 'rl.policy_loss', 'gauge': {'dataPoints': points}}
    gauge = json.dumps({'resourceMetrics': [{'resource': {}, 'scopeMetrics': [{'metrics': [metric]}]}]})
    requests = line(1, engine([1.0, 3.0], [1.0, 1.5], [2.0, 2.5]))
    (folder / 'metrics-node0-1.jsonl').write_text(gauge + '\n' + requests)
    return str(plant.write(folder))


def near(truth: Any) -> Any:
    return pytest.approx(truth, rel=0.01)


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return planted(tmp_path_factory.mktemp('run'))


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(*arguments: str) -> Any:
        assert main([*arguments, '--json']) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def _in_all(name: str) -> list[float]:
    return [phases(step)[name] * MS for step in STEPS]


def _quantile(values: list[float], part: float) -> float:
    return statistics.quantiles(values, n=100, method='inclusive')[round(100 * part) - 1]


def _check_phases(listed: list[dict[str, Any]]) -> None:
    found = {one['path'][-1]: one for one in listed}
    steps = [length(step) * MS for step in STEPS]
    everything = {name: _in_all(name) for name in KIND} | {'rl.grpo.step': steps}
    for name, spent in everything.items():
        one = found[name]
        assert (one['count'], one['processes'], one['steps']) == (12, 1, 12)
        assert one['total'] == near(sum(spent))
        assert (one['mean'], one['per_step']) == (near(statistics.mean(spent)), near(statistics.mean(spent)))
        assert (one['p50'], one['p95']) == (near(_quantile(spent, 0.5)), near(_quantile(spent, 0.95)))
        assert one['longest'] == near(max(spent))
        assert one['share'] == near(sum(spent) / sum(steps))
        assert one['spread'] == near(statistics.stdev(spent))
    assert found['rl.grpo.step']['own'] == near(12 * OTHER * MS)
    assert found['rl.grpo.collect_rollouts']['own'] == 0  # the wait covers all of it
    each = [generated(step, worker) * MS for step in STEPS for worker in range(4)]
    one = found['rl.grpo.generate']
    assert (one['count'], one['processes']) == (48, 4)
    assert (one['total'], one['mean'], one['longest']) == (
        near(sum(each)),
        near(statistics.mean(each)),
        near(max(each)),
    )
    assert one['share'] == near(sum(each) / 4 / sum(steps))  # of an average process


def _check_stragglers(listed: list[dict[str, Any]]) -> None:
    (one,) = listed
    means = [statistics.mean(generated(step, worker) * MS for step in STEPS) for worker in range(4)]
    median = statistics.median(means[:3])
    assert (one['process'], one['name'], one['count'], one['peers']) == ('Gen/gen-3', 'rl.grpo.generate', 12, 4)
    assert (one['mean'], one['median'], one['ratio']) == (near(means[3]), near(median), near(means[3] / median))
    assert one['lost'] == near(12 * (means[3] - median))
    assert one['share'] == near(12 * (means[3] - median) / sum(length(step) * MS for step in STEPS))


def _check_steps(listed: list[dict[str, Any]]) -> None:
    assert [one['number'] for one in listed] == list(STEPS)
    for one in listed:
        step = one['number']
        assert one['duration'] == near(length(step) * MS)
        wanted = {KIND[name]: near(spent * MS) for name, spent in phases(step).items()}
        assert one['kinds'] == wanted | {'other': near(OTHER * MS)}
        assert one['phases'] == {name: near(spent * MS) for name, spent in phases(step).items()}
        assert one['start'] == BEGIN + sum(round(length(before) * MS) for before in range(1, step))


def test_overview(run: str, told: Any) -> None:
    found = told('overview', run)
    later = list(STEPS)[1:]  # the first one compiles and fills caches
    time = sum(length(step) for step in later)
    assert found['mean_step'] == near(time / len(later) * MS)
    shares = {KIND[name]: near(sum(phases(step)[name] for step in later) / time) for name in KIND}
    assert found['shares'] == shares | {'other': near(OTHER * len(later) / time)}
    assert [one['name'] for one in found['verdicts']] == ['one rank slow']
    _check_phases(found['phases'])
    _check_stragglers(found['stragglers'])
    steps = [{'number': step, 'duration': near(length(step) * MS), 'cut_short': False} for step in STEPS]
    assert found['steps'] == steps
    # Of the rollout the time in which a generator was at work is productive.
    busy = sum(generated(step, 3) + phases(step)['rl.grpo.compute_rewards'] for step in STEPS)
    busy += sum(phases(step)['rl.grpo.policy_update'] for step in STEPS)
    assert found['goodput'] == {
        'idle': near(12 * 50 * MS),
        'wasted': 0,
        'productive': near(busy * MS),
        'overhead': near(12 * (20 + 120 + 30) * MS),
        'unaccounted': near(12 * (OTHER + BEFORE + AFTER) * MS),
    }
    (one,) = found['requests']
    assert (one['count'], one['mean']) == (2, near(5.5e9))
    assert one['shares'] == {'queue': near(4 / 11), 'prefill': near(2.5 / 11), 'decode': near(4.5 / 11)}
    metric = next(one for one in found['metrics'] if one['name'] == 'rl.policy_loss')
    assert [metric[name] for name in ('count', 'first', 'last', 'best', 'lowest', 'highest')] == [
        *(12, near(0.09), near(0.64), 0, 0, near(0.64)),
    ]


def test_steps_and_tail(run: str, told: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _check_steps(told('steps', run))
    assert main(['tail', '--once', '--json', run]) == 0
    _check_steps([json.loads(text) for text in capsys.readouterr().out.splitlines()])


def test_phases(run: str, told: Any) -> None:
    _check_phases(told('phases', run))


def test_one_step_with_its_critical_path(run: str, told: Any) -> None:
    found = told('step', '7', run)
    assert found['step']['duration'] == near(length(7) * MS)
    spent = phases(7)
    rollout = spent.pop('rl.grpo.collect_rollouts')
    slowest = generated(7, 3)
    # The wait is passed through to the generator it waits for; before that began and after it ended, it is the wait.
    truth = {(name, 'driver'): near(time * MS) for name, time in spent.items()}
    truth[('rl.grpo.generate', 'Gen/gen-3')] = near(slowest * MS)
    truth[('rl.grpo.step', 'driver')] = near(OTHER * MS)
    path = {(one['name'], one['process']): one['time'] for one in found['critical_path']}
    waited = sum(path.pop((name, 'driver'), 0) for name in ('ray.get Gen.generate', 'rl.grpo.collect_rollouts'))
    assert waited == near((BEFORE + AFTER) * MS)
    assert path == truth
    assert sum(one['end'] - one['start'] for one in found['segments']) == found['step']['duration']
    rows = [(one['depth'], one['name'], one['process'], one['at'], one['duration']) for one in found['spans']]
    at = OTHER / 2
    wanted: list[Any] = [(0, 'rl.grpo.step', 'driver', 0, near(length(7) * MS))]
    for name, time in phases(7).items():
        wanted.append((1, name, 'driver', near(at * MS), near(time * MS)))
        if name == 'rl.grpo.collect_rollouts':
            wanted.append((2, 'ray.get Gen.generate', 'driver', near(at * MS), near(rollout * MS)))
            wanted += [
                (2, 'rl.grpo.generate', f'Gen/gen-{worker}', near((at + BEFORE) * MS), near(generated(7, worker) * MS))
                for worker in range(4)
            ]
        at += time
    assert rows == wanted
    on_path = {one['name']: one['on_path'] for one in found['spans'] if one['on_path'] is not None}
    assert on_path['rl.grpo.generate'] == near(slowest * MS)
    assert sum(on_path.values()) == found['step']['duration']


def test_workers(run: str, told: Any) -> None:
    found = told('workers', run)
    _check_stragglers(found['stragglers'])
    cells = {(one['process'], one['name']): one for one in found['cells']}
    truth = {('driver', name): _in_all(name) for name in KIND}
    truth[('driver', 'rl.grpo.step')] = [length(step) * MS for step in STEPS]
    truth[('driver', 'ray.get Gen.generate')] = _in_all('rl.grpo.collect_rollouts')
    for worker in range(4):
        spent = [generated(step, worker) * MS for step in STEPS]
        truth[(f'Gen/gen-{worker}', 'rl.grpo.generate')] = spent
    assert cells.keys() == truth.keys()
    for key, spent in truth.items():
        one = cells[key]
        assert (one['count'], one['total'], one['mean']) == (12, near(sum(spent)), near(statistics.mean(spent)))


def test_metrics(run: str, told: Any) -> None:
    one = next(one for one in told('metrics', run) if one['name'] == 'rl.policy_loss')
    assert one['values'] == [near((step - 4) ** 2 / 100) for step in STEPS]
    assert one['times'] == [BEGIN + step * MS for step in STEPS]


def test_diff(run: str, told: Any, tmp_path: Path) -> None:
    found = {one['path'][-1]: one for one in told('diff', run, planted(tmp_path, slower=1.25))}
    assert len(found) == 10
    for name, one in found.items():
        if name == 'rl.grpo.policy_update':
            before, after = _in_all(name), [1.25 * spent for spent in _in_all(name)]
        elif name == 'rl.grpo.step':
            before = [length(step) * MS for step in STEPS]
            after = [length(step, 1.25) * MS for step in STEPS]
        else:
            assert (one['change'], one['word']) == (0, 'same')
            continue
        assert (one['before'], one['after']) == (near(statistics.mean(before)), near(statistics.mean(after)))
        change = statistics.mean(after) - statistics.mean(before)
        assert (one['change'], one['ratio']) == (near(change), near(change / statistics.mean(before)))
        noise = 2 * (statistics.variance(before) / 12 + statistics.variance(after) / 12) ** 0.5
        assert (one['noise'], one['word']) == (near(noise), 'slower')


def _figure(text: str) -> float:
    """Nanoseconds, or a share, of what a table shows."""
    parts = re.findall(r'([\d.]+) (h|m|s|ms|us|ns|%)(?![a-z])', text)
    return sum(float(number) * (0.01 if unit == '%' else UNITS[unit]) for number, unit in parts)


def _table(shown: str) -> dict[str, list[str]]:
    """Cells of each row by the first of them, without what draws the tree."""
    rows = [re.split(r' {2,}', text.strip(' │├└─')) for text in shown.splitlines() if text.strip()]
    return {row[0].strip(' │├└─'): row[1:] for row in rows}


def test_what_is_shown_as_text_is_as_near(
    run: str, told: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('COLUMNS', '180')
    truths = {one['path'][-1]: one for one in told('phases', run)}
    assert main(['phases', run]) == 0
    shown = _table(capsys.readouterr().out)
    for name, truth in truths.items():
        _, *figures, share = shown[name]
        assert [_figure(text) for text in figures] == [
            near(truth[key]) for key in ('total', 'own', 'mean', 'p50', 'p95')
        ]
        assert _figure(share) == pytest.approx(truth['share'], rel=0.01, abs=0.0005)  # a tenth of a point
    assert main(['steps', run]) == 0
    shown = _table(capsys.readouterr().out)
    for step in STEPS:
        heads = [head for head in shown['step'] if head != 'time']
        kinds = {KIND[name]: spent * MS for name, spent in phases(step).items()} | {'other': OTHER * MS}
        assert _figure(shown[str(step)][0]) == near(length(step) * MS)
        wanted = [near(kinds[head]) for head in heads]
        assert [_figure(text) for text in shown[str(step)][1:]] == wanted and len(heads) == 8
    assert main(['workers', run]) == 0
    cells = _table(capsys.readouterr().out.partition('slow by themselves')[2])
    name, own, peers, ratio, lost, share = cells['Gen/gen-3']
    means = [statistics.mean(generated(step, worker) * MS for step in STEPS) for worker in range(4)]
    assert name == 'rl.grpo.generate' and float(ratio.removesuffix(' x')) == near(means[3] / means[0])
    assert [_figure(text) for text in (own, peers, lost)] == [
        *(near(means[3]), near(means[0]), near(12 * (means[3] - means[0]))),
    ]
    assert _figure(share) == near(12 * (means[3] - means[0]) / sum(length(step) * MS for step in STEPS))
