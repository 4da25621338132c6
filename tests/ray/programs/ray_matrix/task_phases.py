# SPDX-License-Identifier: Apache-2.0
# Ray's own annotations know less than Ray does.
# pyright: reportCallIssue=false
"""The cells of tasks: what the driver does."""

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from ray_matrix import tasks
from ray_matrix.actors import Placed
from ray_matrix.given import PATIENCE, appears

left_behind = []


def phase_task(folder):
    return ray.get(tasks.decorated.remote(1, key=2), timeout=PATIENCE)


def phase_late_task(folder):
    return ray.get(ray.remote(tasks.late).remote(1, key=2), timeout=PATIENCE)


def phase_generator_task(folder):
    return [ray.get(ref) for ref in tasks.generator.remote(1, key=2)]


def phase_nested_task(folder):
    return ray.get(tasks.outer.remote(1, key=2), timeout=PATIENCE)


def phase_retried_task(folder):
    return ray.get(tasks.retried.remote(1, key=2, path=f'{folder}/retried'), timeout=PATIENCE)


def phase_failing_task(folder):
    return ray.get(tasks.failing.remote(1, key=2), timeout=PATIENCE)


def phase_failing_generator_task(folder):
    return [ray.get(ref) for ref in tasks.failing_generator.remote(1, key=2)]


def phase_no_return_task(folder):
    refs = tasks.no_return.remote(1, key=2, path=f'{folder}/no_return')
    return [repr(refs), appears(f'{folder}/no_return')]


def phase_two_returns_task(folder):
    return ray.get(list(tasks.two_returns.remote(1, key=2)), timeout=PATIENCE)


def phase_threads_in_task(folder):
    return ray.get(tasks.with_threads.remote(1, key=2), timeout=PATIENCE)


def phase_ref_elsewhere(folder):
    ref = tasks.producer.remote(1, key=2)
    return ray.get(tasks.consumer.remote([ref], 1, key=2), timeout=PATIENCE)


def phase_outliving_task(folder):
    left_behind.append(tasks.outliving.remote(1, key=2))  # waited for when this span is over
    return []


def phase_task_with_options(folder):
    return ray.get(tasks.with_options.options(name='another name', num_cpus=0.5).remote(1, key=2), timeout=PATIENCE)


def phase_placement_group(folder):
    group = placement_group([{'CPU': 1}])
    ray.get(group.ready(), timeout=PATIENCE)
    strategy = PlacementGroupSchedulingStrategy(placement_group=group)
    try:
        task = ray.get(tasks.placed.options(scheduling_strategy=strategy).remote(1, key=2), timeout=PATIENCE)
        actor = Placed.options(scheduling_strategy=strategy).remote()
        return [task, ray.get(actor.work.remote(1, key=2), timeout=PATIENCE)]
    finally:
        remove_placement_group(group)
