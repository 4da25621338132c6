# SPDX-License-Identifier: Apache-2.0
"""Asynchronous GRPO on Ray: the rollouts are the collector's, and the trainer's polling is part of one step."""

from __future__ import annotations

import pytest

from tests.helpers.ray_program import RayPlace, Traced
from tests.helpers.run import tree

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope='module')
def traced(nemo_rl_on_ray: RayPlace) -> Traced:
    """Three steps, of which the last fails while generation stands still; of the workers rank 0 alone records."""
    overrides = ('++grpo.async_grpo.enabled=true', '++grpo.max_num_steps=3', '++grpo.fail_at_refit=3')
    traced = nemo_rl_on_ray.traced(
        *('run_grpo.py', '--config', 'configs/grpo.yaml', *overrides),
        rules=(),
        groups='per_step,job',
        env={'NEMO_RL_OTEL_EXPORT_STRATEGY': 'single_rank', 'NEMO_RL_OTEL_EXPORT_RANK': '0'},
    )
    assert traced.done.code == 1, traced.done.stderr
    assert 'RuntimeError: the collector does not resume' in traced.done.stderr
    return traced


def test_the_driver_as_a_tree(traced: Traced) -> None:
    driver = [span for span in traced.spans if span.resource['lens.role'] == 'driver']
    # How often the trainer looks for a batch depends on the machine, but for the first three looks.
    told = [span for span in driver if not span.name.startswith('ray.') and 'starvation' not in span.name]
    shown = ('rl.bucket', 'rl.iteration', 'rl.step', 'rl.efficiency.category', 'lens.orphaned')
    assert (
        '\n'.join(tree(told, shown)) + '\n'
        == """\
rl.startup
  rl.setup.ray_init
  rl.setup.tokenizer
  rl.setup.data
  rl.setup.workers
    rl.setup.generation
    rl.setup.policy
rl.grpo.job!
  rl.init.total rl.efficiency.category=init/total
  ~ rl.grpo.step rl.iteration=1
    rl.grpo.compute_rewards rl.bucket=productive
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.compute_logprobs rl.bucket=overhead
    rl.grpo.compute_advantages rl.bucket=overhead
    rl.grpo.policy_update rl.bucket=productive rl.iteration=1
    rl.idle.refit_bubble rl.bucket=idle rl.efficiency.category=idle/refit_bubble
      rl.grpo.weight_sync
        rl.refit
  ~ rl.grpo.step rl.iteration=2
    rl.grpo.compute_rewards rl.bucket=productive
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.compute_logprobs rl.bucket=overhead
    rl.grpo.compute_advantages rl.bucket=overhead
    rl.grpo.policy_update rl.bucket=productive rl.iteration=2
    rl.idle.refit_bubble rl.bucket=idle rl.efficiency.category=idle/refit_bubble
      rl.grpo.weight_sync
        rl.refit
    rl.grpo.evaluate rl.step=2
      rl.vllm.generate rl.bucket=overhead
      rl.rollout.calculate_rewards
    rl.grpo.save_checkpoint rl.bucket=overhead
  ~ rl.grpo.step! rl.iteration=3
    rl.grpo.compute_rewards rl.bucket=productive
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.compute_logprobs rl.bucket=overhead
    rl.grpo.compute_advantages rl.bucket=overhead
    rl.grpo.policy_update rl.bucket=productive rl.iteration=3
    rl.idle.refit_bubble rl.bucket=idle rl.efficiency.category=idle/refit_bubble lens.orphaned=True
      rl.grpo.weight_sync
        rl.refit
"""
    )


def test_a_step_that_polls_is_one_step(traced: Traced) -> None:
    first, second, third = traced.run.named('rl.grpo.step')
    looks = [span for span in traced.run.named('rl.idle.buffer_starvation') if span.parent == first.id]
    assert len(looks) >= 3
    assert {span.attributes['rl.bucket'] for span in looks} == {'idle'}
    assert {span.attributes['rl.efficiency.category'] for span in looks} == {'idle/buffer_starvation'}
    assert first.start <= looks[0].start and looks[-1].end <= first.end
    assert second.start >= first.end and third.start >= second.end


