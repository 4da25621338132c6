# SPDX-License-Identifier: Apache-2.0
"""The `telemetry:` block of NeMo-RL's config counts, and its overrides and variables, for a program that knows none."""

from __future__ import annotations

import pytest

from tests.helpers.run import Place, Run

PROGRAM = ('python', 'run_trainers.py', '--local', '--config', 'own.yaml')
STEP = {'rl.grpo.step'}
EVALUATE = {'rl.grpo.evaluate'}
BASE = {
    'telemetry.yaml': 'defaults: configs/all.yaml\ntelemetry: {span_groups: step, service_name: from-the-base}\n',
    'own.yaml': 'defaults: telemetry.yaml\ngrpo: {val_period: 1}\n',
}

# Builds its config itself, so no file and no argument says anything of telemetry.
IN_CODE = """\
import run_trainers
from nemo_rl.algorithms.grpo import MasterConfig, grpo_train
from nemo_rl.data.utils import setup_response_data
from nemo_rl.models.generation.vllm.vllm_generation import VllmGeneration
from nemo_rl.models.policy.lm_policy import Policy
from nemo_rl.utils.config import load_config
from nemo_rl.utils.logger import Logger

config = MasterConfig(**load_config('configs/all.yaml'), telemetry={'span_groups': 'evaluate'})
data, val_data = setup_response_data(None, config.data)
workers = run_trainers.LocalWorkers()
policy = Policy(config.policy, workers=workers)
generation = VllmGeneration(config.policy['generation'], workers=workers)
grpo_train(policy, generation, data, val_data, None, None, Logger(config.logger), config)
"""


def source(run: Run, field: str) -> str:
    """Where run.json says that a setting came from."""
    return run.facts['settings'][field][1]


def test_the_block_that_a_config_inherits(nemo_rl: Place) -> None:
    run = nemo_rl.write(BASE).record(*PROGRAM)
    assert run.names() == STEP
    assert {span.resource['service.name'] for span in run.spans} == {'from-the-base'}
    assert 'telemetry.yaml' in source(run, 'span_groups') or 'own.yaml' in source(run, 'span_groups')


def test_an_own_block_over_the_inherited_one(nemo_rl: Place) -> None:
    own = BASE['own.yaml'] + 'telemetry: {span_groups: evaluate}\n'
    run = nemo_rl.write({**BASE, 'own.yaml': own}).record(*PROGRAM)
    assert run.names() == EVALUATE
    assert {span.resource['service.name'] for span in run.spans} == {'from-the-base'}


@pytest.mark.parametrize('override', ['++telemetry.span_groups=evaluate', 'telemetry.span_groups=evaluate'])
def test_an_override_over_the_block(nemo_rl: Place, override: str) -> None:
    run = nemo_rl.write(BASE).record(*PROGRAM, override)
    assert run.names() == EVALUATE
    assert override in source(run, 'span_groups')


def test_an_override_that_adds_the_block(nemo_rl: Place) -> None:
    run = nemo_rl.write({'own.yaml': 'defaults: configs/all.yaml\n'}).record(
        *PROGRAM, '++telemetry.enabled=true', '++telemetry.span_groups=step'
    )
    assert run.names() == STEP


def test_what_the_program_chose_in_code(nemo_rl: Place) -> None:
    run = nemo_rl.write({'train.py': IN_CODE}).record('python', 'train.py')
    assert run.names() - {'rl.startup'} == EVALUATE


@pytest.mark.parametrize(
    ('env', 'names'),
    [
        ({'NEMO_RL_OTEL_SPAN_GROUPS': 'evaluate'}, EVALUATE),
        ({'NEMO_LENS_SPAN_GROUPS': 'evaluate'}, EVALUATE),
        ({'NEMO_LENS_SPAN_GROUPS': 'job', 'NEMO_RL_OTEL_SPAN_GROUPS': 'evaluate'}, EVALUATE),
        ({'NEMO_RL_OTEL_SPAN_GROUPS': ''}, STEP),
    ],
    ids=['its variable', 'the fallback', 'both', 'set to nothing'],
)
def test_variables_over_the_block_and_its_overrides(nemo_rl: Place, env: dict[str, str], names: set[str]) -> None:
    run = nemo_rl.write(BASE).record(*PROGRAM, 'telemetry.span_groups=step', env=env)
    assert run.names() == names


def test_a_block_that_is_switched_off_is_obeyed_and_said(nemo_rl: Place) -> None:
    nemo_rl.write({**BASE, 'own.yaml': BASE['own.yaml'] + 'telemetry: {enabled: false}\n'})
    plain = nemo_rl.plain(*PROGRAM)
    done = nemo_rl.lens('--no-summary', *PROGRAM)
    assert (done.code, done.stdout) == (0, plain.stdout)
    assert 'enabled' in done.ours
    assert not [name for run in nemo_rl.runs for name in run.names()]


