# SPDX-License-Identifier: Apache-2.0
"""An exception that leaves a recorded function has the traceback it has without us, whatever kind of function it is."""

import re
from pathlib import Path

from tests.helpers.program import Program, every_python, function, python

MODULE = """
    import asyncio, contextlib
    class Frozen(Exception):
        def __setattr__(self, name, value):
            raise TypeError(name)
    def plain():
        deeper(ValueError('plain'))
    def deeper(error):
        raise error
    def frozen():
        deeper(Frozen('frozen'))
    def chained():
        try: plain()
        except ValueError as error: raise KeyError('outer') from error
    def recursive(n):
        return recursive(n - 1) if n else deeper(ValueError('bottom'))
    def twice():
        plain()
    def generator():
        got = yield 1
        try: yield 2
        except LookupError: deeper(ValueError('in the generator'))
        deeper(ValueError('sent'))
    def delegating():
        yield from generator()
    def closing():
        try: yield 1
        finally: deeper(ValueError('closed'))
    async def coroutine():
        await asyncio.sleep(0)
        deeper(ValueError('in the coroutine'))
    async def awaiting():
        await coroutine()
    async def stream():
        yield 1
        try: yield 2
        except LookupError: deeper(ValueError('in the stream'))
        deeper(ValueError('asked'))
    @contextlib.contextmanager
    def managed():
        yield
    def filtered():
        deeper(ValueError('filtered'))
    def filtered_generator():
        yield 1
        deeper(ValueError('filtered'))
    async def filtered_stream():
        yield 1
        deeper(ValueError('filtered'))
    class Clock:
        def start(self, name):
            deeper(ValueError('start'))
        def stop(self, name):
            deeper(ValueError('stop'))
"""
MAIN = """
    import asyncio, contextlib, m, traceback
    def of(made, *steps):
        for step in steps: step(made)
    async def a_of(made, *steps):
        for step in steps: await step(made)
    def thrown(made): made.throw(LookupError('thrown in'))
    async def a_next(made): await made.__anext__()
    async def a_thrown(made): await made.athrow(LookupError('thrown in'))
    async def cancelled():
        task = asyncio.create_task(m.coroutine())
        await asyncio.sleep(0)
        task.cancel()
        await task
    def with_block():
        with m.managed(): m.deeper(ValueError('in the block'))
    cases = {
        'plain': m.plain, 'frozen': m.frozen, 'chained': m.chained, 'recursive': lambda: m.recursive(2),
        'twice': m.twice, 'wrong arguments': lambda: m.plain(1), 'with block': with_block,
        'generator': lambda: list(m.generator()), 'delegating': lambda: list(m.delegating()),
        'sent': lambda: of(m.generator(), next, next, lambda made: made.send(3)),
        'thrown': lambda: of(m.generator(), next, next, thrown),
        'thrown first': lambda: of(m.generator(), next, thrown),
        'thrown in delegating': lambda: of(m.delegating(), next, next, thrown),
        'closed': lambda: of(m.closing(), next, lambda made: made.close()),
        'coroutine': lambda: asyncio.run(m.awaiting()), 'cancelled': lambda: asyncio.run(cancelled()),
        'stream': lambda: asyncio.run(a_of(m.stream(), a_next, a_next, a_next)),
        'thrown in stream': lambda: asyncio.run(a_of(m.stream(), a_next, a_next, a_thrown)),
        'thrown first in stream': lambda: asyncio.run(a_of(m.stream(), a_next, a_thrown)),
        'filtered': m.filtered, 'filtered generator': lambda: list(m.filtered_generator()),
        'filtered stream': lambda: asyncio.run(a_of(m.filtered_stream(), a_next, a_next)),
        'start': lambda: m.Clock().start('a'), 'stop': lambda: m.Clock().stop('a'),
    }
    for name, case in cases.items():
        try: case()
        except BaseException: print('##', name); print(traceback.format_exc())
"""
NAMES = ('plain', 'frozen', 'chained', 'recursive', 'generator', 'delegating', 'closing', 'coroutine', 'awaiting')
NAMES += ('stream', 'managed')
# Of 3.10: the frame of the code around a function, at its `def` line, is the one that stays.
AT_DEF = re.compile(r'  File "[^"]*", line \d+, in \w+\n    (?:async )?def .*\n')


@every_python
def test_the_text_is_the_same(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': MAIN})
    rules = [function(f'{number:02}', f'm:{name}', name=name) for number, name in enumerate(NAMES)]
    # Two rules at one function, one that records nobody's calls, and code before and after a call.
    rules += [function('twice', 'm:twice', name='one'), function('again', 'm:twice', name='two')]
    rules += [
        function(name[:12], f'm:{name}', only_from=('nobody',))
        for name in ('filtered', 'filtered_generator', 'filtered_stream')
    ]
    plain = program.plain(python=python(version))
    traced = program.traced(rules, python=python(version))
    assert plain.stdout.count('## ') == 24
    shown = [run.stdout if version != '3.10' else AT_DEF.sub('', run.stdout) for run in (plain, traced)]
    assert shown[1].split('## ') == shown[0].split('## ')
    assert 'lens_auto' not in traced.stdout
    assert traced.journal.reports('fault') == []
    assert {span.name for span in traced.journal.spans} == {*NAMES, 'one', 'two'}
