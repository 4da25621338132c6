# SPDX-License-Identifier: Apache-2.0
"""Batches that were generated ahead, and the bound on how far ahead that may be."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from torch import Tensor

from .generation import Rollouts


@dataclass(frozen=True)
class Experience:
    """One batch of scored rollouts. `rollouts.weight_version` says which policy wrote them."""

    rollouts: Rollouts
    rewards: Tensor


class ReplayBuffer:
    """First in, first out. Every batch is trained on once, and none is older than `max_lag` versions by then.

    The bound is kept where a batch begins, so that no rollout is made in vain: the n-th batch, counted from 0, trains
    the policy of version n, whoever waits for whom meanwhile.
    """

    def __init__(self, max_lag: int) -> None:
        self._max_lag = max_lag
        self._begun = 0
        self._added = 0
        self._batches: deque[Experience] = deque()

    def reserve(self, version: int) -> bool:
        """Whether a batch may be begun with weights of `version`; if so, its place is taken."""
        if self._begun - version > self._max_lag:
            return False
        self._begun += 1
        return True

    def add(self, batch: Experience) -> None:
        """Put a batch into the place that was reserved for it."""
        if self._added == self._begun:
            raise RuntimeError('add() without reserve()')
        self._added += 1
        self._batches.append(batch)

    def take(self) -> Experience:
        """Take the oldest batch out."""
        return self._batches.popleft()

    def __len__(self) -> int:
        return len(self._batches)
