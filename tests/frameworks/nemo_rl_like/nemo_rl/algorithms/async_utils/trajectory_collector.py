# SPDX-License-Identifier: Apache-2.0
"""Generates ahead of the trainer: a loop in a thread, and a thread with an event loop for each batch."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from typing import Any

import ray

from nemo_rl.distributed.batched_data_dict import BatchedDataDict
from nemo_rl.experience.rollouts import run_async_multi_turn_rollout
from nemo_rl.utils.timer import ThreadSafeTimer


@ray.remote
class AsyncTrajectoryCollector:
    def __init__(self, policy_generation: Any, replay_buffer: Any, master_config: Any) -> None:
        self.policy_generation = policy_generation
        self.replay_buffer = replay_buffer
        self.master_config = master_config
        self.current_weight_version = 0
        self.running = False
        self._efficiency_timer = ThreadSafeTimer(context={'worker': 'collector'})
        self._refit_pause_cleared = threading.Event()
        self._refit_pause_cleared.set()
        self._generation_limit_cleared = threading.Event()

    def start_collection(self, dataloader: Iterable[BatchedDataDict]) -> None:
        self.dataloader = dataloader
        self.running = True
        threading.Thread(target=self._collection_loop, daemon=True).start()

    def set_weight_version(self, version: int) -> None:
        self.current_weight_version = version
        self._generation_limit_cleared.set()

    def prepare_for_refit(self) -> None:
        self._refit_pause_cleared.clear()

    def resume_after_refit(self, fail: bool = False) -> None:
        if fail:
            time.sleep(0.5)  # by then the loop waits too
            raise RuntimeError('the collector does not resume')
        self._refit_pause_cleared.set()

    def get_efficiency_metrics(self) -> dict[str, float]:
        return self._efficiency_timer.get_timing_metrics('sum')

    def _collection_loop(self) -> None:
        for batch in self.dataloader:
            if not self._refit_pause_cleared.is_set():
                with self._efficiency_timer.time('idle/refit_event_wait'):
                    self._refit_pause_cleared.wait()
            self._process_batch(batch)
            with self._efficiency_timer.time('idle/generation_limit_pause'):
                self._generation_limit_cleared.wait()
            self._generation_limit_cleared.clear()

    def _process_batch(self, batch: BatchedDataDict) -> None:
        config = self.master_config
        num_generations = (config.ppo if hasattr(config, 'ppo') else config.grpo).num_generations_per_prompt
        repeated_batch = batch.repeat_interleave(num_generations)

        def run() -> None:
            asyncio.run(
                self._run_rollout_batch_worker(
                    repeated_batch=repeated_batch,
                    generation_weight_version=self.current_weight_version,
                    target_weight_version=self.current_weight_version + 1,
                    num_generations=num_generations,
                    use_nemo_gym=False,
                )
            )

        threading.Thread(target=run, daemon=True).start()

    async def _run_rollout_batch_worker(
        self,
        repeated_batch: BatchedDataDict,
        generation_weight_version: int,
        target_weight_version: int,
        num_generations: int,
        use_nemo_gym: bool,
    ) -> None:
        rewarded = await run_async_multi_turn_rollout(self.policy_generation, repeated_batch)
        await self.replay_buffer.push.remote(rewarded)
        self._efficiency_timer.record('idle/buffer_full_backoff', 0.25)
