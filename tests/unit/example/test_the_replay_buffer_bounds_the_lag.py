# SPDX-License-Identifier: Apache-2.0
import random

import pytest
import torch
from tiny_grpo.generation import Rollouts
from tiny_grpo.replay_buffer import Experience, ReplayBuffer


def batch(version: int) -> Experience:
    tokens = torch.zeros(1, 3, dtype=torch.long)
    return Experience(Rollouts(tokens, tokens, prompt_length=1, weight_version=version), torch.zeros(1))


def test_batches_leave_in_the_order_they_came():
    buffer = ReplayBuffer(max_lag=2)
    for _ in range(3):
        assert buffer.reserve(0)
    batches = [batch(0), batch(0), batch(0)]
    for one in batches:
        buffer.add(one)

    assert len(buffer) == 3
    assert [buffer.take() for _ in range(3)] == batches
    assert len(buffer) == 0


@pytest.mark.parametrize('max_lag', [0, 1, 3])
def test_weights_allow_one_batch_and_as_many_ahead_as_the_lag(max_lag: int):
    buffer = ReplayBuffer(max_lag)

    assert [buffer.reserve(0) for _ in range(max_lag + 2)] == [True] * (max_lag + 1) + [False]
    assert [buffer.reserve(1), buffer.reserve(1)] == [True, False]


def test_a_batch_needs_a_place():
    buffer = ReplayBuffer(max_lag=1)
    assert buffer.reserve(0)
    buffer.add(batch(0))

    with pytest.raises(RuntimeError, match='without reserve'):
        buffer.add(batch(0))


@pytest.mark.parametrize('max_lag', [0, 1, 3])
@pytest.mark.parametrize('seed', range(5))
def test_whoever_is_faster_no_batch_is_older_than_the_bound_and_nobody_is_stuck(max_lag: int, seed: int):
    """A trainer whose weights arrive late, and a collector, in random turns."""
    stream = random.Random(seed)
    buffer = ReplayBuffer(max_lag)
    trained = published = 0
    making: int | None = None
    lags: list[int] = []
    for _ in range(2000):
        turn = stream.choice(('begin', 'add', 'train', 'publish'))
        if turn == 'begin' and making is None and buffer.reserve(published):
            making = published
        elif turn == 'add' and making is not None:
            buffer.add(batch(making))
            making = None
        elif turn == 'train' and len(buffer):
            lags.append(trained - buffer.take().rollouts.weight_version)
            trained += 1
        elif turn == 'publish':
            published = trained

    assert trained > 100
    assert min(lags) >= 0
    assert max(lags) == max_lag
