# SPDX-License-Identifier: Apache-2.0
"""`lens-rules discover` on TRL's and verl's packages: the real seams are proposed, few that are none, and check agrees.

The packages are read only, so they are installed without what they need. What must and must not be there is written
from their source, and holds for these versions.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.run import SCRIPTS
from tests.helpers.venvs import python_with

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(900)]

VERSIONS = {'trl': '1.16.0', 'verl': '0.9.1'}
RULES = str(SCRIPTS / 'lens-rules')


class Proposed:
    """The proposal for a package, read back.

    Args:
        package: Its name.
        folder: Where the file goes.
    """

    def __init__(self, package: str, folder: Path) -> None:
        version = VERSIONS[package]
        self.python = python_with(f'{package}-{version}-source', f'{package}=={version}', dependencies=False)
        [source] = Path(self.python).parents[1].glob(f'lib/python*/site-packages/{package}')
        self.path = folder / f'{package}.yaml'
        subprocess.run([RULES, 'discover', str(source), '-o', str(self.path)], check=True, capture_output=True)
        self.text = self.path.read_text()
        self.file: dict[str, Any] = yaml.safe_load(self.text)

    def rules(self, kind: str) -> list[dict[str, Any]]:
        """The rules of a kind."""
        return [rule for rule in self.file['rules'] if rule['kind'] == kind]

    def targets(self, group: str) -> set[str]:
        """The targets of the function rules of a group, without the package."""
        named = (rule['target'] for rule in self.rules('function') if rule['group'] == group)
        return {target.removeprefix(f'{self.path.stem}.') for target in named}

    def groups(self) -> dict[str, str]:
        """The group of each timer label."""
        return {label: value['group'] for rule in self.rules('timer') for label, value in rule['labels'].items()}


@pytest.fixture(scope='module')
def trl(tmp_path_factory: pytest.TempPathFactory) -> Proposed:
    return Proposed('trl', tmp_path_factory.mktemp('trl'))


@pytest.fixture(scope='module')
def verl(tmp_path_factory: pytest.TempPathFactory) -> Proposed:
    return Proposed('verl', tmp_path_factory.mktemp('verl'))


@pytest.mark.parametrize('package', list(VERSIONS))
def test_the_proposed_file_passes_check(package: str, request: pytest.FixtureRequest) -> None:
    proposed: Proposed = request.getfixturevalue(package)
    done = subprocess.run(
        [RULES, 'check', '--python', proposed.python, str(proposed.path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    own = [line for line in done.stdout.splitlines() if f' {package}.' in line]
    assert own and all(line.split()[3] == 'matched' for line in own)
    assert proposed.file['framework'] == proposed.file['when'] == package


@pytest.mark.parametrize('package', list(VERSIONS))
def test_it_is_short_enough_to_be_read(package: str, request: pytest.FixtureRequest) -> None:
    proposed: Proposed = request.getfixturevalue(package)
    assert len(proposed.file['rules']) <= 40
    assert len(proposed.text.splitlines()) <= 400


def test_trl_steps_are_those_of_the_trainer_below(trl: Proposed) -> None:
    [step] = trl.rules('interval')
    assert step['start'] == 'transformers.trainer_callback:CallbackHandler.on_step_begin'
    assert step['stop'] == 'transformers.trainer_callback:CallbackHandler.on_step_end'
    assert trl.targets('job') == {'transformers.trainer:Trainer.train'}
    assert trl.rules('loop') == [] == trl.rules('call')


def test_trl_labels_are_those_of_its_decorator_and_its_context(trl: Proposed) -> None:
    [timer] = trl.rules('timer')
    assert (timer['with'], timer['label_arg']) == ('trl.extras.profiling:ProfilingContext', 'name')
    groups = trl.groups()
    # By `@profiling_decorator`, by `profiling_context(self, "...")`, and passed on to vLLM's generation.
    assert groups['*._calculate_rewards'] == 'reward'
    assert groups['*._get_per_token_logps_and_entropies'] == 'logprob'
    assert groups['*.compute_loss'] == 'forward_backward'
    assert groups['*.sync_weights'] == 'refit'
    assert groups['*.transformers.generate'] == groups['*.vLLM.generate'] == 'generation'
    assert not {'matrix_multiplication', 'func.__name__'} & {label.removeprefix('*.') for label in groups}


def test_trl_phases_are_the_trainers(trl: Proposed) -> None:
    assert trl.targets('rollout') == {
        'trainer.grpo_trainer:GRPOTrainer._generate_and_score_completions',
        'trainer.rloo_trainer:RLOOTrainer._generate_and_score_completions',
        'trainer.distillation_trainer:DistillationTrainer._generate_and_score_completions',
    }
    every = [rule['target'] for rule in trl.rules('function')]
    assert not [
        target for target in every if '.experimental.' in target or '.kernels.' in target or 'scripts' in target
    ]
    # Timed by the decorator, or told by the Trainer: not hooked once more.
    again = {'_calculate_rewards', '_get_per_token_logps_and_entropies', 'compute_loss'}
    assert not [target for target in every if target.rpartition('.')[2] in again]
    assert trl.targets('evaluate') == {'transformers.trainer:Trainer.evaluate'}


def test_trl_metrics_are_read_where_the_trainer_reports_them(trl: Proposed) -> None:
    [logger] = trl.rules('logger')
    assert logger['target'] == 'transformers.trainer_callback:CallbackHandler.on_log'
    assert logger['metrics_arg'] == 'logs'
    assert logger['metrics']['reward'] == 'rl.reward.mean'
    assert logger['metrics']['kl'] == 'rl.kl_divergence'
    assert 'prompt' not in logger['metrics'] and 'completion' not in logger['metrics']


def test_verl_phases_are_its_marked_timers_labels(verl: Proposed) -> None:
    marked = verl.rules('timer')[0]
    assert marked['with'] == [
        f'verl.utils.profiler.{module}:marked_timer' for module in ('mstx_profile', 'nvtx_profile', 'performance')
    ]
    expected = {
        'step': 'step',
        'gen': 'generation',
        'reward': 'reward',
        'old_log_prob': 'logprob',
        'ref': 'reference_policy',
        'values': 'logprob',
        'adv': 'advantage',
        'update_critic': 'policy_update',
        'update_actor': 'policy_update',
        'update_weights': 'refit',
        'save_checkpoint': 'checkpoint',
        'testing': 'evaluate',
        'wait_for_enough_samples': 'efficiency',
        'generate_sequences': 'generation',
        'compute_score': 'reward',
    }
    assert expected.items() <= verl.groups().items()
    step = marked['labels']['step']
    assert step['root'] is True
    assert step['attributes'] == {'rl.iteration': 'frame.self.global_steps'}
    assert not {'start_profile', 'stop_profile'} & verl.groups().keys()


def test_verl_loops_are_hooked_where_no_timer_times_their_steps(verl: Proposed) -> None:
    loops = {rule['target']: rule['match'] for rule in verl.rules('loop')}
    assert loops == {
        'verl.trainer.sft_trainer:SFTTrainer.fit': 'for $step_in_epoch, $_ in enumerate($$$):',
        'verl.trainer.sft_trainer_ray:SFTTrainer.fit': 'for $_ in enumerate(tqdm(self.train_dataloader, $$$)):',
    }
    jobs = verl.targets('job')
    assert {'trainer.ppo.v1.trainer_base:PPOTrainer.fit', 'trainer.sft_trainer:SFTTrainer.fit'} <= jobs
    assert all(target.endswith('.fit') for target in jobs)


def test_verl_functions_under_a_timer_are_not_hooked_again(verl: Proposed) -> None:
    every = [rule['target'] for rule in verl.rules('function')]
    timed = {'_compute_old_log_prob', '_compute_advantage', '_update_actor', '_update_critic', '_validate'}
    assert not [target for target in every if target.rpartition('.')[2] in timed]
    # Arithmetic on tensors, settings and helpers are no phases.
    assert not [target for target in every if 'from_logits' in target or 'profil' in target or 'utils.torch_' in target]
    buckets = [
        rule.get('bucket') for rule in verl.rules('function') if 'ActorRolloutRefWorker.compute' in rule['target']
    ]
    assert buckets and set(buckets) == {'none'}  # the driver's label around the call has it


def test_verl_metrics_are_those_of_its_tracking(verl: Proposed) -> None:
    [logger] = verl.rules('logger')
    assert logger['target'] == 'verl.utils.tracking:Tracking.log'
    assert logger['metrics']['critic/rewards/mean'] == 'rl.reward.mean'
    assert logger['metrics']['timing_s/*']['unit'] == 's'


def test_verl_actors_are_named(verl: Proposed) -> None:
    assert '#   verl.trainer.main_ppo:TaskRunnerV1, line ' in verl.text
