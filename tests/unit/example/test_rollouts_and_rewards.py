# SPDX-License-Identifier: Apache-2.0
import pytest
import torch
from tiny_grpo.generation import Generation
from tiny_grpo.reward import Reward
from tiny_grpo.task import END, Problem, repeat
from torch import Tensor, nn


class Script(nn.Module):
    """A model that always continues with the next of the given tokens, one script a row."""

    def __init__(self, prompt_length: int, rows: list[list[int]]) -> None:
        super().__init__()
        self.prompt_length = prompt_length
        self.rows = rows

    def forward(self, tokens: Tensor) -> Tensor:
        at = tokens.shape[1] - self.prompt_length
        wanted = torch.tensor([row[at] for row in self.rows])
        return nn.functional.one_hot(wanted, 12).float().unsqueeze(1) * 1000


def test_a_response_ends_at_its_end_token_and_is_padded_behind_it():
    problem = Problem(prompt=(2, 1, 10), answer=(1, 2, END))
    model = Script(prompt_length=3, rows=[[1, END, 5], [1, 2, END]])
    generation = Generation(model, max_new_tokens=3, temperature=1.0)

    generation.prepare_for_generation({}, version=4)
    rollouts = generation.generate([problem, problem])
    generation.finish_generation()

    assert rollouts.tokens.tolist() == [[2, 1, 10, 1, END, END], [2, 1, 10, 1, 2, END]]
    assert rollouts.mask.tolist() == [[0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1]]
    assert rollouts.responses() == [[1, END], [1, 2, END]]
    assert rollouts.weight_version == 4
    with pytest.raises(RuntimeError, match='outside prepare_for_generation'):
        generation.generate([problem])


def test_the_reward_is_the_share_of_the_answer_that_stands_in_its_place():
    problem = Problem(prompt=(3, 1, 2, 10), answer=(1, 2, 3, END))
    responses = [[1, 2, 3, END], [1, 3, 2, END], [END], [4, 4, 4, 4], [1, 2, 3, 3]]

    assert Reward().score([problem] * 5, responses) == [1.0, 0.5, 0.0, 0.0, 0.75]


def test_problems_are_repeated_in_adjacent_groups():
    a, b = Problem((1,), (1,)), Problem((2,), (2,))
    assert repeat([a, b], 3) == [a, a, a, b, b, b]
