# SPDX-License-Identifier: Apache-2.0
"""One step of each algorithm, as the documented hierarchy has it, in the names of both vocabularies."""

from __future__ import annotations

import re
from importlib import metadata

import pytest

from tests.frameworks.conftest import copied
from tests.helpers.run import Place, Run

SHOWN = ('rl.bucket', 'rl.iteration', 'rl.epoch', 'rl.step', 'rl.num_generations_per_prompt')
ALGORITHMS = ('grpo', 'grpo_sync', 'ppo', 'sft', 'dpo', 'rm', 'distillation')

# In the published names.
TREES = {
    'grpo': """\
rl.grpo.job
  ~ rl.grpo.step rl.iteration=1 rl.epoch=1
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.prepare_for_generation
      rl.refit
    rl.grpo.collect_rollouts rl.num_generations_per_prompt=2
      rl.vllm.generate rl.bucket=productive
      rl.rollout.calculate_rewards
    rl.grpo.compute_rewards rl.bucket=productive
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.compute_logprobs rl.bucket=overhead
    rl.grpo.compute_advantages rl.bucket=overhead
    rl.grpo.policy_update rl.bucket=productive rl.iteration=1
    rl.grpo.evaluate rl.step=1
      rl.vllm.generate rl.bucket=overhead
      rl.rollout.calculate_rewards
    rl.grpo.save_checkpoint rl.bucket=overhead
""",
    'grpo_sync': """\
rl.grpo.job
  ~ rl.grpo.step rl.iteration=1 rl.epoch=1
    rl.grpo.data_processing rl.bucket=overhead
    rl.grpo.prepare_for_generation
    rl.grpo.collect_rollouts rl.num_generations_per_prompt=2
      rl.vllm.generate rl.bucket=productive
      rl.rollout.calculate_rewards
    rl.grpo.compute_rewards rl.bucket=productive
    rl.grpo.compute_logprobs rl.bucket=overhead
    rl.grpo.compute_advantages rl.bucket=overhead
    rl.grpo.policy_update rl.bucket=productive rl.iteration=1
    rl.grpo.evaluate rl.step=1
      rl.vllm.generate rl.bucket=overhead
      rl.rollout.calculate_rewards
    rl.grpo.save_checkpoint rl.bucket=overhead
""",
    'ppo': """\
rl.ppo.job
  ~ rl.ppo.step rl.iteration=1 rl.epoch=1
    rl.ppo.data_processing rl.bucket=overhead
    rl.ppo.prepare_for_generation
    rl.ppo.collect_rollouts rl.num_generations_per_prompt=3
      rl.vllm.generate rl.bucket=productive
      rl.rollout.calculate_rewards
    rl.ppo.compute_rewards rl.bucket=productive
    rl.ppo.data_processing rl.bucket=overhead
    rl.ppo.value_inference rl.bucket=overhead
    rl.ppo.compute_logprobs rl.bucket=overhead
    rl.ppo.compute_advantages rl.bucket=overhead
    rl.ppo.value_update rl.bucket=productive
    rl.ppo.policy_update rl.bucket=productive rl.iteration=1
    rl.ppo.value_update rl.bucket=productive
    rl.ppo.policy_update rl.bucket=productive rl.iteration=1
    rl.ppo.evaluate rl.step=1
      rl.vllm.generate rl.bucket=overhead
      rl.rollout.calculate_rewards
    rl.ppo.save_checkpoint rl.bucket=overhead
""",
    'sft': """\
rl.sft.job
  ~ rl.sft.step rl.iteration=1 rl.epoch=1
    rl.sft.data_processing rl.bucket=overhead
    rl.sft.policy_update rl.bucket=productive rl.iteration=1
    rl.sft.evaluate rl.step=1
    rl.sft.save_checkpoint rl.bucket=overhead
""",
    'dpo': """\
rl.dpo.job
  rl.dpo.reference_logprobs rl.bucket=overhead
  ~ rl.dpo.step rl.iteration=1 rl.epoch=1
    rl.dpo.policy_update rl.bucket=productive rl.iteration=1
    rl.dpo.evaluate rl.step=1
    rl.dpo.save_checkpoint rl.bucket=overhead
""",
    'rm': """\
rl.rm.job
  ~ rl.rm.step rl.iteration=1 rl.epoch=1
    rl.rm.policy_update rl.bucket=productive
    rl.rm.evaluate rl.step=1
      rl.rm.validation_forward rl.bucket=overhead
    rl.rm.save_checkpoint rl.bucket=overhead
""",
    'distillation': """\
rl.distillation.job
  ~ rl.distillation.step rl.iteration=1 rl.epoch=1
    rl.distillation.data_processing rl.bucket=overhead
    rl.distillation.prepare_for_generation
    rl.distillation.collect_rollouts rl.num_generations_per_prompt=4
      rl.vllm.generate rl.bucket=productive
      rl.rollout.calculate_rewards
    rl.distillation.data_processing rl.bucket=overhead
    rl.distillation.teacher_logprobs rl.bucket=overhead
    rl.distillation.policy_update rl.bucket=productive rl.iteration=1
    rl.distillation.evaluate rl.step=1
      rl.vllm.generate rl.bucket=overhead
      rl.rollout.calculate_rewards
    rl.distillation.save_checkpoint rl.bucket=overhead
""",
}
LABELS = {
    'collect_rollouts': 'generation',
    'compute_rewards': 'reward_calculation',
    'compute_logprobs': 'policy_and_reference_logprobs',
    'compute_advantages': 'advantage_calculation',
    'policy_update': 'policy_training',
    'value_update': 'value_training',
    'teacher_logprobs': 'teacher_logprob_inference',
    'save_checkpoint': 'checkpointing',
}


