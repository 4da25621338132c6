# SPDX-License-Identifier: Apache-2.0
"""The replay buffer between collector and trainer. An async actor: `take` waits without keeping others from adding."""

from __future__ import annotations

import asyncio

import ray

from .replay_buffer import Experience, ReplayBuffer


@ray.remote
class ReplayBufferActor:
    """Its methods share one event loop, and the plain buffer needs no lock."""

    def __init__(self, max_lag: int) -> None:
        self._buffer = ReplayBuffer(max_lag)
        self._changed = asyncio.Condition()

    async def reserve(self, version: int) -> bool:
        return self._buffer.reserve(version)

    async def add(self, batch: Experience) -> None:
        async with self._changed:
            self._buffer.add(batch)
            self._changed.notify()

    async def take(self) -> Experience:
        """The oldest batch, as soon as there is one."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._buffer) > 0)
            return self._buffer.take()