def test_a_phase_that_an_error_left_open_ends_with_its_step(traced: Traced) -> None:
    *_, step = traced.run.named('rl.grpo.step')
    *ended, orphan = traced.run.named('rl.idle.refit_bubble')
    assert orphan.attributes.get('lens.orphaned') is True
    assert orphan.parent == step.id and abs(orphan.end - step.end) < 1_000_000 and step.error
    assert all('lens.orphaned' not in span.attributes for span in ended)


def test_rollouts_are_under_the_job_with_their_weights(traced: Traced) -> None:
    job = traced.run.only('rl.grpo.job')
    ids = {span.id: span for span in traced.spans}
    batches = traced.run.named('rl.grpo.collect_rollouts')
    assert len(batches) == 3
    for version, batch in enumerate(batches):
        assert batch.attributes == {
            'rl.weight_version': version,
            'rl.target_weight_version': version + 1,
            'rl.num_generations_per_prompt': 2,
            'rl.num_prompt_groups': 2,
            **{name: value for name, value in batch.attributes.items() if not name.startswith('rl.')},
        }
        assert 'rl.bucket' not in batch.attributes  # it overlaps with training: its time is not the run's
        assert batch.resource['ray.actor.name'] == 'collector'
        above = batch
        while above.parent and above.id != job.id:
            above = ids[above.parent]
        assert above.id == job.id and batch.trace == job.trace
    names = {span.name for span in traced.spans if span.parent in {batch.id for batch in batches}}
    assert names == {'rl.rollout.calculate_rewards'}


def test_the_collectors_waits_are_told_without_a_bucket(traced: Traced) -> None:
    for name in ('refit_event_wait', 'generation_limit_pause'):
        waits = traced.run.named(f'rl.idle.{name}')
        assert waits and {span.attributes['rl.efficiency.category'] for span in waits} == {f'idle/{name}'}
        assert {span.resource['ray.actor.name'] for span in waits} == {'collector'}
        assert not [span for span in waits if 'rl.bucket' in span.attributes]
    assert traced.run.named('rl.idle.refit_event_wait')[-1].truncated  # it never came to its end


def test_a_rank_that_does_not_export_records_nothing(traced: Traced) -> None:
    ranks = {
        (span.resource['ray.actor.name'], span.resource.get('dl.rank'))
        for span in traced.spans
        if span.resource['lens.role'] == 'worker'
    }
    assert ranks == {('lm_policy-0-0', 0), ('vllm_policy-0-0', 0), ('collector', None)}
    # Nor is it patched: the calls of its functions were not even counted.
    [train] = [rule for rule in traced.run.facts['rules'] if rule['name'] == 'rl.policy.train' and rule['calls']]
    assert train['calls'] == 3
    assert not [process for process in traced.run.facts['processes'] if process['rank'] == 1]


def test_efficiency_is_told_by_category(traced: Traced) -> None:
    points = [point for point in traced.run.points if point.name == 'rl.efficiency.seconds']
    kinds = {
        tuple(point.attributes[f'rl.{name}'] for name in ('efficiency.category', 'efficiency.measurement'))
        + (point.attributes['rl.efficiency.window'], point.attributes['rl.bucket'])
        for point in points
    }
    assert kinds == {
        ('init/total', 'wall_clock', 'run', 'overhead'),
        ('idle/buffer_starvation', 'wall_clock', 'step', 'idle'),
        ('idle/refit_bubble', 'wall_clock', 'step', 'idle'),
        ('idle/validation', 'wall_clock', 'step', 'idle'),
        ('idle/buffer_full_backoff', 'thread_seconds', 'run', 'idle'),
        ('idle/generation_limit_pause', 'collector_wall_clock', 'run', 'idle'),
        ('idle/refit_event_wait', 'collector_wall_clock', 'run', 'idle'),
        ('wasted/failed_trajectory', 'thread_seconds', 'run', 'wasted'),
    }
    # The run's first seconds are logged again as 0 in every later step.
    categories = [point.attributes['rl.efficiency.category'] for point in points]
    assert categories.count('init/total') == 1 and categories.count('idle/refit_bubble') == 2
    percent = [point for point in traced.run.points if point.name == 'rl.efficiency.pct']
    assert [(point.value, point.attributes['rl.efficiency.window']) for point in percent] == [(90.0, 'run')] * 2
