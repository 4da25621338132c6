# SPDX-License-Identifier: Apache-2.0
"""NeMo-RL takes a cluster that is there if it may, and starts one else: `rl.ray.cluster_source` says which it was."""

from __future__ import annotations

import pytest

from tests.helpers.ray_cluster import Cluster
from tests.helpers.ray_program import RayPlace

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(300)]

TRAIN = """\
from nemo_rl.distributed.virtual_cluster import init_ray
init_ray()
print('connected', flush=True)
"""


@pytest.mark.parametrize(
    ('resources', 'devices', 'source'),
    [
        ('', 'ALL', 'attached_external'),
        ('{"nrl_tag_0_1": 1}', '1,0', 'reused_local'),
        ('{"nrl_tag_0_1": 1}', '2', 'started_local'),
    ],
    ids=['of somebody else', 'of these devices', 'of other devices'],
)
def test_the_span_of_the_connection_says_it(
    nemo_rl_on_ray: RayPlace, resources: str, devices: str, source: str
) -> None:
    nemo_rl_on_ray.write({'train.py': TRAIN})
    with Cluster(nemo_rl_on_ray, resources) as cluster:
        env = {'NEMO_RL_LIKE_CLUSTER': cluster.address, 'CUDA_VISIBLE_DEVICES': devices}
        traced = nemo_rl_on_ray.traced('train.py', rules=(), groups='setup', env=env)
        assert (traced.done.code, traced.done.stdout) == (0, 'connected\n')
        assert traced.run.only('rl.setup.ray_init').attributes['rl.ray.cluster_source'] == source
        nemo_rl_on_ray.end()
