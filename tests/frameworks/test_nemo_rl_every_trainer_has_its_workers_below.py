# SPDX-License-Identifier: Apache-2.0
"""The trainers besides GRPO, on Ray: each worker phase is in the trace of its algorithm's step, below the phase."""

from __future__ import annotations

import pytest

from tests.helpers.ray_program import RayPlace, Traced
from tests.helpers.run import tree

pytestmark = pytest.mark.timeout(300)

PROGRAM = ('run_trainers.py', '--config', 'configs/all.yaml', '--algorithms')
CONTROLLED = ('SingleControllerActor', 'NemoGym')
ALGORITHMS = 'async_ppo,ppo,sft,dpo,rm,distillation,grpo_sync,sc,actors'


@pytest.fixture(scope='module')
def traced(nemo_rl_on_ray: RayPlace) -> Traced:
    """One step of each, and two of the single controller, with the same workers."""
    env = {'LENS_VOCABULARY': 'label'}
    traced = nemo_rl_on_ray.traced(*PROGRAM, ALGORITHMS, rules=(), groups='per_step,job,per_prompt', env=env)
    assert traced.done.code == 0, traced.done.stderr
    return traced


def test_below_the_phase_of_its_algorithm(traced: Traced) -> None:
    below = {
        f'{traced.above(span)} > {span.name}'
        for span in traced.spans
        if span.name.startswith('rl.policy.') and span.name != 'rl.policy.load_model'
    }
    assert below == {
        'rl.ppo.policy_and_reference_logprobs > rl.policy.get_logprobs',
        'rl.ppo.policy_training > rl.policy.train',
        'rl.sft.policy_training > rl.policy.train',
        'rl.sft.evaluate > rl.policy.train',
        'rl.dpo.reference_logprobs > rl.policy.get_reference_policy_logprobs',
        'rl.policy.get_reference_policy_logprobs > rl.policy.get_logprobs',
        'rl.dpo.policy_training > rl.policy.train',
        'rl.dpo.evaluate > rl.policy.train',
        'rl.rm.policy_training > rl.policy.train',
        'rl.rm.validation_forward > rl.policy.train',
        'rl.distillation.teacher_logprob_inference > rl.policy.get_topk_logits',
        'rl.distillation.policy_training > rl.policy.train',
        'rl.grpo.policy_and_reference_logprobs > rl.policy.get_logprobs',
        'rl.grpo.policy_training > rl.policy.train',
        'rl.sc.logprob_inference_prep > rl.policy.prepare_for_lp_inference',
        'rl.sc.policy_and_reference_logprobs > rl.policy.get_logprobs',
        'rl.sc.training_prep > rl.policy.prepare_for_training',
        'rl.sc.policy_training > rl.policy.train',
    }


def test_in_the_trace_of_its_step(traced: Traced) -> None:
    steps = {span.trace: span.name for span in traced.spans if span.name.endswith('.step')}
    assert sorted(steps.values()) == [
        'rl.distillation.step',
        'rl.dpo.step',
        'rl.grpo.step',
        'rl.ppo.step',
        'rl.ppo.step',
        'rl.rm.step',
        'rl.sc.step',
        'rl.sc.step',
        'rl.sft.step',
    ]
    ranks: dict[str, list[int]] = {}
    for span in traced.run.named('rl.policy.train'):
        ranks.setdefault(steps[span.trace], []).append(span.resource['dl.rank'])
    assert {name: sorted(found) for name, found in ranks.items()} == {
        'rl.ppo.step': [0, 0, 0, 1, 1, 1],  # one update of the asynchronous one, and two of the other
        'rl.sft.step': [0, 0, 1, 1],  # and a validation
        'rl.dpo.step': [0, 0, 1, 1],
        'rl.rm.step': [0, 0, 1, 1],
        'rl.distillation.step': [0, 1],
        'rl.grpo.step': [0, 1],
        'rl.sc.step': [0, 0, 1, 1],  # two steps
    }


def test_asynchronous_ppo_as_a_tree(traced: Traced) -> None:
    job = traced.run.named('rl.ppo.job')[0]
    step = traced.run.named('rl.ppo.step')[0]
    driver = [span for span in traced.spans if span.resource['lens.role'] == 'driver']
    told = [
        span
        for span in driver
        if span.trace == step.trace or job.id in (span.id, span.parent)
        if not span.name.startswith('ray.') and 'starvation' not in span.name
    ]
    assert (
        '\n'.join(tree(told, ('rl.bucket', 'rl.iteration', 'rl.epoch', 'rl.step'))) + '\n'
        == """\
rl.ppo.job
  rl.init.total
  ~ rl.ppo.step rl.iteration=1
    rl.ppo.data_processing rl.bucket=overhead
    rl.ppo.value_inference rl.bucket=overhead
    rl.ppo.policy_and_reference_logprobs rl.bucket=overhead
    rl.ppo.advantage_calculation rl.bucket=overhead
    rl.ppo.value_training rl.bucket=productive
    rl.ppo.policy_training rl.bucket=productive rl.iteration=1
    rl.idle.refit_bubble rl.bucket=idle
      rl.ppo.weight_sync
    rl.ppo.evaluate rl.step=1
      rl.vllm.generate rl.bucket=overhead
      rl.rollout.calculate_rewards
    rl.ppo.checkpointing rl.bucket=overhead
"""
    )
    assert len([span for span in traced.run.named('rl.idle.buffer_starvation') if span.parent == step.id]) >= 3


