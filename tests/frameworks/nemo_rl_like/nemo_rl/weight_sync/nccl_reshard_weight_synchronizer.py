# SPDX-License-Identifier: Apache-2.0
"""Weights to the generation by way of nccl_reshard."""

from __future__ import annotations

from typing import Any


class NcclReshardWeightSynchronizer:
    def sync_weights(self, *, timer: Any = None, kv_scales: dict[str, float] | None = None) -> None:
        pass
