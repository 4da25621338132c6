# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lens_auto.report.facts import facts
from lens_auto.report.folder import Run
from lens_auto.report.verdicts import RULES, verdicts
from tests.unit.report.planted import HEALTHY, Plant, asynchronous, ranks, synchronous

_TAIL = [200.0 + 2 * n for n in range(60)] + [1000.0, 1100.0, 1180.0, 1200.0]


def _with(**more: float) -> Callable[[int], Plant]:
    return lambda seed: synchronous(phases={**HEALTHY, **more}, noise=0.05, seed=seed)


def _names(run: Run) -> list[str]:
    return [one.name for one in verdicts(facts(run.store, run.tree))]


PLANTED: dict[str, Callable[[int], Plant]] = {
    'generation-bound': _with(collect_rollouts=1600),
    'tail-bound': lambda seed: synchronous(
        phases={**HEALTHY, 'collect_rollouts': 1200}, rollouts=_TAIL, noise=0.05, seed=seed
    ),
    'buffer-starved': lambda seed: asynchronous(wait=300, train=500, generate=780, pause=0, noise=0.05, seed=seed),
    'trainer-starved': lambda seed: asynchronous(wait=2, train=900, generate=300, pause=590, noise=0.05, seed=seed),
    'staleness-bound': lambda seed: asynchronous(wait=200, train=600, generate=450, pause=300, noise=0.05, seed=seed),
    'refit-bound': _with(weight_sync=350),
    'reward-bound': _with(compute_rewards=600),
    'logprob-bound': _with(compute_logprobs=800),
    'checkpoint stall': _with(save_checkpoint=300),
    'data-bound': _with(data_processing=300),
    'one rank slow': lambda seed: ranks(slow=3, slow_loader=130, noise=0.10, seed=seed),
    'driver-bound': lambda seed: synchronous(other=500, noise=0.05, seed=seed),
}


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('name', PLANTED)
def test_what_was_planted_is_told_and_nothing_else(tmp_path: Path, name: str, seed: int) -> None:
    assert _names(PLANTED[name](seed).run(tmp_path)) == [name]


def test_every_rule_but_stuck_is_planted_here() -> None:
    assert {rule.name for rule in RULES} - {'stuck'} == set(PLANTED)


_HEALTHY: dict[str, Callable[[int], Plant]] = {
    'synchronous': lambda seed: synchronous(noise=0.15, seed=seed),
    'many rollouts': lambda seed: synchronous(
        noise=0.10, seed=seed, rollouts=[300.0 + (n * 37 + seed) % 150 for n in range(64)]
    ),
    'ranks': lambda seed: ranks(size=8 + seed, noise=0.10, seed=seed),
    'asynchronous': lambda seed: asynchronous(wait=7, train=500, generate=430, pause=60, noise=0.10, seed=seed),
}


@pytest.mark.parametrize('kind', _HEALTHY)
@pytest.mark.parametrize('seed', range(20))
def test_a_healthy_run_with_noise_is_healthy(tmp_path: Path, seed: int, kind: str) -> None:
    assert _names(_HEALTHY[kind](seed).run(tmp_path)) == ['healthy']


def _shares(name: str, part: float) -> dict[str, float]:
    """Phases of a healthy run in which one has this part of the steps."""
    others = sum(spent for each, spent in HEALTHY.items() if each != name) + 2
    return {**HEALTHY, name: others * part / (1 - part)}


@pytest.mark.parametrize('above', [False, True])
@pytest.mark.parametrize(
    ('verdict', 'phase'),
    [
        ('generation-bound', 'collect_rollouts'),
        ('refit-bound', 'weight_sync'),
        ('reward-bound', 'compute_rewards'),
        ('logprob-bound', 'compute_logprobs'),
        ('checkpoint stall', 'save_checkpoint'),
        ('data-bound', 'data_processing'),
    ],
)
def test_a_phase_is_told_from_its_threshold_on(tmp_path: Path, verdict: str, phase: str, above: bool) -> None:
    threshold = next(rule.threshold for rule in RULES if rule.name == verdict)
    run = synchronous(phases=_shares(phase, threshold * (1.01 if above else 0.99))).run(tmp_path)
    assert _names(run) == [verdict if above else 'healthy']


def test_a_verdict_says_its_evidence_its_threshold_and_its_doubt(tmp_path: Path) -> None:
    run = synchronous(steps=2, phases={**HEALTHY, 'compute_rewards': 600}).run(tmp_path)
    (one,) = verdicts(facts(run.store, run.tree))
    assert one.name == 'reward-bound'
    assert one.value == pytest.approx(600 / 1572, rel=0.01)
    assert one.threshold == 0.25
    assert '38.2 %' in one.why
    assert one.doubt == 'only 2 steps to judge by'


def test_without_steps_nothing_is_said_about_them(tmp_path: Path) -> None:
    plant = Plant()
    plant.process(0)
    plant.span(0, 'something', 1, 2)
    assert _names(plant.run(tmp_path)) == ['no steps']
