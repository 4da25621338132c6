# SPDX-License-Identifier: Apache-2.0
"""Connects to Ray."""

from __future__ import annotations

import logging
import os

import ray

logger = logging.getLogger(__name__)


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
    cvd_tag = 'nrl_tag_' + '_'.join(sorted(os.environ.get('CUDA_VISIBLE_DEVICES', 'ALL').split(',')))
    try:
        # NeMo-RL takes whichever cluster it finds; a test must not find another's.
        address = os.environ.get('NEMO_RL_LIKE_CLUSTER')
        if address is None:
            raise ConnectionError
        ray.init(address=address, log_to_driver=True, runtime_env=runtime_env)
        cluster_res = ray.cluster_resources()
        if not any(name.startswith('nrl_tag_') for name in cluster_res) or cvd_tag in cluster_res:
            logger.info(f'connected to {cluster_res}')
            return
        ray.shutdown()
    except ConnectionError:
        ray.shutdown()
    local_runtime_env = dict(runtime_env)
    local_runtime_env.pop('working_dir', None)
    ray.init(
        address='local',
        log_to_driver=True,
        include_dashboard=False,
        runtime_env=local_runtime_env,
        num_cpus=4,
        resources={cvd_tag: 1},
    )
    logger.info(f'started {ray.cluster_resources()}')
