# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from lens_auto.report.critical import by_name, critical_path
from lens_auto.report.differ import diff
from lens_auto.report.goodput import goodput
from lens_auto.report.phases import phases
from lens_auto.report.steps import steps
from lens_auto.report.stragglers import stragglers
from lens_auto.report.workers import workers
from tests.unit.report.planted import BEGIN, HEALTHY, MS, Plant, asynchronous, ranks, synchronous


def planted_mean(plant: Plant, process: int, name: str) -> float:
    """Nanoseconds of a span, on average, as they were planted."""
    return statistics.mean(
        int(one['endTimeUnixNano']) - int(one['startTimeUnixNano'])
        for one in plant.lines[process]
        if one['name'] == name
    )


def test_phases_have_their_times_and_shares(tmp_path: Path) -> None:
    run = synchronous(steps=12).run(tmp_path)
    found = {one.name: one for one in phases(run.store, run.tree)}
    step = sum(HEALTHY.values()) + 2
    for name, spent in HEALTHY.items():
        one = found[f'rl.grpo.{name}']
        assert one.count == 12
        assert one.mean == pytest.approx(spent * MS, rel=0.01)
        assert one.p50 == pytest.approx(spent * MS, rel=0.01)
        assert one.share == pytest.approx(spent / step, rel=0.01)
        assert one.per_step == pytest.approx(spent * MS, rel=0.01)
    assert found['rl.grpo.collect_rollouts'].own == 0
    assert found['rl.grpo.step'].own == pytest.approx(12 * 2 * MS, rel=0.01)


def test_quantiles_are_those_of_the_durations(tmp_path: Path) -> None:
    plant = Plant()
    plant.process(0)
    for place in range(101):
        plant.span(0, 'work', BEGIN, BEGIN + place * MS)
    run = plant.run(tmp_path)
    (one,) = phases(run.store, run.tree)
    assert (one.p50, one.p95, one.longest) == (50 * MS, 95 * MS, 100 * MS)


def test_a_step_is_the_sum_of_what_it_was_spent_on(tmp_path: Path) -> None:
    run = synchronous(steps=5).run(tmp_path)
    listed = steps(run.store, run.tree)
    assert [one.number for one in listed] == [1, 2, 3, 4, 5]
    for one in listed:
        assert sum(one.kinds.values()) == pytest.approx(one.duration, rel=1e-6)
        assert one.kinds['generation'] == pytest.approx(450 * MS, rel=0.01)
        assert one.kinds['refit'] == pytest.approx(30 * MS, rel=0.01)
        assert one.kinds['other'] == pytest.approx(2 * MS, rel=0.01)


def test_rollouts_awaited_together_share_the_time_they_cover(tmp_path: Path) -> None:
    run = synchronous(steps=3, rollouts=[450.0] * 64).run(tmp_path)
    for one in steps(run.store, run.tree):
        assert sum(one.kinds.values()) == pytest.approx(one.duration, rel=1e-6)
        assert one.kinds['generation'] == pytest.approx(450 * MS, rel=0.01)


def test_goodput_counts_overlapping_work_once_and_idle_time_first(tmp_path: Path) -> None:
    plant = Plant()
    plant.process(0, lens__role='driver')
    step = plant.span(0, 'rl.grpo.step', BEGIN, BEGIN + 1000 * MS, rl__iteration=1)
    for worker in (1, 2, 3):  # three workers generate at once: 400 ms in all
        plant.process(worker, lens__role='worker', ray__actor__class='Gen')
        plant.span(worker, 'rl.grpo.generate', BEGIN, BEGIN + 400 * MS, step)
    plant.span(0, 'rl.grpo.compute_logprobs', BEGIN + 400 * MS, BEGIN + 700 * MS, step)
    plant.span(0, 'rl.idle.buffer_starvation', BEGIN + 600 * MS, BEGIN + 900 * MS, step)
    account = goodput(plant.run(tmp_path).tree)
    assert account.total == 1000 * MS
    assert {name: round(spent / MS) for name, spent in account.seconds.items()} == {
        'idle': 300,
        'wasted': 0,
        'productive': 400,
        'overhead': 200,
        'unaccounted': 100,
    }


