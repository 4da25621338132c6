# SPDX-License-Identifier: Apache-2.0
"""Plain functions that run inside workers: on threads, in executors, in tasks of an event loop; and a class."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from ray_matrix.given import seen


def on_thread(*args, **kwargs):
    return seen(args, kwargs)


def in_pool(*args, **kwargs):
    return seen(args, kwargs)


def in_executor(*args, **kwargs):
    return seen(args, kwargs)


def to_thread(*args, **kwargs):
    return seen(args, kwargs)


async def in_created_task(*args, **kwargs):
    await asyncio.sleep(0)
    return seen(args, kwargs)


def by_ray_call(actor, *args, **kwargs):
    return seen(args, kwargs)


class Plain:
    """Used by reference inside an actor."""

    def work(self, *args, **kwargs):
        return seen(args, kwargs)


def use_threads() -> list:
    """Call helpers on a thread and in a pool of this worker."""
    found = []
    thread = threading.Thread(target=lambda: found.append(on_thread(1, key=2)))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        found.append(pool.submit(in_pool, 1, key=2).result())
    return found


async def use_loop() -> list:
    """Call helpers by the ways of asyncio."""
    loop = asyncio.get_running_loop()
    return [
        await loop.run_in_executor(None, lambda: in_executor(1, key=2)),
        await asyncio.to_thread(to_thread, 1, key=2),
        await asyncio.create_task(in_created_task(1, key=2)),
    ]
