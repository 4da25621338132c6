# SPDX-License-Identifier: Apache-2.0
"""How a wrapped function finds us goes through its own `__import__` and `sys.modules['os']`, whatever they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.program import Program, every_python, function, python

BREAKS = {
    'import raises': """
        def broken(*a, **k): raise RuntimeError('no imports here')
        builtins.__import__ = broken
    """,
    'import gives a fake': 'builtins.__import__ = lambda *a, **k: types.SimpleNamespace()',
    'os is a mock': "sys.modules['os'] = mock.MagicMock()",
    'os is None': "sys.modules['os'] = None",
    'os has no sys': "sys.modules['os'] = types.SimpleNamespace(__spec__=None)",
}
MODULE = """
    def f(n): return n
    def g(n): yield n
    async def h(n): return n
    async def k(n): yield n
"""


@every_python
@pytest.mark.parametrize('what', BREAKS)
def test_functions_run_as_ever(tmp_path: Path, version: str, what: str) -> None:
    main = """
import asyncio, builtins, os, sys, types
from unittest import mock
import m
async def all_(): return await m.h(3), [n async for n in m.k(4)]
kept, real = os, builtins.__import__
{breaks}
found = m.f(1), list(m.g(2))
runner = all_()
try: runner.send(None)
except StopIteration as stop: found += stop.value
builtins.__import__, sys.modules['os'] = real, kept
print(found, m.f(5))
"""
    import textwrap

    program = Program(tmp_path, {'m.py': MODULE})
    (program.app / 'main.py').write_text(main.format(breaks=textwrap.dedent(BREAKS[what]).strip()))
    plain = program.plain(python=python(version))
    traced = program.traced([function(name, f'm:{name}') for name in 'fghk'], python=python(version))
    assert plain.stdout == '(1, [2], 3, [4]) 5\n'
    assert traced.visible() == plain.visible()
    assert traced.journal.names()[-1:] == ['f']
