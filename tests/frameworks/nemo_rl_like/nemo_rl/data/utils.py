# SPDX-License-Identifier: Apache-2.0
"""Prompts, endlessly the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nemo_rl.distributed.batched_data_dict import BatchedDataDict


def setup_response_data(
    tokenizer: Any, data_config: Mapping[str, Any], env_configs: Mapping[str, Any] | None = None, is_vlm: bool = False
) -> tuple[list[BatchedDataDict], list[BatchedDataDict]]:
    """Batches of prompts for training and for validation."""
    prompts = data_config['prompts']
    batches = [BatchedDataDict(input_ids=[[1] * 4] * prompts, input_lengths=[4] * prompts) for _ in range(50)]
    return batches, batches[:1]


def setup_preference_data(tokenizer: Any, data_config: Mapping[str, Any]) -> tuple[list[Any], dict[str, list[Any]]]:
    """Pairs for training, and for validation by name."""
    batches, val_batches = setup_response_data(tokenizer, data_config)
    return batches, {'one': val_batches}
