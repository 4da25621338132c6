# SPDX-License-Identifier: Apache-2.0
"""An evaluation without training."""

from __future__ import annotations

from typing import Any

from nemo_rl.utils.config import BaseModel


class MasterConfig(BaseModel):
    generation: Any

    def __init__(self, /, **data: Any) -> None:
        super().__init__(**data)


def setup(master_config: MasterConfig, tokenizer: Any, dataset: Any) -> Any:
    """The prompts."""
    return dataset


def run_env_eval(vllm_generation: Any, dataloader: Any, env: Any, master_config: MasterConfig) -> int:
    """Generate for each batch."""
    return sum(vllm_generation.generate(batch).size for batch in dataloader)
