# SPDX-License-Identifier: Apache-2.0
"""Wrapped functions that run where little of Python is left, in children, and in processes without the agent."""

import sys
from pathlib import Path

import pytest

from tests.helpers.program import Program, every_python, function, python

MODULE = """
    import asyncio, contextlib
    class Resource:
        def __init__(self, name): self.name = name
        def close(self): print('closed', self.name)
        def __del__(self): self.close()
        @contextlib.contextmanager
        def block(self):
            yield
        def gen(self):
            try: yield 1
            finally: print('finally', self.name)
    def leaf(n=1): return n
    async def a_leaf(): return 2
    def gen():
        yield leaf()
    async def a_gen():
        yield leaf()
    @contextlib.contextmanager
    def block():
        yield
    def make(step):
        def closure(n): return n + step
        return closure
    closure = make(3)
    class Local:
        def method(self, k=1, *, j=2): return k + j
"""
NAMES = [
    'Resource.close',
    'Resource.__del__',
    'Resource.gen',
    'Resource.block',
    'leaf',
    'a_leaf',
    'gen',
    'a_gen',
    'block',
    'closure',
]
NAMES += ['Local.method']
RULES = [function(f'{i:02}', f'm:{name}', name=name) for i, name in enumerate(NAMES)]

ENDINGS = {
    'an object of the module namespace': 'kept = m.Resource("a"); m.kept = m.Resource("b")',
    'an object in a cycle': 'a = m.Resource("a"); a.me = a; b = m.Resource("b"); b.module = m; m.b = b',
    'a generator left open': 'g = m.Resource("g").gen(); next(g); m.h = m.Resource("h").gen(); next(m.h)',
    'atexit': 'import atexit; atexit.register(lambda: m.Resource("x").close()); atexit.register(m.leaf)',
    'a daemon thread': (
        'import threading, time\n'
        'def work():\n    while True: m.leaf(); time.sleep(0)\n'
        'threading.Thread(target=work, daemon=True).start(); time.sleep(0.05)'
    ),
    'weakref.finalize': 'import weakref; r = m.Resource("r"); weakref.finalize(r, m.leaf)',
    'sys.exit inside': 'm.leaf(); sys.exit(3)',
    'os._exit inside': 'm.leaf(); import os; sys.stdout.flush(); os._exit(4)',
    'uncaught': 'm.leaf(); m.Resource.block',
}


@every_python
@pytest.mark.parametrize('ending', ENDINGS)
def test_a_process_ends_as_without_us(tmp_path: Path, version: str, ending: str) -> None:
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': 'import sys, m\n' + ENDINGS[ending]})
    traced = program.traced(RULES, python=python(version))
    assert traced.visible() == program.plain(python=python(version)).visible()
    assert traced.journal.reports('fault') == []


@every_python
def test_a_forked_child_records_its_own_spans_and_no_end_of_its_parents(tmp_path: Path, version: str) -> None:
    source = """
        import os, sys, m
        def inside():
            pid = os.fork()
            if not pid:
                m.leaf()
                return
            os.waitpid(pid, 0)
            m.gen()
        m.leaf(0)
        with m.block():
            inside()
    """
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    traced = program.traced(RULES, python=python(version))
    assert (traced.stderr, traced.code) == ('', 0)
    assert traced.journal.tree() == 'leaf\nblock\n  leaf'
    assert sum(record[0] == 2 and record[6] == 'block' for record in traced.journal.records) == 1


CARRY = """
    import asyncio, cloudpickle, pickle, sys
    import m
    cloudpickle.register_pickle_by_value(m)
    made = {name: getattr(m, name) for name in ('leaf', 'a_leaf', 'gen', 'a_gen', 'closure', 'block', 'Local')}
    made['bound'] = m.Local().method
    open('by_value', 'wb').write(cloudpickle.dumps(made))
    cloudpickle.unregister_pickle_by_value(m)
    open('by_reference', 'wb').write(cloudpickle.dumps(made))
    open('plainly', 'wb').write(pickle.dumps({k: v for k, v in made.items() if k not in ('closure',)}))
"""
USE = """
    import asyncio, pickle, sys
    sys.modules.update({} if sys.argv[2] == 'with' else {})
    made = pickle.loads(open(sys.argv[1], 'rb').read())
    async def all_async():
        return await made['a_leaf'](), [i async for i in made['a_gen']()]
    def run():
        with made['block'](): pass
        print(made['leaf'](), list(made['gen']()), asyncio.run(all_async()), end=' ')
        print(made['bound'](4, j=5), made['Local']().method(1))
        if 'closure' in made: print(made['closure'](4))
    run()
    print('lens_auto' in sys.modules)
"""


@pytest.mark.parametrize('how', ['by_value', 'by_reference', 'plainly'])
def test_pickles_run_with_and_without_the_agent(tmp_path: Path, how: str) -> None:
    module = MODULE.replace('closure = make(3)', 'closure = make(3); closure.__qualname__ = "closure"')
    program = Program(tmp_path, {'m.py': module, 'carry.py': CARRY, 'use.py': USE})
    assert program.traced(RULES, 'carry.py').visible() == ('', '', 0)
    if how == 'by_value':
        (program.app / 'm.py').rename(program.app / 'elsewhere.py')
    plain = program.plain('use.py', how, 'without')
    expected = '1 [1] (2, [1]) 9 3\n' + ('7\n' if how != 'plainly' else '') + 'False\n'
    assert plain.visible() == (expected, '', 0)
    # By value they find the agent of the process they come to, whose rules are the same plan's.
    program.write({'waker.py': 'def f(): pass', 'use.py': 'import waker\n' + __import__('textwrap').dedent(USE)})
    traced = program.traced([*RULES, function('w', 'waker:f')], 'use.py', how, 'with')
    assert (traced.stdout, traced.stderr) == (expected.replace('False', 'True'), '')
    if how != 'by_value':
        assert {'leaf', 'gen', 'a_leaf', 'a_gen', 'block', 'Local.method'} <= set(traced.journal.names())


STREAMS = """
    import random, sys
    import numpy, torch
    random.seed(1); numpy.random.seed(1); torch.manual_seed(1)
    import m
    for n in range(300): m.leaf(random.random()); list(m.gen())
    print(random.getstate()[1][:3], numpy.random.get_state()[1][:3], torch.get_rng_state().sum().item())
    print(random.random(), numpy.random.rand(), torch.rand(1).item())
"""


def test_random_streams_are_those_without_us(tmp_path: Path) -> None:
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': STREAMS})
    traced = program.traced(RULES, python=sys.executable)
    assert traced.visible() == program.plain().visible()
    assert len(traced.journal.spans) == 900
