# SPDX-License-Identifier: Apache-2.0
"""A batch split over workers and put together again, in an order that does not depend on who is done first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import torch

from .generation import Rollouts

T = TypeVar('T')


def split(rows: Sequence[T], shards: int) -> list[Sequence[T]]:
    """Contiguous shards whose sizes differ by one at most; fewer of them where there are fewer rows."""
    shards = min(shards, len(rows))
    bounds = [len(rows) * index // shards for index in range(shards + 1)]
    return [rows[start:end] for start, end in pairwise(bounds)]


def merge(parts: Sequence[Rollouts]) -> Rollouts:
    """The rollouts of all shards in the shards' order."""
    versions = {part.weight_version for part in parts}
    if len(versions) != 1:
        raise ValueError(f'rollouts of several weight versions in one batch: {sorted(versions)}')
    return Rollouts(
        tokens=torch.cat([part.tokens for part in parts]),
        mask=torch.cat([part.mask for part in parts]),
        prompt_length=parts[0].prompt_length,
        weight_version=parts[0].weight_version,
    )
