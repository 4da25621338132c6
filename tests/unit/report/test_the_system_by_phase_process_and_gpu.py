# SPDX-License-Identifier: Apache-2.0
"""Planted CPU, memory and GPU figures: each table gives them back, and none of what lies between two phases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lens_auto.report.cli import main
from lens_auto.report.folder import Run, load
from lens_auto.report.metrics import metrics
from lens_auto.report.system import system
from tests.unit.report.planted import BEGIN, Plant, attributes

SECOND = 1_000_000_000
GENERATE, TRAIN = 10.0, 5.5  # seconds of a step: phases begin and end between samples
LENGTH = GENERATE + TRAIN
STEPS = 4


def phase_at(second: float) -> str:
    """What went on for all of the second before."""
    begin, end = (second - 1) % LENGTH, (second - 1) % LENGTH + 1
    if end <= GENERATE:
        return 'generation'
    return 'training' if begin >= GENERATE and end <= LENGTH else ''


def figure(generation: float, training: float, between: float = 0.0) -> Callable[[float], float]:
    of = {'generation': generation, 'training': training, '': between}
    return lambda second: of[phase_at(second)]


def metric(name: str, series: list[tuple[dict[str, Any], Callable[[float], float]]], kind: str) -> dict[str, Any]:
    """Points of one metric, one a second."""
    points = [
        {'attributes': attributes(labels), 'timeUnixNano': str(BEGIN + second * SECOND), 'asDouble': value(second)}
        for labels, value in series
        for second in range(1, int(STEPS * LENGTH) + 1)
    ]
    data: dict[str, Any] = {'dataPoints': points}
    if kind == 'level':
        return {'name': name, 'sum': {**data, 'aggregationTemporality': 2, 'isMonotonic': False}}
    return {
        'name': name,
        kind: {**data, **({'aggregationTemporality': 2, 'isMonotonic': True} if kind == 'sum' else {})},
    }


def line(resource: dict[str, Any], *found: dict[str, Any]) -> str:
    scopes = [{'scope': {'name': 'lens-auto'}, 'metrics': list(found)}]
    return json.dumps({'resourceMetrics': [{'resource': {'attributes': attributes(resource)}, 'scopeMetrics': scopes}]})


def planted(folder: Path, gpus: bool = True) -> Run:
    plant = Plant()
    driver = plant.process(0, lens__role='driver')
    worker = plant.process(1, lens__role='worker')
    launcher = plant.process(2, lens__role='launcher')
    for number in range(STEPS):
        now = BEGIN + round(number * LENGTH * SECOND)
        middle, end = now + round(GENERATE * SECOND), now + round(LENGTH * SECOND)
        step = plant.span(driver, 'rl.grpo.step', now, end, rl__iteration=number + 1)
        rollouts = plant.span(driver, 'rl.grpo.collect_rollouts', now, middle, step)
        # Two that overlap, and together cover all of it.
        plant.span(worker, 'rl.grpo.generate', now, middle - 4 * SECOND, rollouts)
        plant.span(worker, 'rl.grpo.generate', now + 2 * SECOND, middle, rollouts)
        plant.span(driver, 'rl.grpo.policy_update', middle, end, step)
    of_driver = [
        metric('process.cpu.utilization', [({}, figure(0.1, 0.7, 0.99))], 'gauge'),
        metric('process.memory.usage', [({}, lambda second: 1e9 + second * 1e6)], 'level'),
        metric('process.thread.count', [({}, lambda second: 12.0)], 'level'),
        metric('process.cpu.time', [({'cpu.mode': mode}, lambda second: second) for mode in ('user', 'system')], 'sum'),
    ]
    of_worker = [
        metric('process.cpu.utilization', [({}, figure(0.5, 0.05, 0.99))], 'gauge'),
        metric('process.memory.usage', [({}, lambda second: 2e9)], 'level'),
    ]
    of_node = [metric('system.cpu.utilization', [({}, figure(0.65, 0.8, 0.01))], 'gauge')]
    if gpus:
        both = ({'hw.name': 'gpu 0', 'hw.id': 'a'}, {'hw.name': 'gpu 1', 'hw.id': 'b'})

        def each(name: str, first: Any, second: Any, kind: str = 'gauge') -> dict[str, Any]:
            return metric(name, list(zip(both, (first, second), strict=True)), kind)

        of_node += [
            each('hw.gpu.utilization', figure(0.9, 0.4, 0.0), figure(0.8, 0.2, 0.0)),
            each('hw.gpu.memory.usage', figure(30e9, 60e9, 90e9), figure(20e9, 70e9, 90e9), 'level'),
            each('hw.gpu.memory.limit', lambda second: 80e9, lambda second: 80e9, 'level'),
            each('hw.power', figure(300.0, 600.0, 0.0), figure(310.0, 620.0, 0.0)),
            each('hw.temperature', lambda second: 40 + second / 10, lambda second: 50.0),
            each('hw.energy', lambda second: 500 * second, lambda second: 400 * second, 'sum'),
        ]
    text = '\n'.join(
        line(plant.resources[process], *found)
        for process, found in ((driver, of_driver), (worker, of_worker), (launcher, of_node))
    )
    (folder / 'metrics-node0-1.jsonl').write_text(text + '\n')
    return plant.run(folder)


def test_each_phase_has_what_was_used_in_it_and_nothing_of_its_neighbours(tmp_path: Path) -> None:
    run = planted(tmp_path)
    found = {one.phase: one for one in system(run.store, run.tree).phases}
    assert list(found) == ['step', 'generation', 'training']
    for phase, cpu, node, gpu, memory, power in (
        ('generation', 0.6, 0.65, 0.85, 50e9, 610),
        ('training', 0.75, 0.8, 0.3, 130e9, 1220),
    ):
        one = found[phase]
        assert (one.cpu, one.node_cpu) == (pytest.approx(cpu), pytest.approx(node))
        assert (one.gpu, one.power) == (pytest.approx(gpu), pytest.approx(power))
        assert one.gpu_memory == pytest.approx(memory)
        wanted = sum(phase_at(second) == phase for second in range(2, int(STEPS * LENGTH) + 1))
        assert one.samples == wanted


def test_each_process_and_each_gpu(tmp_path: Path) -> None:
    run = planted(tmp_path)
    found = system(run.store, run.tree)
    assert [run.store.processes[one.process].role for one in found.processes] == ['worker', 'driver']
    driver = found.processes[1]
    assert driver.memory_first == pytest.approx(1.001e9)
    assert driver.memory_most == pytest.approx(1e9 + int(STEPS * LENGTH) * 1e6)
    assert (driver.threads, driver.cpu_most) == (12, pytest.approx(0.99))
    first, second = found.gpus
    assert (first.gpu, second.gpu) == ('gpu 0', 'gpu 1')
    assert first.used and second.used and first.used > second.used
    assert (first.memory_most, first.memory_limit) == (pytest.approx(90e9), pytest.approx(80e9))
    assert (first.temperature, second.temperature) == (pytest.approx(46.2), pytest.approx(50))
    assert (first.energy, second.energy) == (pytest.approx(31000), pytest.approx(24800))


def test_it_is_no_metric_that_the_program_logged(tmp_path: Path) -> None:
    assert metrics(planted(tmp_path).store) == []


def test_phases_shorter_than_the_pause_between_samples_have_no_figures(tmp_path: Path) -> None:
    plant = Plant()
    driver = plant.process(0, lens__role='driver')
    for number in range(60):
        now = BEGIN + number * SECOND
        plant.span(driver, 'rl.grpo.generate', now, now + SECOND // 2)
        plant.span(driver, 'rl.grpo.policy_update', now + SECOND // 2, now + SECOND)
    found = metric('process.cpu.utilization', [({}, lambda second: 0.5)], 'gauge')
    (tmp_path / 'metrics-node0-1.jsonl').write_text(line(plant.resources[0], found) + '\n')
    run = plant.run(tmp_path)
    assert system(run.store, run.tree).phases == []


def test_the_command_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted(tmp_path)
    assert main(['system', str(tmp_path)]) == 0
    shown = [' '.join(row.split()) for row in capsys.readouterr().out.splitlines()]
    assert 'while run cpu node cpu gpu gpu memory power samples' in shown
    assert [row for row in shown if row.startswith('training 75.0 % 80.0 % 30.0 % 130 GB 1220 W')]
    assert [row for row in shown if row.startswith('gpu 1 ') and '90 GB 80 GB' in row]
    assert main(['overview', str(tmp_path)]) == 0
    assert 'run cpu' in capsys.readouterr().out
    assert main(['system', '--json', str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one['phase'] for one in told['phases']] == ['step', 'generation', 'training']
    assert {one['process'] for one in told['processes']} == {'driver', 'worker 1001'}
    assert {one['gpu'] for one in told['gpus']} == {'gpu 0', 'gpu 1'}


def test_without_any_there_is_no_word_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted(tmp_path, gpus=False)
    assert main(['system', str(tmp_path)]) == 0
    assert 'gpu' not in capsys.readouterr().out.lower()


def test_a_run_that_was_not_asked_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant = Plant()
    plant.span(plant.process(0, lens__role='driver'), 'rl.grpo.step', BEGIN, BEGIN + SECOND, rl__iteration=1)
    plant.write(tmp_path)
    assert main(['system', str(tmp_path)]) == 1
    assert 'system_metrics' in capsys.readouterr().out
    assert load(str(tmp_path)).store.series == {}
