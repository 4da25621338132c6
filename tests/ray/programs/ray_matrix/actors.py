# SPDX-License-Identifier: Apache-2.0
# Ray's own annotations know less than Ray does.
# pyright: reportCallIssue=false
"""Ray actors."""

import asyncio
import os
import threading

import ray

from ray_matrix import bodies
from ray_matrix.given import first_time, seen, write


class Ancestor:
    def inherited(self, *args, **kwargs):
        return seen(args, kwargs)


@ray.remote
class Kinds(Ancestor):
    """Every kind of method a synchronous actor has."""

    def __init__(self, *args, **kwargs):
        self.given = seen(args, kwargs)

    def init_saw(self):
        return self.given

    def own(self, *args, **kwargs):
        return seen(args, kwargs)

    @staticmethod
    def static(*args, **kwargs):
        return seen(args, kwargs)

    @classmethod
    def of_class(cls, *args, **kwargs):
        return seen(args, kwargs)

    def generator(self, *args, **kwargs):
        yield seen(args, kwargs)
        yield seen(args, kwargs)

    def failing(self, *args, **kwargs):
        raise KeyError(seen(args, kwargs))

    def failing_generator(self, *args, **kwargs):
        yield seen(args, kwargs)
        raise RuntimeError('after one')

    def no_return(self, *args, path, **kwargs):
        write(path, seen(args, kwargs))

    @ray.method(num_returns=2)
    def two_returns(self, *args, **kwargs):
        return seen(args, kwargs), seen(args, kwargs)

    def exact(self, one, two=2):
        return one, two

    def with_threads(self, *args, **kwargs):
        return [seen(args, kwargs), *bodies.use_threads()]

    def by_reference(self, *args, **kwargs):
        return [seen(args, kwargs), bodies.Plain().work(1, key=2)]


class SplitImpl:
    def __init__(self, *args, **kwargs):
        self.given = seen(args, kwargs)

    def work(self, *args, **kwargs):
        return [self.given, seen(args, kwargs)]


@ray.remote
class Split(SplitImpl):
    pass


class Late:
    def work(self, *args, **kwargs):
        return seen(args, kwargs)


@ray.remote
class Async:
    async def work(self, *args, **kwargs):
        await asyncio.sleep(0.05)
        return seen(args, kwargs)

    async def stream(self, *args, **kwargs):
        for _ in range(2):
            await asyncio.sleep(0)
            yield seen(args, kwargs)

    async def failing(self, *args, **kwargs):
        raise ValueError(seen(args, kwargs))

    async def failing_stream(self, *args, **kwargs):
        yield seen(args, kwargs)
        raise RuntimeError('after one')

    async def no_return(self, *args, path, **kwargs):
        write(path, seen(args, kwargs))

    async def with_loop(self, *args, **kwargs):
        return [seen(args, kwargs), *await bodies.use_loop()]


@ray.remote(max_concurrency=2)
class Threaded:
    def __init__(self):
        self.both = threading.Barrier(2)

    def work(self, *args, **kwargs):
        self.both.wait(30)
        return seen(args, kwargs)


@ray.remote(concurrency_groups={'io': 1, 'compute': 1})
class Groups:
    @ray.method(concurrency_group='io')
    def read(self, *args, **kwargs):
        return seen(args, kwargs)

    @ray.method(concurrency_group='compute')
    def work(self, *args, **kwargs):
        return seen(args, kwargs)


@ray.remote(max_restarts=1, max_task_retries=1)
class Restarted:
    def __init__(self, *args, **kwargs):
        self.given = seen(args, kwargs)

    def dies_once(self, *args, path, **kwargs):
        if first_time(path):
            os._exit(1)
        return [self.given, seen(args, kwargs)]


@ray.remote
class Caller:
    def call(self, other, *args, **kwargs):
        return [seen(args, kwargs), ray.get(other.called.remote(1, key=2))]


@ray.remote
class Called:
    def called(self, *args, **kwargs):
        return seen(args, kwargs)


@ray.remote
class Made:
    def __init__(self, *args, **kwargs):
        self.given = seen(args, kwargs)

    def work(self, *args, **kwargs):
        return [self.given, seen(args, kwargs)]


@ray.remote
class MadeByTask:
    def __init__(self, *args, **kwargs):
        self.given = seen(args, kwargs)

    def work(self, *args, **kwargs):
        return [self.given, seen(args, kwargs)]


@ray.remote
class Maker:
    def make(self, *args, **kwargs):
        made = Made.remote(1, key=2)
        return [seen(args, kwargs), *ray.get(made.work.remote(1, key=2))]


@ray.remote
def maker(*args, **kwargs):
    made = MadeByTask.remote(1, key=2)
    return [seen(args, kwargs), *ray.get(made.work.remote(1, key=2))]


@ray.remote
class Named:
    def work(self, *args, **kwargs):
        return seen(args, kwargs)


@ray.remote
class Detached:
    def work(self, *args, **kwargs):
        return seen(args, kwargs)


@ray.remote(num_cpus=1)
class Placed:
    def work(self, *args, **kwargs):
        return seen(args, kwargs)


@ray.remote
class Rollouts:
    def generate(self, *args, **kwargs):
        return seen(args, kwargs)


class TrainerImpl:
    """A trainer that itself runs in an actor."""

    def fit(self, *args, **kwargs):
        rollouts = Rollouts.remote()
        return [seen(args, kwargs), *(self.step(rollouts, 1, key=2) for _ in range(2))]

    def step(self, rollouts, *args, **kwargs):
        return [seen(args, kwargs), ray.get(rollouts.generate.remote(1, key=2))]


@ray.remote
class Trainer(TrainerImpl):
    pass
