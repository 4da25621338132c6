# SPDX-License-Identifier: Apache-2.0
"""Which span is current when: over yields, tasks, threads, exceptions, overrides."""

from pathlib import Path

import pytest

from tests.helpers.program import Program, every_python, function, label, python, timer

MODULE = """
    import asyncio, contextlib, contextvars

    class Timer:
        @contextlib.contextmanager
        def time(self, label):
            yield self
    timer = Timer()

    def leaf(*a): return a
    def outer(f, *a): return f(*a)
    async def a_leaf(n=0):
        await asyncio.sleep(0)
        return n
    async def a_outer(f, *a): return await f(*a)

    def gen(n):
        for i in range(n):
            leaf()
            yield i

    def gen_with_block(n):
        for i in range(n):
            with timer.time('block'):
                leaf()
                yield i
                leaf()

    async def a_gen_with_block(n):
        for i in range(n):
            with timer.time('block'):
                leaf()
                yield i
                await a_leaf()

    def fails(error): raise error
    async def a_fails(error):
        await asyncio.sleep(0)
        raise error
    def through(error):
        outer(fails, error)
    def swallows(error):
        try: fails(error)
        except BaseException: pass
    def retries():
        try: fails(KeyError('caught'))
        except KeyError as error: address = id(error)
        kept = []
        while len(kept) < 10000:
            kept.append(KeyError('own'))
            if id(kept[-1]) == address: break
        raise kept[-1]
"""
NAMES = [
    'leaf',
    'outer',
    'a_leaf',
    'a_outer',
    'gen',
    'gen_with_block',
    'a_gen_with_block',
    'fails',
    'a_fails',
    'through',
]
NAMES += ['swallows', 'retries']
RULES = [function(f'{i:02}', f'm:{name}', name=name) for i, name in enumerate(NAMES)]
RULES.append(timer('t', ['m:Timer.time'], labels={'block': label('block'), 'around': label('around')}))

TREES = {
    'a generator is current while its body runs, never in its consumer': (
        """
        for i in m.gen(2): m.leaf()
        m.leaf()
        """,
        """
        gen
          leaf
          leaf
        leaf
        leaf
        leaf
        """,
    ),
    'neither is a with block of its body that is open over a yield': (
        """
        for i in m.gen_with_block(2): m.leaf()
        m.leaf()
        """,
        """
        gen_with_block
          block
            leaf
            leaf
          block
            leaf
            leaf
        leaf
        leaf
        leaf
        """,
    ),
    'two generators advance in turn, each in its own context': (
        """
        a, b = m.gen_with_block(1), m.gen_with_block(1)
        next(a); next(b); m.leaf(); next(a, 0); next(b, 0)
        """,
        """
        gen_with_block
          block
            leaf
            leaf
        gen_with_block
          block
            leaf
            leaf
        leaf
        """,
    ),
    'a generator left open ends when it is closed': (
        """
        with m.timer.time('around'):
            made = m.gen_with_block(5); next(made)
        made.close(); m.leaf()
        made = m.gen(3); next(made); del made; m.leaf()
        """,
        """
        around
          gen_with_block
            block
              leaf
        leaf
        gen
          leaf
        leaf
        """,
    ),
    'an async generator may be resumed and closed by other tasks': (
        """
        async def main():
            made = m.a_gen_with_block(5)
            async def step(): return await made.__anext__(), m.leaf()
            async def stop(): return await made.aclose(), m.leaf()
            for job in (step, step, stop): await asyncio.create_task(m.a_outer(job))
            m.leaf()
        asyncio.run(main())
        """,
        """
        a_outer
          a_gen_with_block
            block
              leaf
              a_leaf
            block
              leaf
          leaf
        a_outer
          leaf
        a_outer
          leaf
        leaf
        """,
    ),
    'tasks have their own branch each': (
        """
        async def main(): await asyncio.gather(*[m.a_outer(m.a_leaf, i) for i in range(2)])
        asyncio.run(m.a_outer(main)); m.leaf()
        """,
        """
        a_outer
          a_outer
            a_leaf
          a_outer
            a_leaf
        leaf
        """,
    ),
    'an exception marks every span it leaves': (
        """
        try: m.through(ValueError())
        except ValueError: m.leaf()
        m.swallows(ValueError())
        """,
        """
        through!
          outer!
            fails!
        leaf
        swallows
          fails!
        """,
    ),
    'exceptions that steer control flow are no errors': (
        """
        for error in (StopIteration(), GeneratorExit(), SystemExit(), SystemExit(0), SystemExit(1), SystemExit('x'),
                      asyncio.CancelledError(), StopAsyncIteration(), KeyboardInterrupt()):
            m.swallows(error)
        async def main():
            task = asyncio.ensure_future(m.a_outer(asyncio.sleep, 9)); await asyncio.sleep(0); task.cancel()
            await asyncio.wait([task])
        asyncio.run(main())
        """,
        """
        swallows
          fails
        swallows
          fails
        swallows
          fails
        swallows
          fails
        swallows
          fails!
        swallows
          fails!
        swallows
          fails
        swallows
          fails
        swallows
          fails!
        a_outer
        """,
    ),
    'a thread starts under the span that is current where it is started': (
        """
        import threading
        def work(): m.leaf()
        def start():
            thread = threading.Thread(target=work); thread.start(); thread.join()
        m.outer(start)
        """,
        """
        outer
          leaf
        """,
    ),
    'a copied context carries the span, and only reads it': (
        """
        def copied():
            context = contextvars.copy_context()
            m.leaf()
            return context
        context = m.outer(copied); context.run(m.leaf); m.leaf()
        """,
        """
        outer
          leaf
          leaf
        leaf
        """,
    ),
}


@every_python
@pytest.mark.parametrize('case', TREES)
def test_the_tree_of_spans_is_that_of_the_calls(tmp_path: Path, version: str, case: str) -> None:
    source, expected = TREES[case]
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': 'import asyncio, contextvars\nimport m\n'})
    with (program.app / 'main.py').open('a') as main:
        import textwrap

        main.write(textwrap.dedent(source))
    traced = program.traced(RULES, python=python(version))
    assert traced.visible() == ('', '', 0)
    assert '\n' + traced.journal.tree() + '\n' == textwrap.dedent(expected)


@every_python
def test_an_exception_is_told_once_and_only_by_type_and_place(tmp_path: Path, version: str) -> None:
    source = """
        import asyncio, m
        later = lambda: asyncio.run(m.a_outer(m.a_fails, OSError('secret')))
        for job in (lambda: m.through(ValueError('secret')), m.retries, later):
            try: job()
            except Exception: pass
    """
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': source}).traced(RULES, python=python(version))
    events = [(s.name, a['exception.type'], a['code.function.name']) for s in traced.journal.spans for _, a in s.events]
    assert events == [
        ('fails', 'ValueError', 'fails'),
        # Its own exception, which has the address of the one it caught.
        ('retries', 'KeyError', 'retries'),
        ('fails', 'KeyError', 'fails'),
        ('a_fails', 'OSError', 'a_fails'),
    ]
    assert b'secret' not in b''.join(path.read_bytes() for path in (tmp_path / 'spool').iterdir())
    assert [s.name for s in traced.journal.spans if s.error and not s.events] == ['through', 'outer', 'a_outer']
