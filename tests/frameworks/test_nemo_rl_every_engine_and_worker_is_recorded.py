# SPDX-License-Identifier: Apache-2.0
"""Engines, workers and ways of weight sync, most of which need a GPU where they are real: each rule has its span."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from tests.frameworks.conftest import copied
from tests.helpers.run import Place, Run, tree

POLICY = {
    'rl.policy.load_model',
    'rl.policy.train',
    'rl.policy.get_logprobs',
    'rl.policy.get_topk_logits',
    'rl.policy.prepare_for_training',
    'rl.policy.prepare_for_lp_inference',
    'rl.policy.offload_before_refit',
    'rl.policy.offload_after_refit',
    'rl.policy.stream_weights_via_ipc_zmq',
    'rl.policy.broadcast_weights_for_collective',
    'rl.policy.save_checkpoint',
}
VALUE = {
    'rl.value.load_model',
    'rl.value.train',
    'rl.value.get_values',
    'rl.value.prepare_for_training',
    'rl.value.prepare_for_inference',
    'rl.value.save_checkpoint',
}
BY_BACKEND = {
    'vllm': {
        'rl.setup.generation',
        'rl.setup.generation_load',
        'rl.vllm.load_model',
        'rl.vllm.generate',
        'rl.vllm.generate_text',
        'rl.vllm.generate_async',
    },
    'sglang': {'rl.setup.generation', 'rl.sglang.generate', 'rl.sglang.generate_async'},
    'trtllm': {'rl.setup.generation', 'rl.trtllm.load_model', 'rl.trtllm.generate', 'rl.trtllm.generate_async'},
    'dynamo': {'rl.setup.generation', 'rl.dynamo.generate', 'rl.dynamo.generate_async'},
    'megatron': {
        'rl.setup.generation',
        'rl.megatron.load_engine',
        'rl.megatron.generate',
        'rl.megatron.generate_async',
        *POLICY,
        'rl.policy.get_reference_policy_logprobs',
        'rl.policy.begin_train_step',
        'rl.policy.train_microbatch',
        'rl.policy.finish_train_step',
        'rl.policy.nccl_reshard_refit',
        *VALUE,
    },
    'dtensor': {*POLICY, 'rl.policy.score'},
    'dtensor_v2': {*POLICY, 'rl.policy.score', 'rl.policy.stream_weights_via_http', *VALUE},
}
OF_NO_BACKEND = {
    'rl.vllm.worker.generate': 1,
    'rl.vllm.worker.generate_text': 1,
    'rl.vllm.worker.generate_async': 1,
    'rl.vllm.worker.generate_text_async': 1,
    # Once by the worker that generates batch by batch, once by the one that does sample by sample.
    'rl.vllm.worker.update_weights_via_ipc_zmq': 2,
    'rl.vllm.worker.update_weights_from_collective': 2,
    'rl.vllm.worker.nccl_reshard_refit': 2,
    'rl.vllm.worker.sleep': 2,
    'rl.vllm.worker.wake_up': 2,
    'rl.trtllm.worker.generate': 1,
    'rl.trtllm.worker.update_weights_via_ipc_zmq': 1,
    'rl.trtllm.worker.update_weights_from_collective': 1,
    'rl.trtllm.worker.sleep': 1,
    'rl.trtllm.worker.wake_up': 1,
    'rl.megatron.worker.generate': 1,
    'rl.megatron.worker.generate_async': 1,
    'rl.megatron.worker.prepare_for_generation': 1,
    'rl.megatron.worker.finish_generation': 1,
    'rl.megatron.worker.swap_weights_via_reshard': 1,
    'rl.setup.nemo_gym_config': 1,
    'rl.setup.nemo_gym': 1,
    'rl.setup.cluster': 1,
    'rl.setup.teacher': 1,
    'rl.setup.policy': 1,
    'rl.setup.value': 1,
    'rl.setup.data': 3,
    'rl.setup.workers': 4,
}
WAYS = {'ipc', 'http', 'collective', 'megatron', 'nccl_reshard', 'checkpoint_engine', 'vllm_remote_sparse'}
# Modules of which this program calls all that rules are about.
OF_THIS = (
    'nemo_rl.models.',
    'nemo_rl.weight_sync.',
    'nemo_rl.evals.',
    'nemo_rl.algorithms.xtoken_off_policy_distillation',
    'nemo_rl.data.',
)
XTOKEN = """\
rl.xtoken_distillation.job
  ~ rl.xtoken_distillation.step rl.iteration=1
    rl.xtoken_distillation.teacher_logprobs rl.bucket=overhead
    rl.xtoken_distillation.training_prep
    rl.xtoken_distillation.policy_update rl.bucket=productive rl.iteration=1
    rl.xtoken_distillation.evaluate
    rl.xtoken_distillation.save_checkpoint rl.bucket=overhead"""


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    pytest.importorskip('ray')
    place = copied(Place(tmp_path_factory.mktemp('engines')))
    command = (sys.executable, 'run_engines.py')
    plain = place.plain(*command)
    traced = place.lens('--span-groups', 'all', '--run-dir', 'run', *command)
    assert (traced.code, traced.stdout) == (plain.code, plain.stdout) == (0, plain.stdout), traced.stderr
    return Run(place.cwd / 'run')


@pytest.mark.parametrize('backend', BY_BACKEND)
def test_a_backend_has_its_spans(run: Run, backend: str) -> None:
    spans = Counter(span.name for span in run.spans if span.attributes.get('rl.backend') == backend)
    assert set(spans) == BY_BACKEND[backend]


def test_what_belongs_to_no_backend_has_its_spans_too(run: Run) -> None:
    spans = Counter(span.name for span in run.spans if span.attributes.get('rl.backend') is None)
    assert {name: spans[name] for name in OF_NO_BACKEND} == OF_NO_BACKEND


def test_each_way_of_weight_sync_says_which_it_is(run: Run) -> None:
    spans = [span for span in run.spans if span.name == 'rl.refit.sync_weights']
    assert sorted(str(span.attributes.get('rl.refit.transport')) for span in spans) == sorted(WAYS)


def test_tokens_are_counted_for_each_engine(run: Run) -> None:
    counted = Counter(
        (str(point.attributes.get('gen_ai.provider.name')), str(point.attributes.get('gen_ai.token.type')), point.value)
        for point in run.points
        if point.name == 'gen_ai.client.token.usage'
    )
    engines = ('sglang', 'trtllm', 'megatron')
    assert {key: number for key, number in counted.items() if key[0] in engines} == {
        (engine, kind, value): 1 for engine in engines for kind, value in (('input', 9), ('output', 6))
    }


def test_distillation_from_other_tokenizers_has_the_tree_of_a_trainer(run: Run) -> None:
    spans = [span for span in run.spans if 'xtoken' in span.name]
    assert '\n'.join(tree(spans, ('rl.bucket', 'rl.iteration'))) == XTOKEN


def test_an_evaluation_is_a_job(run: Run) -> None:
    job = run.only('rl.eval.job')
    assert [span.name for span in run.spans if span.parent == job.id] == ['rl.vllm.generate']


def test_no_rule_about_them_is_left_uncalled_or_reads_what_is_not_there(run: Run) -> None:
    rules = [
        rule
        for rule in run.facts['rules']
        if any(target.startswith(OF_THIS) and 'sglang_worker' not in target for target in rule['targets'])
    ]
    assert len(rules) > 115
    # A phase of DPO is told by the policy's method that it calls; what is an actor by itself, another test calls.
    assert {rule['name'] for rule in rules if not rule['calls']} == {'rl.dpo.reference_logprobs'}
    unread = {rule['name'] for rule in rules if rule['unread'] and rule['kind'] != 'resource'}
    assert (unread, [rule['name'] for rule in rules if rule['faults'] or rule['missing']]) == (set(), [])
