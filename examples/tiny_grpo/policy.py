# SPDX-License-Identifier: Apache-2.0
"""The policy being trained, with the frozen reference it may not stray from."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .config import GrpoConfig
from .generation import Rollouts
from .loss import clipped_surrogate, k3_kl, token_mean
from .model import TinyTransformer


@dataclass(frozen=True)
class TrainingBatch:
    """What one step learns from. Log-probabilities and mask cover every token but the first: [batch, length - 1]."""

    rollouts: Rollouts
    old_logprobs: Tensor
    reference_logprobs: Tensor
    advantages: Tensor


class Policy:
    """Owns the weights, the optimiser and the reference."""

    def __init__(self, model: TinyTransformer, config: GrpoConfig) -> None:
        self._config = config
        self._model = model
        self._reference = copy.deepcopy(model).requires_grad_(False)
        self._optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=0.0)
        self._scheduler = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: min(1.0, (step + 1) / config.warmup_steps)
        )
        self.version = 0

    def weights(self) -> dict[str, Tensor]:
        """A copy of the current weights, safe to hand to another part."""
        return {name: tensor.detach().clone() for name, tensor in self._model.state_dict().items()}

    @torch.no_grad()
    def logprobs(self, rollouts: Rollouts) -> Tensor:
        """Log-probability of every token after the first, under the policy as it is now."""
        return token_logprobs(self._model, rollouts.tokens, self._config.temperature)

    @torch.no_grad()
    def reference_logprobs(self, rollouts: Rollouts) -> Tensor:
        """The same under the frozen reference."""
        return token_logprobs(self._reference, rollouts.tokens, self._config.temperature)

    def train(self, batch: TrainingBatch) -> dict[str, float]:
        """A few epochs of minibatch updates on one batch of rollouts; returns the means of what was measured."""
        learning_rate = float(self._scheduler.get_last_lr()[0])
        measured: list[dict[str, float]] = []
        for _ in range(self._config.epochs):
            order = torch.randperm(len(batch.rollouts.tokens))
            measured += [self._update(batch, rows) for rows in order.split(self._config.minibatch)]
        self._scheduler.step()
        self.version += 1
        means = {name: sum(m[name] for m in measured) / len(measured) for name in measured[0]}
        return means | {'lr': learning_rate}

    def _update(self, batch: TrainingBatch, rows: Tensor) -> dict[str, float]:
        """One optimiser step on the rows `rows` of the batch."""
        mask = batch.rollouts.mask[rows, 1:].float()
        logprobs = token_logprobs(self._model, batch.rollouts.tokens[rows], self._config.temperature)
        surrogate = clipped_surrogate(
            logprobs, batch.old_logprobs[rows], batch.advantages[rows].unsqueeze(1), self._config.clip
        )
        kl = token_mean(k3_kl(logprobs, batch.reference_logprobs[rows]), mask)
        loss = token_mean(surrogate, mask) + self._config.kl_coefficient * kl

        self._optimizer.zero_grad()
        loss.backward()
        grad_norm = nn.utils.clip_grad_norm_(self._model.parameters(), self._config.max_grad_norm)
        self._optimizer.step()
        return {'loss': loss.item(), 'kl': kl.item(), 'grad_norm': grad_norm.item()}


def token_logprobs(model: TinyTransformer, tokens: Tensor, temperature: float) -> Tensor:
    """Log-probability the model gives each token after the first: [batch, length] -> [batch, length - 1]."""
    logprobs = (model(tokens[:, :-1]) / temperature).log_softmax(dim=-1)
    return logprobs.gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1)
