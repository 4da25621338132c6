# SPDX-License-Identifier: Apache-2.0
"""Weights to the generation by way of vllm_remote_sparse."""

from __future__ import annotations

from typing import Any


class VllmRemoteSparseWeightSynchronizer:
    def sync_weights(self, *, timer: Any = None, kv_scales: dict[str, float] | None = None) -> None:
        pass
