# SPDX-License-Identifier: Apache-2.0
"""An actor whose rollouts come one by one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import ray


def setup_nemo_gym_config(config: Any, tokenizer: Any) -> None:
    """Makes the generation serve requests."""
    config['policy']['generation']['expose_http_server'] = True


def spinup_nemo_gym_actor(
    env_configs: dict[str, Any],
    base_urls: list[str],
    model_name: str,
    *,
    tokenizer: Any,
    enable_router_replay: bool,
    routed_experts_dtype: Any,
    use_fastokens: bool,
) -> Any:
    """The actor that plays the environments."""
    return model_name


@ray.remote
class NemoGym:
    async def run_rollouts(
        self, nemo_gym_examples: list[dict[str, Any]], timer_prefix: str, deduplicate_multimodal_data: bool = False
    ) -> AsyncGenerator[tuple[int, dict[str, Any]], None]:
        for index, example in enumerate(nemo_gym_examples):
            yield index, {**example, 'reward': 1.0}
