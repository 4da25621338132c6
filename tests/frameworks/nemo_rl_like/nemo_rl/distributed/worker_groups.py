# SPDX-License-Identifier: Apache-2.0
"""Actors that do the same, each with its rank."""

from __future__ import annotations

import importlib
import os
from typing import Any

import ray


class RayWorkerGroup:
    """So many actors of one class.

    Args:
        worker_class: The class, by `module.Name`.
        workers: How many.
        name_prefix: What their names begin with.
        env_vars: More of their environment.
        arguments: For their constructor.
    """

    def __init__(
        self,
        worker_class: str,
        workers: int,
        name_prefix: str = '',
        env_vars: dict[str, str] | None = None,
        **arguments: Any,
    ) -> None:
        module, _, name = worker_class.rpartition('.')
        actor = getattr(importlib.import_module(module), name)
        inherited = {**os.environ, **(env_vars or {})}
        for key in ('RAY_CLIENT_MODE', 'RAY_JOB_ID', 'RAY_LD_PRELOAD', 'RAY_RAYLET_PID', 'RAY_USAGE_STATS_ENABLED'):
            inherited.pop(key, None)
        self.workers = [
            actor.options(
                name=f'{name_prefix}-0-{rank}',
                num_cpus=0,
                runtime_env={
                    'env_vars': {
                        **inherited,
                        'RANK': str(rank),
                        'LOCAL_RANK': str(rank),
                        'WORLD_SIZE': str(workers),
                        'MASTER_ADDR': '127.0.0.1',
                        'MASTER_PORT': '29500',
                        'NODE_RANK': '0',
                    }
                },
            ).remote(**arguments)
            for rank in range(workers)
        ]

    def run_all_workers_single_data(self, method_name: str, **kwargs: Any) -> list[Any]:
        """What each says to the same arguments."""
        return ray.get([getattr(worker, method_name).remote(**kwargs) for worker in self.workers])

    def shutdown(self) -> None:
        """End them."""
        self.run_all_workers_single_data('shutdown')
        for worker in self.workers:
            ray.kill(worker)
