# SPDX-License-Identifier: Apache-2.0
"""A real GRPO of TRL, with a model small enough for a CPU, traced by what `lens-rules discover` proposes for TRL."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.helpers.run import REPOSITORY, SCRIPTS, Place, Run
from tests.helpers.venvs import python_with

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(1800)]

VERSION = '1.16.0'
TORCH = ('-c', str(REPOSITORY / 'constraints' / 'torch-cpu.txt'))
PROGRAM = """
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer


def reward_even(completion_ids, **rest):
    return [sum(token % 2 == 0 for token in ids) / max(len(ids), 1) for ids in completion_ids]


words = {word: index for index, word in enumerate(['<pad>', '<eos>', '<unk>', *'abcdefghijklmnop'])}
raw = Tokenizer(WordLevel(words, unk_token='<unk>'))
raw.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token='<pad>', eos_token='<eos>', unk_token='<unk>')
config = LlamaConfig(
    vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
    num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=1,
)
arguments = GRPOConfig(
    output_dir='out', use_cpu=True, max_steps=2, per_device_train_batch_size=4, num_generations=2,
    max_completion_length=4, logging_steps=1, report_to='none', save_strategy='no', disable_tqdm=True, beta=0.0,
)
data = Dataset.from_dict({'prompt': ['a b c', 'd e f', 'g h', 'k l m'] * 4})
model = LlamaForCausalLM(config)
GRPOTrainer(model, reward_even, args=arguments, train_dataset=data, processing_class=tokenizer).train()
"""


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run."""
    python = python_with(f'trl-{VERSION}', f'trl=={VERSION}', *TORCH)
    [source] = Path(python).parents[1].glob('lib/python*/site-packages/trl')
    place = Place(tmp_path_factory.mktemp('trl')).write({'train.py': PROGRAM})
    done = place.plain(str(SCRIPTS / 'lens-rules'), 'discover', str(source), '-o', 'lens.yaml')
    assert done.code == 0, done.stderr
    done = place.plain(str(SCRIPTS / 'lens-rules'), 'check', '--python', python, 'lens.yaml')
    assert done.code == 0 and 'not installed' not in done.stdout, done.stdout
    return place.record('--span-groups', 'all', python, 'train.py', env={'HF_HUB_OFFLINE': '1'})


STEP = """\
rl.trl.step rl.iteration={}
  rl.trl.training_step
    rl.trl.prepare_inputs
      rl.trl.generate_and_score_completions
        rl.trl.generate
          rl.trl.transformers_generate
        rl.trl.calculate_rewards
    rl.trl.compute_loss
      rl.trl.get_per_token_logps_and_entropies
"""


def test_each_optimizer_step_is_a_span_with_the_phases_inside(run: Run) -> None:
    shown = textwrap.dedent(run.tree('rl.iteration').partition('rl.trl.job\n')[2]) + '\n'
    assert shown.replace('~ ', '') == STEP.format(1) + STEP.format(2)


def test_what_the_trainer_logs_becomes_points(run: Run) -> None:
    known = {'rl.reward.mean', 'rl.policy_loss', 'rl.grad_norm', 'rl.learning_rate', 'rl.entropy'}
    assert known <= run.metric_names()
    assert [point.value for point in run.points if point.name == 'rl.response_length.mean']
    assert not run.facts['faults']
