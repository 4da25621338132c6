# SPDX-License-Identifier: Apache-2.0
# Ray's own annotations know less than Ray does.
# pyright: reportArgumentType=false, reportCallIssue=false
"""Ray tasks."""

import ray

from ray_matrix import bodies
from ray_matrix.given import first_time, seen, write


@ray.remote
def decorated(*args, **kwargs):
    return seen(args, kwargs)


def late(*args, **kwargs):
    return seen(args, kwargs)


@ray.remote
def generator(*args, **kwargs):
    yield seen(args, kwargs)
    yield seen(args, kwargs)


@ray.remote
def inner(*args, **kwargs):
    return seen(args, kwargs)


@ray.remote
def outer(*args, **kwargs):
    return [seen(args, kwargs), ray.get(inner.remote(1, key=2))]


@ray.remote(max_retries=2, retry_exceptions=True)
def retried(*args, path, **kwargs):
    if first_time(path):
        raise ConnectionError('the first attempt')
    return seen(args, kwargs)


@ray.remote
def failing(*args, **kwargs):
    raise ValueError(seen(args, kwargs))


@ray.remote(max_retries=0)
def failing_generator(*args, **kwargs):
    yield seen(args, kwargs)
    raise ValueError('after one')


@ray.remote(num_returns=0)
def no_return(*args, path, **kwargs):
    write(path, seen(args, kwargs))


@ray.remote(num_returns=2)
def two_returns(*args, **kwargs):
    return seen(args, kwargs), seen(args, kwargs)


@ray.remote
def with_threads(*args, **kwargs):
    return [seen(args, kwargs), *bodies.use_threads()]


@ray.remote
def producer(*args, **kwargs):
    return seen(args, kwargs)


@ray.remote
def consumer(refs, *args, **kwargs):
    return [seen(args, kwargs), *ray.get(refs)]


@ray.remote
def outliving(*args, **kwargs):
    return seen(args, kwargs)


@ray.remote
def placed(*args, **kwargs):
    return seen(args, kwargs)


@ray.remote
def with_options(*args, **kwargs):
    return seen(args, kwargs)
