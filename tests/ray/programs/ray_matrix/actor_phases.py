# SPDX-License-Identifier: Apache-2.0
# Ray's own annotations know less than Ray does.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
"""The cells of actors: what the driver does."""

import ray

from ray_matrix import actors, bodies
from ray_matrix.given import PATIENCE, appears

standing = {}  # actors that several cells call


def phase_init(folder):
    standing['kinds'] = kinds = actors.Kinds.remote(1, key=2)
    return ray.get(kinds.init_saw.remote(), timeout=PATIENCE)


def phase_own(folder):
    return ray.get(standing['kinds'].own.remote(1, key=2), timeout=PATIENCE)


def phase_inherited(folder):
    return ray.get(standing['kinds'].inherited.remote(1, key=2), timeout=PATIENCE)


def phase_static(folder):
    return ray.get(standing['kinds'].static.remote(1, key=2), timeout=PATIENCE)


def phase_of_class(folder):
    return ray.get(standing['kinds'].of_class.remote(1, key=2), timeout=PATIENCE)


def phase_generator(folder):
    return [ray.get(ref) for ref in standing['kinds'].generator.options(num_returns='streaming').remote(1, key=2)]


def phase_generator_to_refs(folder):
    return ray.get(standing['kinds'].generator.options(num_returns=2).remote(1, key=2), timeout=PATIENCE)


def phase_failing(folder):
    return ray.get(standing['kinds'].failing.remote(1, key=2), timeout=PATIENCE)


def phase_failing_generator(folder):
    refs = standing['kinds'].failing_generator.options(num_returns='streaming').remote(1, key=2)
    return [ray.get(ref) for ref in refs]


def phase_wrong_arguments(folder):
    return ray.get(standing['kinds'].exact.remote(1, 2, three=3), timeout=PATIENCE)


def phase_ray_call(folder):
    return ray.get(standing['kinds'].__ray_call__.remote(bodies.by_ray_call, 1, key=2), timeout=PATIENCE)


def phase_no_return(folder):
    method = standing['kinds'].no_return.options(num_returns=0)
    return [repr(method.remote(1, key=2, path=f'{folder}/actor')), appears(f'{folder}/actor')]


def phase_two_returns(folder):
    return ray.get(list(standing['kinds'].two_returns.remote(1, key=2)), timeout=PATIENCE)


def phase_threads_in_actor(folder):
    return ray.get(standing['kinds'].with_threads.remote(1, key=2), timeout=PATIENCE)


def phase_by_reference(folder):
    return ray.get(standing['kinds'].by_reference.remote(1, key=2), timeout=PATIENCE)


def phase_split(folder):
    return ray.get((_held := actors.Split.remote(1, key=2)).work.remote(1, key=2), timeout=PATIENCE)


def phase_late(folder):
    return ray.get((_held := ray.remote(actors.Late).remote()).work.remote(1, key=2), timeout=PATIENCE)


def phase_async(folder):
    standing['async'] = actor = actors.Async.remote()
    return ray.get([actor.work.remote(1, key=2) for _ in range(3)], timeout=PATIENCE)


def phase_async_generator(folder):
    return [ray.get(ref) for ref in standing['async'].stream.options(num_returns='streaming').remote(1, key=2)]


def phase_async_failing(folder):
    return ray.get(standing['async'].failing.remote(1, key=2), timeout=PATIENCE)


def phase_async_failing_generator(folder):
    refs = standing['async'].failing_stream.options(num_returns='streaming').remote(1, key=2)
    return [ray.get(ref) for ref in refs]


def phase_async_no_return(folder):
    method = standing['async'].no_return.options(num_returns=0)
    return [repr(method.remote(1, key=2, path=f'{folder}/async')), appears(f'{folder}/async')]


def phase_loop_in_actor(folder):
    return ray.get(standing['async'].with_loop.remote(1, key=2), timeout=PATIENCE)


def phase_threaded(folder):
    actor = actors.Threaded.remote()
    return ray.get([actor.work.remote(1, key=2) for _ in range(2)], timeout=PATIENCE)


def phase_groups(folder):
    actor = actors.Groups.remote()
    return ray.get([actor.read.remote(1, key=2), actor.work.remote(1, key=2)], timeout=PATIENCE)


def phase_restarted(folder):
    return ray.get(
        (_held := actors.Restarted.remote(1, key=2)).dies_once.remote(1, key=2, path=f'{folder}/dies'), timeout=PATIENCE
    )


def phase_nested(folder):
    return ray.get((_held := actors.Caller.remote()).call.remote(actors.Called.remote(), 1, key=2), timeout=PATIENCE)


def phase_made_in_actor(folder):
    return ray.get((_held := actors.Maker.remote()).make.remote(1, key=2), timeout=PATIENCE)


def phase_made_in_task(folder):
    return ray.get(actors.maker.remote(1, key=2), timeout=PATIENCE)


def phase_named(folder):
    held = actors.Named.options(name='by name').remote()
    return [repr(held)[:11], ray.get((_found := ray.get_actor('by name')).work.remote(1, key=2), timeout=PATIENCE)]


def phase_detached(folder):
    actors.Detached.options(name='left', lifetime='detached', namespace='apart').remote()
    found = ray.get_actor('left', namespace='apart')
    try:
        return ray.get(found.work.remote(1, key=2), timeout=PATIENCE)
    finally:
        ray.kill(found)


def phase_trainer(folder):
    return ray.get((_held := actors.Trainer.remote()).fit.remote(1, key=2), timeout=PATIENCE)
