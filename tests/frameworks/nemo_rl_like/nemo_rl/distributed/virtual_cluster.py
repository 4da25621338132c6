# SPDX-License-Identifier: Apache-2.0
"""Connects to Ray."""

from __future__ import annotations

import os

import ray


class RayVirtualCluster:
    def __init__(self, bundle_ct_per_node_list: list[int], name: str = '') -> None:
        self.name = name
        self.bundles = bundle_ct_per_node_list


def init_ray(log_dir: str | None = None) -> None:
    """Start Ray with this process's environment for every worker, but for what other launchers left there."""
    for name in list(os.environ):
        if name.startswith(('PMIX_', 'PMI_', 'MPI_', 'OMPI_', 'SLURM_')):
            os.environ.pop(name, None)
    env_vars = dict(os.environ)
    env_vars.pop('RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES', None)
    runtime_env = {'env_vars': env_vars}
    # NeMo-RL looks for a cluster that is there before; a test must not find another's.
    ray.init(address='local', log_to_driver=True, include_dashboard=False, runtime_env=runtime_env, num_cpus=4)
