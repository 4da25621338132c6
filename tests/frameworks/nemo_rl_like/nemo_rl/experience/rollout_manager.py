# SPDX-License-Identifier: Apache-2.0
"""One prompt at a time, tried again when the fleet fails it."""

from __future__ import annotations

from typing import Any


class RolloutManager:
    def __init__(self, gym: Any, data_plane: Any, failures: int) -> None:
        self._gym = gym
        self._data_plane = data_plane
        self._failures = failures

    async def run_rollout(self, input_sample: dict[str, Any]) -> list[Any]:
        if self._failures:
            self._failures -= 1
            raise ConnectionError('the fleet is unwell')
        stream = self._gym.run_rollouts.options(num_returns='streaming').remote([input_sample] * 2, 'timing/rollout')
        return [await ref async for ref in stream]

    async def generate_and_push(self, input_sample: dict[str, Any], *, target_step: int | None = None) -> None:
        infra_attempts = 0
        data_attempts = 0
        while True:
            try:
                record = await self.run_rollout(input_sample)
            except ConnectionError:
                infra_attempts += 1
                continue
            assert data_attempts == 0
            self._data_plane.put('train', record)
            return
