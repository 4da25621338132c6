# SPDX-License-Identifier: Apache-2.0
"""An actor that trains: what rolls out and what trains are two tasks of its event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import ray

from nemo_rl.data_plane.observability import MetricsDataPlaneClient
from nemo_rl.distributed.batched_data_dict import BatchedDataDict
from nemo_rl.environments.nemo_gym import NemoGym
from nemo_rl.experience.rollout_manager import RolloutManager
from nemo_rl.utils.timer import Timer


@ray.remote
class SingleControllerActor:
    def __init__(self, policy: Any, max_train_steps: int) -> None:
        self._policy = policy
        self._max_train_steps = max_train_steps
        self._timer = Timer()
        self._train_steps = 0
        self._trainer_version = 0
        self._data_plane = MetricsDataPlaneClient()
        self._rollouts = RolloutManager(NemoGym.options(num_cpus=0).remote(), self._data_plane, failures=1)

    async def run(self) -> int:
        rollouts = asyncio.create_task(self._rollout_pump())
        await asyncio.create_task(self._train_pump())
        await rollouts
        return self._train_steps

    async def _rollout_pump(self) -> None:
        for step in range(self._max_train_steps):
            await self._rollouts.generate_and_push({'prompt': step}, target_step=step)

    async def _train_pump(self) -> None:
        while self._train_steps < self._max_train_steps:
            version_during_step = self._trainer_version
            with self._timer.time('total_step_time'):
                ready = False
                while not ready:
                    with self._timer.time('exposed_generation'):
                        await asyncio.sleep(0.01)
                        ready = self._data_plane.is_ready()
                with suppress(TimeoutError):
                    self._data_plane.claim('train')
                rows = self._data_plane.get('train')
                data = BatchedDataDict(input_lengths=[4] * len(rows))
                with self._timer.time('logprob_inference_prep'):
                    await asyncio.to_thread(self._policy.prepare_for_lp_inference)
                with self._timer.time('policy_and_reference_logprobs'):
                    await asyncio.to_thread(self._policy.get_logprobs, data)
                with self._timer.time('advantage_calculation'):
                    pass
                with self._timer.time('training_prep'):
                    await asyncio.to_thread(self._policy.prepare_for_training)
                with self._timer.time('policy_training'):
                    await asyncio.to_thread(self._policy.train, data, None)
                with self._timer.time('weight_sync'):
                    self._trainer_version = version_during_step + 1
                with self._timer.time('checkpointing'):
                    pass
            self._timer.reset()
            self._train_steps += 1