@pytest.fixture(scope='module', params=['published', 'label'])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run]:
    """All algorithms, one after the other, with one vocabulary."""
    pytest.importorskip('ray')
    place = copied(Place(tmp_path_factory.mktemp('all')))
    program = ('python', 'run_trainers.py', '--local', '--config', 'configs/all.yaml')
    chosen = ('--set', f'vocabulary={request.param}', '--span-groups', 'per_step,job')
    return request.param, place.record(*chosen, *program, '--algorithms', ','.join(ALGORITHMS))


@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_in_the_documented_hierarchy(trained: tuple[str, Run], algorithm: str) -> None:
    vocabulary, run = trained
    expected = TREES[algorithm]
    if vocabulary == 'label':
        expected = re.sub(r'(?<=\.)\w+(?= |$)', lambda match: LABELS.get(match[0], match[0]), expected, flags=re.M)
    jobs = re.split(r'^  (?=rl\.\w+\.job)', run.tree(*SHOWN), flags=re.MULTILINE)[1:]
    found = [re.sub(r'^  ', '', re.sub(r'\n  (?! ).*', '', job), flags=re.MULTILINE).rstrip() for job in jobs]
    assert found[ALGORITHMS.index(algorithm)] + '\n' == expected


def test_in_traces_of_their_own_that_link_to_the_job(trained: tuple[str, Run]) -> None:
    _, run = trained
    jobs = [span for span in run.spans if span.name.endswith('.job')]
    steps = [span for span in run.spans if span.name.endswith('.step')]
    assert len(jobs) == len(steps) == len(ALGORITHMS)
    assert {span.parent for span in steps} == {''}
    assert len({span.trace for span in (*steps, run.only('lens.run'))}) == len(ALGORITHMS) + 1
    for job, step in zip(jobs, steps, strict=True):
        assert job.id in {target for _, target in step.links}
        assert {span.trace for span in run.spans if span.parent == step.id} == {step.trace}


def test_with_the_algorithm_and_its_config_on_the_resource(trained: tuple[str, Run]) -> None:
    _, run = trained
    resource = run.only('rl.ppo.step').resource
    assert {name: value for name, value in resource.items() if name.startswith(('rl.', 'dl.', 'nv.', 'nemo.p'))} == {
        'rl.algorithm': 'ppo',
        'rl.model': 'tiny/model',
        'nemo.precision': 'bfloat16',
        'dl.tensor_parallel.size': 2,
        'dl.pipeline_parallel.size': 1,
        'nv.dl.campaign.stage': 'RL',
        'nv.dl.provider.name': 'nemo-rl',
        'nv.dl.run.uuid': run.facts['run_id'],
        'nv.dl.topology.size.tp': 2,
        'nv.dl.topology.size.pp': 1,
        'nv.dl.topology.size.dp': 4,
        'nv.dl.software.torch': metadata.version('torch'),
        'nv.dl.training.config.optimizer': 'torch.optim.AdamW',
        'nv.dl.training.config.global_batch_size': 4,
        'nv.dl.training.target.train_iters': 1,
    }
    algorithms = [span.resource['rl.algorithm'] for span in run.spans if span.name.endswith('.step')]
    assert algorithms == ['grpo', 'grpo', 'ppo', 'sft', 'dpo', 'rm', 'distillation']