def test_idle_time_of_an_asynchronous_trainer_is_what_was_planted(tmp_path: Path) -> None:
    account = goodput(asynchronous(steps=10, wait=150, train=450).run(tmp_path).tree)
    assert account.share('idle') == pytest.approx(0.25, rel=0.01)
    assert account.share('productive') == pytest.approx(0.75, rel=0.01)


def test_workers_have_the_mean_of_each_phase(tmp_path: Path) -> None:
    plant = ranks(size=4, steps=10, slow=2)
    run = plant.run(tmp_path)
    cells = {(cell.process, cell.name): cell for cell in workers(run.store, run.tree)}
    for rank in range(4):
        truth = planted_mean(plant, rank, 'train.data_processing')
        assert truth == pytest.approx((230 if rank == 2 else 30) * MS, rel=0.05)
        assert cells[(rank, 'train.data_processing')].mean == pytest.approx(truth, rel=0.01)
    assert cells[(1, 'train.backward')].count == 10


@pytest.mark.parametrize('slow', [0, 5])
def test_the_rank_with_the_slow_loader_is_blamed_and_not_those_that_wait_in_backward(tmp_path: Path, slow: int) -> None:
    plant = ranks(size=8, slow=slow)
    run = plant.run(tmp_path)
    (one,) = stragglers(run.store, run.tree)
    assert run.store.processes[one.process].label == f'rank {slow}'
    assert one.name == 'train.data_processing'
    peers = [planted_mean(plant, rank, one.name) for rank in range(8) if rank != slow]
    lost = 10 * (planted_mean(plant, slow, one.name) - statistics.median(peers))
    assert one.lost == pytest.approx(lost, rel=0.01)
    assert one.share == pytest.approx(lost / (10 * planted_mean(plant, slow, 'train.step')), rel=0.01)


def test_of_two_ranks_the_slow_one_is_blamed(tmp_path: Path) -> None:
    run = ranks(size=2, slow=1).run(tmp_path)
    assert [(one.process, one.name) for one in stragglers(run.store, run.tree)] == [(1, 'train.data_processing')]


def test_nobody_is_blamed_where_all_are_alike(tmp_path: Path) -> None:
    run = ranks(size=8).run(tmp_path)
    assert stragglers(run.store, run.tree) == []


def test_of_a_slow_phase_and_its_slow_part_the_part_is_named(tmp_path: Path) -> None:
    plant = Plant()
    plant.process(9, lens__role='driver')
    now = BEGIN
    for number in range(1, 9):
        step = plant.span(9, 'rl.grpo.step', now, now + 500 * MS, rl__iteration=number)
        for worker in range(4):
            plant.process(worker, lens__role='worker', ray__actor__class='Gen')
            length = 480 if worker == 3 else 200
            outer = plant.span(worker, 'rl.grpo.rollout', now, now + length * MS, step)
            plant.span(worker, 'rl.grpo.generate', now + MS, now + (length - 1) * MS, outer)
        now += 500 * MS
    run = plant.run(tmp_path)
    (one,) = stragglers(run.store, run.tree)
    assert (run.store.processes[one.process].label, one.name) == ('Gen 1003', 'rl.grpo.generate')
    assert one.ratio == pytest.approx(478 / 198, rel=0.01)


