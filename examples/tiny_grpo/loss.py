# SPDX-License-Identifier: Apache-2.0
"""The GRPO objective: clipped surrogate plus a KL penalty to the reference policy."""

from __future__ import annotations

import torch
from torch import Tensor


def k3_kl(logprobs: Tensor, reference: Tensor) -> Tensor:
    """Schulman's k3 estimate of KL(policy || reference) from tokens the policy sampled.

    `r - 1 - log r` with `r = reference / policy`: unbiased, and never negative for a single token.
    """
    log_ratio = reference - logprobs
    return log_ratio.exp() - 1 - log_ratio


def clipped_surrogate(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """PPO's pessimistic objective as a loss: no gain from moving a ratio beyond 1 +- `clip`."""
    ratio = (logprobs - old_logprobs).exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)


def token_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the sampled tokens of the batch, so long responses are not diluted."""
    return (values * mask).sum() / mask.sum().clamp(min=1)