def test_the_collectors_rollouts_are_ppos_there(traced: Traced) -> None:
    collected = [span for span in traced.spans if span.resource.get('ray.actor.name') == 'ppo_collector']
    batches = [span for span in collected if span.name.endswith('.generation')]
    assert {(span.name, span.attributes['rl.num_generations_per_prompt']) for span in batches} == {
        ('rl.ppo.generation', 3)
    }
    assert {span.trace for span in batches} == {traced.run.named('rl.ppo.job')[0].trace}


def test_what_is_an_actor_by_itself_is_recorded_there(traced: Traced) -> None:
    found = {span.name: span for span in traced.spans if span.name.startswith(('rl.sglang.', 'rl.rollout.rollout_to'))}
    assert sorted(found) == [
        'rl.rollout.rollout_to_tq',
        'rl.sglang.load_model',
        'rl.sglang.worker.release_memory_occupation',
        'rl.sglang.worker.resume_memory_occupation',
        'rl.sglang.worker.update_weights_from_tensor',
    ]
    assert found['rl.rollout.rollout_to_tq'].attributes['rl.num_generations_per_prompt'] == 4
    assert found['rl.sglang.load_model'].attributes['rl.backend'] == 'sglang'


def test_the_single_controller_as_a_tree(traced: Traced) -> None:
    actors = [span for span in traced.spans if span.resource.get('ray.actor.class') in CONTROLLED]
    told = [span for span in actors if not span.name.startswith('ray.')]
    shown = ('rl.bucket', 'rl.iteration', 'rl.weight_version', 'rl.target_step', 'rl.rollout.attempt')
    assert (
        '\n'.join(tree(told, (*shown, 'rl.gym.batch_size'))) + '\n'
        == """\
rl.sc.job
  rl.sc.generate_and_push rl.target_step=0
    rl.sc.rollout_attempt! rl.rollout.attempt=1
    rl.sc.rollout_attempt rl.rollout.attempt=2
      rl.gym.run_rollouts rl.gym.batch_size=2
    rl.data_plane.put
  ~ rl.sc.step rl.iteration=1 rl.weight_version=0
    rl.idle.buffer_starvation rl.bucket=idle
    rl.data_plane.claim_meta! rl.bucket=overhead
    rl.data_plane.get rl.bucket=overhead
    rl.sc.logprob_inference_prep rl.bucket=overhead
    rl.sc.policy_and_reference_logprobs rl.bucket=overhead
    rl.sc.advantage_calculation rl.bucket=overhead
    rl.sc.training_prep rl.bucket=productive
    rl.sc.policy_training rl.bucket=productive rl.iteration=1
    rl.idle.refit_bubble rl.bucket=idle
    rl.sc.checkpointing rl.bucket=overhead
  rl.sc.generate_and_push rl.target_step=1
    rl.sc.rollout_attempt rl.rollout.attempt=1
      rl.gym.run_rollouts rl.gym.batch_size=2
    rl.data_plane.put
  ~ rl.sc.step rl.iteration=2 rl.weight_version=1
    rl.idle.buffer_starvation rl.bucket=idle
    rl.data_plane.claim_meta! rl.bucket=overhead
    rl.data_plane.get rl.bucket=overhead
    rl.sc.logprob_inference_prep rl.bucket=overhead
    rl.sc.policy_and_reference_logprobs rl.bucket=overhead
    rl.sc.advantage_calculation rl.bucket=overhead
    rl.sc.training_prep rl.bucket=productive
    rl.sc.policy_training rl.bucket=productive rl.iteration=2
    rl.idle.refit_bubble rl.bucket=idle
    rl.sc.checkpointing rl.bucket=overhead
"""
    )


def test_the_data_plane_says_what_it_moves(traced: Traced) -> None:
    names = ('op', 'partition', 'keys', 'bytes', 'status')
    moved = [
        tuple(span.attributes[f'rl.data_plane.{name}'] for name in names)
        for span in traced.spans
        if span.name.startswith('rl.data_plane.')
    ]
    assert sorted(moved) == [
        ('claim_meta', 'train', 0, 0, 'timeout'),
        ('claim_meta', 'train', 0, 0, 'timeout'),
        ('get', 'train', 1, 32, 'ok'),
        ('get', 'train', 1, 32, 'ok'),
        ('put', 'train', 1, 64, 'ok'),
        ('put', 'train', 1, 64, 'ok'),
    ]
