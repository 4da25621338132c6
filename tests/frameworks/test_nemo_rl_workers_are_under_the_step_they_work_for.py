# SPDX-License-Identifier: Apache-2.0
"""GRPO on Ray: what the workers do is in the trace of the step, below the phase that asked for it."""

from __future__ import annotations

import pytest

from tests.helpers.ray_program import RayPlace, Traced
from tests.helpers.run import Done, tree

pytestmark = pytest.mark.timeout(300)

PROGRAM = ('run_grpo.py', '--config', 'configs/grpo.yaml')


@pytest.fixture(scope='module')
def plain(nemo_rl_on_ray: RayPlace) -> Done:
    """The program without us."""
    return nemo_rl_on_ray.without(*PROGRAM)


@pytest.fixture(scope='module')
def traced(nemo_rl_on_ray: RayPlace, plain: Done) -> Traced:
    """The same under `lens-instrument`, as a job of SLURM."""
    nemo_rl_on_ray.end()
    env = {'SLURM_JOB_ID': '4711', 'NEMO_RL_OTEL_USER_ID': 'someone'}
    traced = nemo_rl_on_ray.traced(*PROGRAM, rules=(), groups='per_step,job', env=env)
    assert traced.done.code == 0, traced.done.stderr
    return traced


def test_the_program_prints_the_same(traced: Traced, plain: Done) -> None:
    assert (plain.code, plain.stdout) == (0, traced.done.stdout)
    assert plain.stdout.splitlines()[-2:] == ['  loss 0.333 reward 1.000', 'done']


def test_the_driver_as_a_tree(traced: Traced) -> None:
    driver = [span for span in traced.spans if span.resource['lens.role'] == 'driver']
    told = [span for span in driver if not span.name.startswith('ray.')]
    assert (
        '\n'.join(tree(told, ('rl.bucket', 'rl.iteration', 'rl.epoch', 'rl.step', 'rl.ray.cluster_source'))) + '\n'
        == """\
rl.startup
  rl.setup.ray_init rl.ray.cluster_source=started_local
  rl.setup.tokenizer
  rl.setup.data
  rl.setup.workers
    rl.setup.generation
    rl.setup.policy
rl.grpo.job
  ~ rl.grpo.step rl.iteration=1 rl.epoch=1
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.prepare_for_generation
      rl.refit
    rl.grpo.collect_rollouts
      rl.vllm.generate rl.bucket=productive
      rl.rollout.calculate_rewards
    rl.grpo.compute_rewards rl.bucket=productive
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.compute_logprobs rl.bucket=overhead
    rl.grpo.compute_advantages rl.bucket=overhead
    rl.grpo.policy_update rl.bucket=productive rl.iteration=1
  ~ rl.grpo.step rl.iteration=2 rl.epoch=2
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.prepare_for_generation
      rl.refit
    rl.grpo.collect_rollouts
      rl.vllm.generate rl.bucket=productive
      rl.rollout.calculate_rewards
    rl.grpo.compute_rewards rl.bucket=productive
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.compute_logprobs rl.bucket=overhead
    rl.grpo.compute_advantages rl.bucket=overhead
    rl.grpo.policy_update rl.bucket=productive rl.iteration=2
    rl.grpo.evaluate rl.step=2
      rl.vllm.generate rl.bucket=overhead
      rl.rollout.calculate_rewards
    rl.grpo.save_checkpoint rl.bucket=overhead
"""
    )


def test_each_worker_is_below_the_phase_that_asked(traced: Traced) -> None:
    ids = {span.id: span for span in traced.spans}
    workers = [span for span in traced.spans if span.resource['lens.role'] == 'worker']
    assert all(span.trace == ids[span.parent].trace for span in workers)
    below: dict[str, set[tuple[str, int]]] = {}
    for span in workers:
        place = f'{ids[span.parent].name} > {span.name}'
        below.setdefault(place, set()).add((span.resource['ray.actor.name'], span.resource['dl.rank']))
    policy = {('lm_policy-0-0', 0), ('lm_policy-0-1', 1)}
    generation = {('vllm_policy-0-0', 0)}
    assert below == {
        'rl.setup.generation > rl.vllm.load_model': generation,
        'rl.setup.policy > rl.policy.load_model': policy,
        'rl.vllm.generate > rl.vllm.worker.generate': generation,
        'rl.grpo.step > rl.policy.prepare_for_lp_inference': policy,
        'rl.grpo.compute_logprobs > rl.policy.get_logprobs': policy,
        'rl.grpo.compute_logprobs > rl.policy.get_reference_policy_logprobs': policy,
        'rl.policy.get_reference_policy_logprobs > rl.policy.get_logprobs': policy,
        'rl.grpo.step > rl.policy.prepare_for_training': policy,
        'rl.grpo.policy_update > rl.policy.train': policy,
        'rl.grpo.save_checkpoint > rl.policy.save_checkpoint': policy,
    }
    assert not [span.name for span in workers if 'rl.bucket' in span.attributes]  # the driver's span has it


def test_a_worker_says_its_group_and_backend(traced: Traced) -> None:
    train = [span for span in traced.run.named('rl.policy.train')]
    assert len(train) == 4
    assert {(span.resource['rl.worker_group'], span.resource['dl.world_size']) for span in train} == {('lm_policy', 2)}
    [load] = traced.run.named('rl.vllm.load_model')
    assert (load.resource['rl.worker_group'], load.attributes['rl.backend']) == ('vllm_policy', 'vllm')
    backends = {span.attributes['rl.backend'] for span in traced.run.named('rl.policy.load_model')}
    assert backends == {'dtensor_v2'}


def test_the_run_is_the_job_of_slurm_that_the_program_forgets(traced: Traced) -> None:
    assert traced.run.facts['run_id'] == '4711'
    identities = {(span.resource['nemo.run.id'], span.resource['nemo.user.id']) for span in traced.spans}
    assert identities == {('4711', 'someone')}


def test_setup_is_measured_by_phase(traced: Traced) -> None:
    points = [point for point in traced.run.points if point.name == 'rl.setup.duration']
    phases = [point.attributes['rl.setup.phase'] for point in points]
    assert phases == ['vllm_init', 'policy_init', 'total_setup']  # the flag `parallel_init_enabled` is no duration
    assert points[2].value == pytest.approx(points[0].value + points[1].value)


def test_generation_is_measured_once_a_call(traced: Traced) -> None:
    # Two steps of 2 prompts, twice each, and one validation of 2, all of 4 tokens; 3 are generated for each.
    totals = {
        (point.name, point.attributes.get('gen_ai.token.type', '')): point.value  # cumulative: the last one counts
        for point in traced.run.points
        if point.name.startswith(('gen_ai.client', 'rl.vllm')) and not point.name.endswith('.mean')
    }
    assert totals == {
        ('gen_ai.client.token.usage', 'input'): 40,
        ('gen_ai.client.token.usage', 'output'): 30,
        ('rl.vllm.prompt_tokens', ''): 40,
        ('rl.vllm.generation_tokens', ''): 30,
    }
    [*_, duration] = [point for point in traced.run.points if point.name == 'gen_ai.server.request.duration']
    assert duration.attributes == {'gen_ai.provider.name': 'vllm', 'gen_ai.request.model': 'tiny/model'}
    spans = sum(span.end - span.start for span in traced.run.named('rl.vllm.generate')) / 1e9
    assert 0 < duration.value <= spans * 1.5 + 0.05
