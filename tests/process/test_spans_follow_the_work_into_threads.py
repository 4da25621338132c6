# SPDX-License-Identifier: Apache-2.0
"""A span that is current where a thread is started, or a job handed to a pool, is the parent of what happens there."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.program import Program, every_python, function, python

WORK = """
def step(what):
    return what

def outer(run):
    return run()
"""
PROGRAM = """
import asyncio, contextvars, decimal, inspect, threading
from concurrent.futures import ThreadPoolExecutor
import work

mine = contextvars.ContextVar('mine', default='unset')
seen = []

def in_thread():
    work.step('thread')
    seen.append((mine.get(), decimal.getcontext().prec))

class Own(threading.Thread):
    def run(self):
        work.step('subclass')

def main():
    mine.set('set by main')
    decimal.getcontext().prec = 5
    thread = threading.Thread(target=in_thread); thread.start(); thread.join()
    own = Own(); own.start(); own.join()
    pool.submit(work.step, 'pool').result()
    async def several():
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, work.step, 'run_in_executor')
        await asyncio.to_thread(work.step, 'to_thread')
        await asyncio.create_task(work_in_a_task())
    asyncio.run(several())

async def work_in_a_task():
    work.step('task')

pool = ThreadPoolExecutor(1)
work.outer(main)
pool.submit(work.step, 'after').result()  # the same thread of the pool: what it carried went with its job
try:
    pool.submit(divmod, 1, 0).result()
except ZeroDivisionError as error:
    print(error)
pool.shutdown()
print(seen, inspect.signature(threading.Thread.start), sorted(vars(threading.Thread()))[:1])
"""
RULES = [function('outer', 'work:outer'), function('step', 'work:step', name=('arg', 'what'))]


@every_python
def test_every_way_into_a_thread(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'work.py': WORK, 'main.py': PROGRAM})
    traced = program.traced(RULES, python=python(version))
    assert traced.visible() == program.plain(python=python(version)).visible()
    spans = {span.name: span for span in traced.journal.spans}
    outer = spans['outer']
    inside = ('thread', 'subclass', 'pool', 'run_in_executor', 'to_thread', 'task')
    assert {name: spans[name].parent == outer.id for name in inside} == dict.fromkeys(inside, True)
    assert spans['after'].parent not in {span.id for span in spans.values()}
