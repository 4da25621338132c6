# SPDX-License-Identifier: Apache-2.0
import pytest
import torch
from tiny_grpo.generation import Rollouts
from tiny_grpo.sharding import merge, split


def rollouts(rows: list[int], version: int = 0) -> Rollouts:
    tokens = torch.tensor([[row, row] for row in rows])
    return Rollouts(tokens, torch.ones_like(tokens), prompt_length=1, weight_version=version)


@pytest.mark.parametrize(('count', 'shards', 'sizes'), [(8, 2, [4, 4]), (7, 3, [2, 2, 3]), (2, 4, [1, 1]), (5, 1, [5])])
def test_shards_are_contiguous_and_even(count: int, shards: int, sizes: list[int]):
    parts = split(list(range(count)), shards)

    assert [len(part) for part in parts] == sizes
    assert [row for part in parts for row in part] == list(range(count))


def test_what_was_split_comes_back_in_the_same_order():
    rows = [5, 3, 9, 1, 7]
    merged = merge([rollouts(list(part), version=4) for part in split(rows, 3)])

    assert merged.tokens[:, 0].tolist() == rows
    assert merged.mask.shape == (5, 2)
    assert (merged.prompt_length, merged.weight_version) == (1, 4)


def test_one_batch_has_one_weight_version():
    with pytest.raises(ValueError, match=r'several weight versions in one batch: \[1, 2\]'):
        merge([rollouts([1], version=1), rollouts([2], version=2)])
