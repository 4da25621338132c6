# SPDX-License-Identifier: Apache-2.0
"""An actor whose rollouts go into the data plane."""

from __future__ import annotations

from typing import Any

import ray


@ray.remote
class SyncRolloutActor:
    def rollout_to_tq(
        self,
        input_batch: Any,
        *,
        partition_id: str,
        group_size: int = 1,
        first_iter: bool = True,
        finish_generation: bool = True,
        task_to_env_override: Any = None,
        carry_keys: Any = None,
    ) -> dict[str, Any]:
        return {'mean_gen_tokens_per_sample': 3.0}
