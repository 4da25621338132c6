# SPDX-License-Identifier: Apache-2.0
"""Group-relative advantages: the group is the baseline, so GRPO needs no critic."""

from __future__ import annotations

from torch import Tensor


def group_relative_advantages(rewards: Tensor, group_size: int, epsilon: float = 1e-6) -> Tensor:
    """How much better each response is than the others to the same prompt, in standard deviations.

    A group whose rewards are all equal teaches nothing: its advantages are 0.

    Args:
        rewards: One reward a response, groups adjacent: [prompts * group_size].
        group_size: Responses per prompt.
        epsilon: Keeps a group without spread finite.
    """
    groups = rewards.view(-1, group_size)
    centred = groups - groups.mean(dim=1, keepdim=True)
    return (centred / (groups.std(dim=1, keepdim=True) + epsilon)).flatten()
