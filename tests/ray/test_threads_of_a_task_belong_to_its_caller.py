# SPDX-License-Identifier: Apache-2.0
"""A task that starts a thread or hands a job to a pool before any span is open: what runs there is its caller's."""

from __future__ import annotations

from collections.abc import Callable

from tests.helpers.ray_program import RayPlace, rules_text

PROGRAM = """
import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import ray
import work

@ray.remote
class Collector:
    def start(self):
        self.pool = ThreadPoolExecutor(1)
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()
        self.pool.submit(work.job).result()

    def loop(self):
        time.sleep(0.2)  # the task is over
        threading.Thread(target=lambda: asyncio.run(work.batch())).start()

    def later(self):
        self.thread.join()
        self.pool.submit(work.other).result()
        time.sleep(0.5)
        return True

def train():
    collector = Collector.remote()
    ray.get(collector.start.remote())
    return collector

ray.init(address='local', num_cpus=2, include_dashboard=False)
collector = work.train(train)
assert ray.get(collector.later.remote())
ray.shutdown()
"""
WORK = """
def train(run): return run()
def job(): pass
async def batch(): pass
def other(): pass
"""


def test_threads_and_pools(new_place: Callable[..., RayPlace]) -> None:
    names = {name: f'work:{name}' for name in ('train', 'job', 'batch', 'other')}
    place = new_place().write({'main.py': PROGRAM, 'work.py': WORK, 'rules.yaml': rules_text(names)})
    traced = place.traced('main.py')
    assert traced.done.code == 0, traced.done.stderr
    spans = {span.name: span for span in traced.spans if span.name in names}
    train = spans['train']
    assert {name: span.parent == train.id for name, span in spans.items()} == {
        'train': False,
        'job': True,
        'batch': True,
        # The pool's thread worked for `start` before; the call of `later` has no span around it.
        'other': False,
    }
    assert {span.trace for span in spans.values()} == {train.trace}
