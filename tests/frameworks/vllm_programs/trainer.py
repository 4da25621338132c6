# SPDX-License-Identifier: Apache-2.0
"""What calls the engine: steps and rollouts, for `trainer.yaml` to hook."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


async def collect(rollouts: list[Awaitable[Any]]) -> list[Any]:
    return list(await asyncio.gather(*rollouts))


async def rollout(number: int, generate: Callable[[int], Awaitable[Any]]) -> Any:
    return await generate(number)


def step(generate: Callable[[], Any]) -> Any:
    return generate()