def test_the_critical_path_goes_through_the_task_that_a_wait_waits_for(tmp_path: Path) -> None:
    plant = Plant()
    plant.process(0, lens__role='driver')
    for worker in (1, 2):
        plant.process(worker, lens__role='worker', ray__actor__class='Gen')
    step = plant.span(0, 'rl.grpo.step', BEGIN, BEGIN + 1000 * MS, rl__iteration=1)
    phase = plant.span(0, 'rl.grpo.collect_rollouts', BEGIN, BEGIN + 600 * MS, step)
    plant.span(0, 'ray.get Gen.generate', BEGIN + 10 * MS, BEGIN + 600 * MS, phase)
    plant.span(1, 'rl.grpo.generate', BEGIN + 20 * MS, BEGIN + 300 * MS, phase)
    plant.span(2, 'rl.grpo.generate', BEGIN + 20 * MS, BEGIN + 590 * MS, phase)
    plant.span(0, 'rl.grpo.policy_update', BEGIN + 600 * MS, BEGIN + 950 * MS, step)
    run = plant.run(tmp_path)
    (one,) = steps(run.store, run.tree)
    path = critical_path(run.store, run.tree, one.row)
    assert sum(piece.end - piece.start for piece in path) == one.duration
    assert [(name, who, spent // MS) for name, who, spent in by_name(run.store, run.tree, path)] == [
        ('rl.grpo.generate', 'Gen 1002', 570),
        ('rl.grpo.policy_update', 'driver', 350),
        ('rl.grpo.step', 'driver', 50),
        ('ray.get Gen.generate', 'driver', 20),
        ('rl.grpo.collect_rollouts', 'driver', 10),
    ]


def test_a_difference_beyond_the_noise_is_told_and_one_within_is_not(tmp_path: Path) -> None:
    slower = {**HEALTHY, 'policy_update': 420}
    (tmp_path / 'a').mkdir()
    (tmp_path / 'b').mkdir()
    before = synchronous(steps=30, noise=0.05, seed=1).run(tmp_path / 'a')
    after = synchronous(steps=30, phases=slower, noise=0.05, seed=2).run(tmp_path / 'b')
    words = {one.path[-1]: one.word for one in diff(before, after)}
    assert words['rl.grpo.policy_update'] == 'slower'
    assert words['rl.grpo.step'] == 'slower'
    for name in ('collect_rollouts', 'compute_logprobs', 'compute_rewards'):
        assert words[f'rl.grpo.{name}'] == 'same', name


def test_the_clock_of_another_host_is_put_right(tmp_path: Path) -> None:
    plant = Plant()
    plant.process(0, lens__role='driver')
    plant.process(1, lens__role='worker', ray__actor__class='Gen', host__name='node1')
    late = 5000 * MS  # node1's clock is five seconds ahead
    now = BEGIN
    for number in range(1, 11):
        step = plant.span(0, 'rl.grpo.step', now, now + 500 * MS, rl__iteration=number)
        phase = plant.span(0, 'rl.grpo.collect_rollouts', now, now + 400 * MS, step)
        plant.span(1, 'rl.grpo.generate', now + 10 * MS + late, now + 390 * MS + late, phase)
        now += 500 * MS
    run = plant.run(tmp_path)
    (shift,) = run.tree.skew.values()
    assert abs(shift + late) <= 10 * MS
    own = {one.name: one.own for one in phases(run.store, run.tree)}
    assert own['rl.grpo.collect_rollouts'] == pytest.approx(10 * 20 * MS, rel=0.01)


def test_tasks_that_nobody_waits_for_are_no_wrong_clock(tmp_path: Path) -> None:
    plant = Plant()
    plant.process(0, lens__role='driver')
    plant.process(1, lens__role='worker', ray__actor__class='Gen', host__name='node1')
    now = BEGIN
    for number in range(1, 11):
        step = plant.span(0, 'rl.grpo.step', now, now + 500 * MS, rl__iteration=number)
        phase = plant.span(0, 'rl.grpo.collect_rollouts', now, now + 100 * MS, step)
        plant.span(1, 'rl.grpo.generate', now + 10 * MS, now + 90 * MS, phase)
        plant.span(1, 'log', now + 300 * MS, now + 310 * MS, phase)  # submitted there, run later
        now += 500 * MS
    assert plant.run(tmp_path).tree.skew == {}
