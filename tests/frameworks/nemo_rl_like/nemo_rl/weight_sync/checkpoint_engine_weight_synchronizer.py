# SPDX-License-Identifier: Apache-2.0
"""Weights to the generation by way of checkpoint_engine."""

from __future__ import annotations

from typing import Any


class CheckpointEngineWeightSynchronizer:
    def sync_weights(self, *, timer: Any = None, kv_scales: dict[str, float] | None = None) -> None:
        pass
