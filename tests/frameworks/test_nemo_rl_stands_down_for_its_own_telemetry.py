# SPDX-License-Identifier: Apache-2.0
"""Where a NeMo-RL records by itself its documented spans are its own business, and the others still ours."""

from __future__ import annotations

import pytest

from tests.helpers.run import Place

PROGRAM = ('run_trainers.py', '--local', '--config', 'configs/all.yaml', '--algorithms', 'grpo,ppo,rm')
TELEMETRY = {'nemo_rl/telemetry/__init__.py': '', 'nemo/lens/__init__.py': ''}
OURS = {
    'rl.startup',
    'rl.setup.policy',
    'rl.setup.generation',
    'rl.setup.value',
    'rl.refit',
    'rl.grpo.prepare_for_generation',
    'rl.ppo.prepare_for_generation',
    'rl.ppo.value_inference',
    'rl.rollout.calculate_rewards',
    'rl.rm.policy_update',
    'rl.rm.validation_forward',
}
THEIRS = {
    'rl.setup.data',
    'rl.grpo.job',
    'rl.grpo.step',
    'rl.grpo.data_processing',
    'rl.grpo.collect_rollouts',
    'rl.grpo.compute_rewards',
    'rl.grpo.compute_logprobs',
    'rl.grpo.compute_advantages',
    'rl.grpo.policy_update',
    'rl.grpo.evaluate',
    'rl.grpo.save_checkpoint',
    'rl.ppo.job',
    'rl.ppo.step',
    'rl.ppo.data_processing',
    'rl.ppo.collect_rollouts',
    'rl.ppo.compute_rewards',
    'rl.ppo.compute_logprobs',
    'rl.ppo.compute_advantages',
    'rl.ppo.policy_update',
    'rl.ppo.value_update',
    'rl.ppo.evaluate',
    'rl.ppo.save_checkpoint',
    'rl.rm.job',
    'rl.rm.step',
    'rl.rm.evaluate',
    'rl.rm.save_checkpoint',
    'rl.vllm.generate',
}


def names(place: Place, *arguments: str, **env: str) -> set[str]:
    return place.record('--span-groups', 'per_step,job', 'python', *PROGRAM, *arguments, env=env).names()


def test_where_its_variable_says_so(nemo_rl: Place) -> None:
    nemo_rl.write(TELEMETRY)
    assert names(nemo_rl, NEMO_RL_OTEL_ENABLED='1') == OURS - {'rl.startup'}


def test_where_the_variable_says_so_that_stands_in_for_its_own(nemo_rl: Place) -> None:
    nemo_rl.write(TELEMETRY)
    assert names(nemo_rl, NEMO_LENS_ENABLED='1') == OURS - {'rl.startup'}
    assert names(nemo_rl, NEMO_LENS_ENABLED='1', NEMO_RL_OTEL_ENABLED='0', LENS_ENABLED='1') == OURS | THEIRS


def test_its_metrics_are_its_own_too(nemo_rl: Place) -> None:
    nemo_rl.write(TELEMETRY)
    command = ('--span-groups', 'per_step,job', 'python', *PROGRAM)
    theirs = {'rl.reward.mean', 'rl.policy_loss', 'gen_ai.client.token.usage', 'rl.vllm.prompt_tokens'}
    assert theirs <= nemo_rl.record(*command).metric_names()
    assert not theirs & nemo_rl.record(*command, env={'NEMO_RL_OTEL_ENABLED': '1'}).metric_names()


def test_where_its_config_says_so(nemo_rl: Place) -> None:
    nemo_rl.write(TELEMETRY)
    # This program has set its data up by the time it builds its config.
    assert names(nemo_rl, '++telemetry.enabled=true') == OURS | {'rl.setup.data'}


@pytest.mark.parametrize(
    ('files', 'env'),
    [
        (TELEMETRY, {}),
        (TELEMETRY, {'NEMO_RL_OTEL_ENABLED': '0'} | {'LENS_ENABLED': '1'}),
        ({'nemo_rl/telemetry/__init__.py': ''}, {'NEMO_RL_OTEL_ENABLED': '1'}),
        ({'nemo/lens/__init__.py': ''}, {'NEMO_RL_OTEL_ENABLED': '1'}),
    ],
    ids=['not switched on', 'switched off', 'without its library', 'older than that'],
)
def test_not_where_it_would_record_nothing(nemo_rl: Place, files: dict[str, str], env: dict[str, str]) -> None:
    nemo_rl.write(files)
    assert names(nemo_rl, **env) == OURS | THEIRS
