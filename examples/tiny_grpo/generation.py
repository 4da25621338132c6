# SPDX-License-Identifier: Apache-2.0
"""Sampling: the part an inference engine plays in a larger system."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .task import END, Problem


@dataclass(frozen=True)
class Rollouts:
    """Prompts with their sampled responses, one a row.

    Attributes:
        tokens: Prompt, response, then `END` as padding: [batch, prompt + new].
        mask: 1 where a sampled token stands, its `END` included: [batch, prompt + new].
        prompt_length: Where the responses start.
        weight_version: The policy version that sampled them.
    """

    tokens: Tensor
    mask: Tensor
    prompt_length: int
    weight_version: int

    @property
    def lengths(self) -> Tensor:
        """Sampled tokens of each response."""
        return self.mask.sum(dim=1)

    def responses(self) -> list[list[int]]:
        """The sampled tokens of each row, padding removed."""
        rows = self.tokens[:, self.prompt_length :].tolist()
        return [row[: int(length)] for row, length in zip(rows, self.lengths.tolist(), strict=True)]


class Generation:
    """Holds its own copy of the weights; the trainer sends new ones before each round.

    A round is `prepare_for_generation`, any number of `generate`, `finish_generation`.
    """

    def __init__(self, model: nn.Module, max_new_tokens: int, temperature: float) -> None:
        self._model = model.requires_grad_(False)
        self._max_new_tokens = max_new_tokens
        self._temperature = temperature
        self._weight_version: int | None = None

    def prepare_for_generation(self, weights: dict[str, Tensor], version: int) -> None:
        """Load the weights of policy version `version`."""
        self._model.load_state_dict(weights)
        self._weight_version = version

    def generate(self, problems: list[Problem], greedy: bool = False) -> Rollouts:
        """Write one response to each problem, token by token, until `END` or the length limit.

        Every token costs a full forward pass. A cache of keys and values would save most of it, and hide the loop.
        """
        if self._weight_version is None:
            raise RuntimeError('generate() outside prepare_for_generation() ... finish_generation()')
        tokens = torch.tensor([problem.prompt for problem in problems])
        prompt_length = tokens.shape[1]
        mask = torch.zeros_like(tokens)
        alive = torch.ones(len(problems), 1, dtype=torch.bool)
        for _ in range(self._max_new_tokens):
            logits = self._model(tokens)[:, -1]
            if greedy:
                chosen = logits.argmax(dim=-1, keepdim=True)
            else:
                chosen = torch.multinomial((logits / self._temperature).softmax(dim=-1), num_samples=1)
            tokens = torch.cat([tokens, chosen.where(alive, torch.tensor(END))], dim=1)
            mask = torch.cat([mask, alive.long()], dim=1)
            alive = alive & (chosen != END)
        return Rollouts(tokens, mask, prompt_length, self._weight_version)

    def finish_generation(self) -> None:
        """End the round. An engine on a GPU would release its memory to the trainer here."""
        self._weight_version = None