def test_variables_of_the_run_itself(nemo_rl: Place) -> None:
    env = {'NEMO_RL_OTEL_RUN_ID': 'mine', 'NEMO_RL_OTEL_USER_ID': 'me', 'SLURM_JOB_ID': '4711'}
    run = nemo_rl.write(BASE).record(*PROGRAM, env=env)
    assert run.facts['run_id'] == 'mine'
    assert {(span.resource['nemo.run.id'], span.resource['nemo.user.id']) for span in run.spans} == {('mine', 'me')}


def test_per_step_without_the_job_is_a_trace_for_each_step(nemo_rl: Place) -> None:
    nemo_rl.write(BASE)
    run = nemo_rl.record(*PROGRAM, '++telemetry.span_groups=per_step', '++grpo.max_num_steps=3')
    root = run.only('lens.run')
    steps = run.named('rl.grpo.step')
    assert [span.attributes['rl.iteration'] for span in steps] == [1, 2, 3]
    assert not run.named('rl.grpo.job')
    assert len({span.trace for span in (root, *steps)}) == 4
    assert [(span.parent, span.links) for span in steps] == [('', ((root.trace, root.id),))] * 3


def test_a_key_that_the_config_lacks_leaves_its_attribute_out(nemo_rl: Place) -> None:
    nemo_rl.write(
        {
            'own.yaml': 'defaults: configs/all.yaml\npolicy: {dtensor_cfg: {enabled: false}}\n'
            'telemetry: {span_groups: step}\n',
        }
    )
    with_precision = nemo_rl.record(*PROGRAM).only('rl.grpo.step').resource
    config = nemo_rl.cwd / 'configs' / 'base.yaml'
    config.write_text(config.read_text().replace('  precision: bfloat16\n', ''))
    without = nemo_rl.record(*PROGRAM).only('rl.grpo.step').resource
    assert with_precision['nemo.precision'] == 'bfloat16' and 'nemo.precision' not in without
    for resource in (with_precision, without):
        assert resource['rl.model'] == 'tiny/model'
        assert 'dl.tensor_parallel.size' not in resource and 'nv.dl.training.config.sequence_length' not in resource


def test_the_program_prints_the_same_with_all_of_it(nemo_rl: Place) -> None:
    nemo_rl.write(BASE)
    everything = (*PROGRAM, '--algorithms', 'grpo,ppo,sft,dpo,rm,distillation,grpo_sync', '++telemetry.span_groups=all')
    plain, traced = nemo_rl.plain(*everything), nemo_rl.lens('--no-summary', *everything)
    assert (plain.code, plain.stdout, plain.stderr) == (traced.code, traced.stdout, traced.theirs)
    assert nemo_rl.run.only('rl.ppo.job')


@pytest.mark.parametrize(
    ('config', 'sizes'),
    [
        ('cluster: {gpus_per_node: 8, num_nodes: 2}', (2, 1, 8)),
        ('cluster: {gpus_per_node: 7, num_nodes: 1}', (2, 1, None)),
        ('cluster: {gpus_per_node: 8}\npolicy: {generation: {colocated: {enabled: false}}}', (2, 1, None)),
        (
            'cluster: {gpus_per_node: 8}\npolicy: {dtensor_cfg: {enabled: false}, megatron_cfg: {enabled: true,'
            ' tensor_model_parallel_size: 2, pipeline_model_parallel_size: 2, context_parallel_size: 2,'
            ' activation_checkpointing: true, recompute_granularity: full, optimizer: {optimizer: adam}}}',
            (2, 2, 1),
        ),
    ],
    ids=['two nodes', 'not divisible', 'generation elsewhere', 'megatron'],
)
def test_how_the_model_is_spread(nemo_rl: Place, config: str, sizes: tuple[int, int, int | None]) -> None:
    nemo_rl.write({'own.yaml': f'defaults: configs/all.yaml\n{config}\ntelemetry: {{span_groups: step}}\n'})
    resource = nemo_rl.record(*PROGRAM).only('rl.grpo.step').resource
    assert tuple(resource.get(f'nv.dl.topology.size.{name}') for name in ('tp', 'pp', 'dp')) == sizes
    megatron = sizes[1] == 2
    told = tuple(resource.get(f'nv.dl.training.config.{name}') for name in ('optimizer', 'recompute_granularity'))
    assert told == (('adam', 'full') if megatron else ('torch.optim.AdamW', None))
