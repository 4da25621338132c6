# SPDX-License-Identifier: Apache-2.0
"""A span that is current where a thread is started, or a job handed to a pool, is the parent of what happens there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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


FIDELITY = """
import asyncio, contextvars, decimal, threading
from concurrent.futures import ThreadPoolExecutor
import work
{imports}

mine = contextvars.ContextVar('mine', default='unset')

def state():
    work.step('state')
    return mine.get(), decimal.getcontext().prec, decimal.getcontext().traps[decimal.Inexact]{more}

def changing():
    mine.set('set there'); decimal.getcontext().prec = 7
    return state()

def main():
    mine.set('set here'); decimal.getcontext().prec = 5; decimal.getcontext().traps[decimal.Inexact] = True
    {settings}
    found = []
    for job in (state, changing, state):
        thread = threading.Thread(target=lambda: found.append(('thread', job()))); thread.start(); thread.join()
        found.append(('pool', pool.submit(job).result()))
    async def several():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))  # of several, any could take the next job
        for job in (state, changing, state):
            found.append(('run_in_executor', await loop.run_in_executor(None, job)))
            found.append(('to_thread', await asyncio.to_thread(job)))
        mine.set('set by a coroutine')
        found.append(('task', await asyncio.create_task(asyncio.to_thread(state))))
    asyncio.run(several())
    found.append(('after', state()))
    return found

with ThreadPoolExecutor(1) as pool:
    pool.submit(work.step, 'first').result()  # its thread was there before anything was set
    print(*work.outer(main), sep=', ')
"""


@every_python
def test_decimal_settings_and_context_variables_are_in_threads_as_without_us(tmp_path: Path, version: str) -> None:
    source = FIDELITY.format(imports='', more='', settings='')
    program = Program(tmp_path, {'work.py': WORK, 'main.py': source})
    traced = program.traced(RULES, python=python(version))
    assert traced.visible() == program.plain(python=python(version)).visible()
    assert traced.code == 0 and "('thread', ('unset', 28, False))" in traced.stdout
    assert len(traced.journal.spans) == 2 + 3 + 3 + 3 + 3 + 1 + 1


def test_numpy_error_states_are_in_threads_as_without_us(tmp_path: Path) -> None:
    pytest.importorskip('numpy')
    source = FIDELITY.format(imports='import numpy', more=', numpy.geterr()', settings="numpy.seterr(all='raise')")
    program = Program(tmp_path, {'work.py': WORK, 'main.py': source})
    traced = program.traced(RULES, python=sys.executable)
    assert traced.visible() == program.plain(python=sys.executable).visible()
    assert traced.code == 0 and 'raise' in traced.stdout and 'warn' in traced.stdout


GROUPS = """
import asyncio, threading
from concurrent.futures import ThreadPoolExecutor
import work

async def child(what):
    await asyncio.sleep(0)
    work.step(what)
    await asyncio.to_thread(work.step, what + ' in a thread')

def later():
    work.step('call_soon')

def main():
    async def several():
        async with asyncio.TaskGroup() as group:
            for number in range(2):
                group.create_task(child(f'task {number}'))
        loop = asyncio.get_running_loop()
        loop.call_soon(later)
        loop.call_soon_threadsafe(work.step, 'call_soon_threadsafe')
        await asyncio.sleep(0)
        def from_thread():
            asyncio.run_coroutine_threadsafe(child('run_coroutine_threadsafe'), loop).result()
        await loop.run_in_executor(None, from_thread)
        with ThreadPoolExecutor(3) as pool:
            await asyncio.gather(*(loop.run_in_executor(pool, work.step, f'own pool {n}') for n in range(3)))
    asyncio.run(several())
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work.step, ['map 0', 'map 1']))
    timer = threading.Timer(0, work.step, ['timer']); timer.start(); timer.join()

work.outer(main)
"""


@pytest.mark.parametrize('version', ['3.11', '3.12', '3.13'])
def test_task_groups_and_what_a_loop_is_asked_for(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'work.py': WORK, 'main.py': GROUPS})
    traced = program.traced(RULES, python=python(version))
    assert traced.visible() == ('', '', 0) == program.plain(python=python(version)).visible()
    outer, *inside = traced.journal.spans
    found = sorted((span.name, span.parent == outer.id) for span in inside)
    names = ['call_soon', 'call_soon_threadsafe', 'map 0', 'map 1', 'own pool 0', 'own pool 1', 'own pool 2']
    names += [
        f'{task}{where}' for task in ('task 0', 'task 1', 'run_coroutine_threadsafe') for where in ('', ' in a thread')
    ]
    assert found == sorted((name, True) for name in [*names, 'timer'])


THREAD_POOL = """
import traceback
from multiprocessing.pool import ThreadPool
import work
def job(what):
    work.step(what)
    if what == 'fails': raise ValueError(what)
    return what
def main():
    global pool
    pool = ThreadPool(2)
    pool.apply(job, ['apply']); pool.apply_async(job, kwds={'what': 'apply_async'}).get()
    print(pool.map(job, ['map'] * 5), pool.starmap(job, [['starmap']]), sorted(pool.imap(job, ['imap'] * 3, 2)))
    print(list(pool.imap_unordered(job, ['unordered'])))
    try: pool.apply(job, ['fails'])
    except ValueError: print(traceback.format_exc())
work.outer(main)
print(pool.map(job, ['after'] * 4))  # by the same threads
pool.close(); pool.join()
"""


@every_python
def test_a_thread_pool_of_multiprocessing_has_each_job_where_it_was_handed_in(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'work.py': WORK, 'main.py': THREAD_POOL})
    traced = program.traced(RULES, python=python(version))
    plain = program.plain(python=python(version))
    assert (traced.stdout, traced.stderr, traced.code) == (plain.stdout, plain.stderr, plain.code) or version == '3.10'
    assert traced.code == 0 and traced.journal.reports('fault') == traced.journal.reports('missing') == []
    [outer] = [span for span in traced.journal.spans if span.name == 'outer']
    inside = [span.name for span in traced.journal.spans if span.parent == outer.id]
    assert sorted(set(inside)) == ['apply', 'apply_async', 'fails', 'imap', 'map', 'starmap', 'unordered']
    assert {span.parent for span in traced.journal.spans if span.name == 'after'} == {outer.parent}
