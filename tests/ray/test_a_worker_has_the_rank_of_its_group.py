# SPDX-License-Identifier: Apache-2.0
"""Workers inherit the driver's RANK, which is not theirs: a group's have their own, any other actor is rank 0 of 1."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.helpers.ray_program import RayPlace, rules_text

pytestmark = pytest.mark.timeout(300)

PROGRAM = """
import ray

@ray.remote
class Worker:
    def work(self):
        return True

ray.init(address='local', num_cpus=2, include_dashboard=False)
group = [
    Worker.options(
        name=f'group-{rank}',
        runtime_env={'env_vars': {'RANK': str(rank), 'WORLD_SIZE': '2', 'LOCAL_RANK': str(rank)}},
    ).remote()
    for rank in range(2)
]
single = Worker.options(name='single').remote()
assert all(ray.get([worker.work.remote() for worker in (*group, single)]))
ray.shutdown()
"""
LATE = """
import os
import ray

@ray.remote
class Worker:
    def __init__(self, rank):
        os.environ.update(RANK=str(rank), WORLD_SIZE='2', LOCAL_RANK=str(rank))

    def work(self):
        return True

ray.init(address='local', num_cpus=2, include_dashboard=False)
for worker in [Worker.options(name=f'group-{rank}').remote(rank) for rank in range(2)]:
    for _ in range(3):
        assert ray.get(worker.work.remote())
ray.shutdown()
"""
DRIVER = {'RANK': '3', 'WORLD_SIZE': '8', 'LOCAL_RANK': '3'}


def test_of_a_group_and_of_none(new_place: Callable[..., RayPlace]) -> None:
    place = new_place().write({'train.py': PROGRAM, 'rules.yaml': rules_text({'work': 'train.py:Worker.work'})})
    traced = place.traced('train.py', env=DRIVER)
    assert traced.done.code == 0, traced.done.stderr
    found = {
        span.resource['ray.actor.name']: tuple(map(span.resource.get, ('dl.rank', 'dl.world_size', 'rl.worker_group')))
        for span in traced.spans
        if span.name == 'work'
    }
    assert found == {'group-0': (0, 2, 'group'), 'group-1': (1, 2, 'group'), 'single': (0, 1, None)}


def test_a_rank_that_does_not_export_leaves_nothing(new_place: Callable[..., RayPlace]) -> None:
    place = new_place().write({'train.py': PROGRAM, 'rules.yaml': rules_text({'work': 'train.py:Worker.work'})})
    traced = place.traced('train.py', env={'LENS_EXPORT_STRATEGY': 'single_rank', 'LENS_EXPORT_RANK': '0'})
    assert traced.done.code == 0, traced.done.stderr
    names = sorted(span.resource['ray.actor.name'] for span in traced.spans if span.name == 'work')
    assert names == ['group-0', 'single']


def test_a_rank_that_comes_with_the_constructor_counts_from_then_on(new_place: Callable[..., RayPlace]) -> None:
    place = new_place().write({'train.py': LATE, 'rules.yaml': rules_text({'work': 'train.py:Worker.work'})})
    traced = place.traced('train.py', env={'LENS_EXPORT_STRATEGY': 'single_rank', 'LENS_EXPORT_RANK': '0'})
    assert traced.done.code == 0, traced.done.stderr
    names = sorted(span.resource['ray.actor.name'] for span in traced.spans if span.name == 'work')
    # The first span of the other rank is what tells us of it.
    assert names == ['group-0', 'group-0', 'group-0', 'group-1']
