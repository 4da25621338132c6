# SPDX-License-Identifier: Apache-2.0
"""A program may call a module of its own `resource` or `json`: none of them is imported because we record."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.helpers.program import Program, every_python, function, logger, metric, plan_of, python

NAMES = """
    _json _strptime argparse bisect calendar configparser contextlib contextvars copy csv ctypes dataclasses datetime
    difflib email enum fcntl fnmatch functools hashlib heapq importlib_metadata inspect json keyword linecache logging
    mmap numbers operator pathlib pickle platform random re reprlib resource select selectors shutil signal socket
    string struct subprocess tempfile textwrap threading token tokenize traceback types typing uuid weakref zipfile
""".split()
PLANTED = """
    import sys
    print('planted', __name__, file=sys.stderr)
    sys.exit(9)
"""
MAIN = """
    import lens_auto, m

    @lens_auto.trace('by hand')
    def traced(n):
        '''As it says.'''
        lens_auto.metric('m', n)
        return m.f(n)

    @lens_auto.trace('never')
    async def awaited(): pass

    for n in range(3000): m.f(n)  # more than one segment
    m.log({'loss': 1.0})
    print(traced(3), traced.__name__, traced.__doc__, awaited.__code__.co_flags & 0x80)
    try: m.fails()
    except ValueError as error: print(error)
    import resource
"""


@every_python
def test_modules_beside_the_script(tmp_path: Path, version: str) -> None:
    files = {f'{name}.py': PLANTED for name in NAMES}
    module = 'def f(n): return n\ndef fails(): raise ValueError(1)\ndef log(metrics): pass\n'
    # Not on PYTHONPATH, where site itself would import some of them.
    home = str(Path(__file__).resolve().parents[2])
    alone = f'import sys\nsys.path.append({home!r})\n' + textwrap.dedent(MAIN)
    program = Program(tmp_path, {**files, 'm.py': module, 'main.py': MAIN, 'alone.py': alone})
    plain = program.plain('alone.py', python=python(version), PYTHONPATH='')
    assert (plain.stderr, plain.code) == ('planted resource\n', 9)
    rules = [
        function('f', 'm:f', attributes={'n': ('call', 'len', (('arg', 'n'),))}),
        function('e', 'm:fails'),
        logger('l', 'm:log', {'loss': metric('loss')}),
    ]
    plan = plan_of(rules, when={'module': 'm', 'version': None})
    environ = program.environment(plan)
    environ['PYTHONPATH'] = environ['PYTHONPATH'].partition(':')[0]
    for console in ('', '0:0'):
        traced = program._run(python(version), ('main.py',), {**environ, 'LENS_CONSOLE': console})
        lines = [line for line in traced.stdout.splitlines() if not line.startswith('{')]
        assert ('\n'.join(lines) + '\n', traced.stderr, traced.code) == (plain.stdout, plain.stderr, plain.code)
        assert traced.journal.names().count('f') >= 3001
        assert 'by hand' in traced.journal.names()
    assert len(traced.stdout.splitlines()) > 3000


@every_python
def test_a_version_is_found_without_them(tmp_path: Path, version: str) -> None:
    files = {f'{name}.py': PLANTED for name in NAMES}
    metadata = {'site/m_x-2.5.dist-info/METADATA': 'Metadata-Version: 2.1\nName: m.x\nVersion: 2.5.1\n\nVersion: 9\n'}
    files |= {'m_x.py': 'def f(n): return n\n', 'main.py': 'import m_x\nm_x.f(1)\n', **metadata}
    program = Program(tmp_path, files)
    for wanted, names in (('>=2.5.1', ['f']), ('>2.5.1', [])):
        environ = program.environment(plan_of([function('f', 'm_x:f')], when={'module': 'm_x', 'version': wanted}))
        environ['PYTHONPATH'] = f'{environ["PYTHONPATH"].partition(":")[0]}:{program.app / "site"}'
        traced = program._run(python(version), ('main.py',), environ)
        assert (traced.stderr, traced.code) == ('', 0)
        assert traced.journal.names() == names
