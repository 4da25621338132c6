# SPDX-License-Identifier: Apache-2.0
"""The example on Ray: the same lines, losses among them; and every worker's span in the step that it worked for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.helpers.ray_program import RayPlace
from tests.helpers.run import LENS, REPOSITORY, Run, Span

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(600)]

SCRIPT = str(REPOSITORY / 'examples' / 'run_grpo.py')
STEPS = ('--steps', '4', '--seed', '5')


@pytest.fixture
def place(new_place: Callable[..., RayPlace]) -> RayPlace:
    place = new_place()
    if subprocess.run([place.python, '-c', 'import torch'], capture_output=True).returncode:
        pytest.skip('no torch in the venv with this ray')
    return place


def traced(place: RayPlace, *options: str) -> tuple[str, Run]:
    folder = place.folder / 'run'
    done = place.execute(
        LENS, '--no-summary', '--run-dir', str(folder), place.python, SCRIPT, '--ray', *options, *STEPS
    )
    assert done.code == 0, done.stderr[-3000:]
    return done.stdout, Run(folder)


def ancestors(run: Run, span: Span) -> Iterator[Span]:
    by_id = {one.id: one for one in run.spans}
    while (above := by_id.get(span.parent)) is not None:
        yield above
        span = above


def by_workers(run: Run) -> list[Span]:
    return [span for span in run.spans if span.resource.get('lens.role') == 'worker']


def test_in_step_with_its_workers(place: RayPlace) -> None:
    plain = place.without(SCRIPT, '--ray', *STEPS)
    stdout, run = traced(place)
    assert plain.code == 0, plain.stderr[-3000:]
    assert stdout == plain.stdout
    assert stdout.count('loss ') == 4

    steps = run.named('rl.grpo.step')
    assert len(steps) == 4
    outside = []
    for span in by_workers(run):
        above = next((one for one in ancestors(run, span) if one.name in ('rl.grpo.step', 'rl.grpo.evaluate')), None)
        if above is None or not above.start <= span.start <= span.end <= above.end:
            outside.append((span.name, above and above.name))
    assert not outside
    names = {span.name.rpartition('.')[2] for span in by_workers(run)}
    assert names >= {'generation_worker', 'reward_worker', 'policy_logprobs', 'reference_logprobs', 'training_worker'}


def test_with_generation_running_ahead(place: RayPlace) -> None:
    """Which batch is ready when differs from run to run, with us and without: no lines to compare."""
    _, run = traced(place, '--async')
    collected = run.named('rl.grpo.collect_batch')
    assert len(collected) >= 4
    for span in collected:
        above = [one.name for one in ancestors(run, span)]
        assert 'rl.grpo.job' in above and 'rl.grpo.step' not in above
        assert isinstance(span.attributes['rl.weight_version'], int)
        assert span.resource['ray.actor.class'].endswith('TrajectoryCollector')
    # The rollouts are the collector's; the driver's own time is waiting.
    assert {span.resource.get('lens.role') for span in run.named('rl.grpo.collect_rollouts')} == {'worker'}
    assert run.named('rl.idle.buffer_starvation')
