# SPDX-License-Identifier: Apache-2.0
"""What a span is about, by its group or, where it has none, by the words of its name."""

from __future__ import annotations

KINDS = (
    '',
    'step',
    'generation',
    'training',
    'logprob',
    'reward',
    'refit',
    'checkpoint',
    'data',
    'evaluation',
    'advantage',
    'setup',
    'wait',
    'job',
)
UNSAID, STEP = 0, 1
WAIT = KINDS.index('wait')
JOB = KINDS.index('job')
IDLE_BUCKET = 3  # in store.BUCKETS

_GROUPS = {
    'step': 'step',
    'job': 'job',
    'setup': 'setup',
    'model_init': 'setup',
    'load_checkpoint': 'setup',
    'evaluate': 'evaluation',
    'rollout': 'generation',
    'per_prompt': 'generation',
    'generation': 'generation',
    'reward': 'reward',
    'environment': 'reward',
    'policy_update': 'training',
    'forward_backward': 'training',
    'optimizer': 'training',
    'data_processing': 'data',
    'checkpoint': 'checkpoint',
    'logprob': 'logprob',
    'reference_policy': 'logprob',
    'advantage': 'advantage',
    'refit': 'refit',
    # `data_plane` holds transfers of samples and of weights, `efficiency` and `wait` waits of any kind: the name tells.
}

# The first that matches; all are looked for in the lower-case name.
_WORDS = (
    ('refit', ('refit', 'weight_sync', 'sync_weights', 'update_weights', 'weight_update', 'broadcast_weights')),
    ('refit', ('publish', 'reshard', 'wake_up', 'prepare_for_generation', 'offload', '.weights', 'transfer_weights')),
    ('wait', ('buffer_starvation', 'limit_pause', 'buffer_full', 'backoff', 'rl.idle.')),
    ('logprob', ('logprob', 'log_prob', 'reference', 'logits')),
    ('reward', ('reward', 'verif', 'score', 'environment', 'env_step', 'env.step')),
    ('advantage', ('advantage', 'value_inference')),
    ('checkpoint', ('checkpoint',)),
    ('evaluation', ('evaluat', 'validat')),
    ('generation', ('generat', 'rollout', 'sampling', 'trajector')),
    ('training', ('policy_update', 'train', 'forward', 'backward', 'optimizer', 'update_actor', 'update_policy')),
    ('data', ('data', 'dataloader', 'next_batch', 'collate')),
    ('setup', ('setup', 'startup', '.init', 'load_model')),
)
_COLLECTIVE = (
    *('all_reduce', 'allreduce', 'all_gather', 'allgather', 'reduce_scatter', 'barrier', 'all_to_all', 'nccl'),
    *('ray.get', 'ray.wait', 'rl.idle.', 'wait_for', 'collective'),
)


def of_group(group: str) -> int:
    """Index into KINDS for a span group, 0 where it does not tell.

    Args:
        group: The group.
    """
    return KINDS.index(_GROUPS.get(group, ''))


def of_name(name: str) -> int:
    """Index into KINDS for a span name, 0 where it does not tell.

    Args:
        name: The span's.
    """
    text = name.lower()
    return next((KINDS.index(kind) for kind, words in _WORDS if any(word in text for word in words)), UNSAID)


def is_wait(name: str) -> bool:
    """Whether a span of that name waits for others: a collective, a result, a buffer.

    Args:
        name: The span's.
    """
    text = name.lower()
    return any(word in text for word in _COLLECTIVE)


def names_step(name: str) -> bool:
    """Whether a span of that name is a training step, where no group says so.

    Args:
        name: The span's.
    """
    text = name.lower().replace('/', '.').replace(' ', '_')
    return text.rpartition('.')[2] in ('step', 'train_step', 'training_step', 'total_step_time', 'iteration')
