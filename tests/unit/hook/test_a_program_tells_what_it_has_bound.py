# SPDX-License-Identifier: Apache-2.0
"""The marks in a program's code: after which statements they stand, and that they do nothing where nobody listens."""

from __future__ import annotations

import ast
import builtins

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lens_auto.hook.shown import BOUND
from lens_auto.rewrite.bound import mark

CASES = {
    'a function': ('def f(): pass', ['f']),
    'an async function': ('async def f(): pass', ['f']),
    'a class with a method of the name': ('class f:\n    def f(self): pass', ['f']),
    'a decorated one': ('@staticmethod\ndef f(): pass', ['f']),
    'an assignment to several': ('g = f = 1', ['f']),
    'an annotation': ('f: int = 1', ['f']),
    'an annotation alone': ('f: int', []),
    'an import': ('import os.path as f', ['f']),
    'an import of a package': ('import os.path\nf = os', ['f']),
    'an import from': ('from os import path as f', ['f']),
    'both branches': ('if 1:\n    def f(): pass\nelse:\n    f = 2', ['f']),
    'a handler': ('try:\n    1 / 0\nexcept ZeroDivisionError:\n    f = 2', ['f']),
    'a with block and a loop': ('for x in "ab":\n    f = x', ['f', 'f']),
    'a local one': ('def g():\n    f = 1\ng()', []),
    'the future': ('from __future__ import annotations', []),
    'an attribute': ('class g: pass\ng.f = 1', []),
}


def run(source: str, *names: str) -> tuple[list[str], tuple[str, ...]]:
    told: list[str] = []
    tree = ast.parse(source)
    bound = mark(tree, names, BOUND)
    code = compile(tree, 'program', 'exec', dont_inherit=True)
    exec(code, {})  # nobody listens
    setattr(builtins, BOUND, told.append)
    try:
        exec(code, {})
    finally:
        delattr(builtins, BOUND)
    return told, bound


@pytest.mark.parametrize('case', CASES)
def test_a_name_is_told_as_it_is_bound(case: str) -> None:
    source, told = CASES[case]
    assert run(source, 'f', 'annotations')[0] == told


def test_what_is_never_bound_is_known() -> None:
    assert run('def f(): pass\nclass G: pass', 'f', 'G', 'h')[1] == ('f', 'G')


@given(st.lists(st.sampled_from(sorted(source for source, _ in CASES.values() if 'future' not in source)), max_size=5))
def test_lines_stay_where_they_are(statements: list[str]) -> None:
    source = '\n'.join(statements) or 'pass'
    tree = ast.parse(source)
    plain = compile(source, 'program', 'exec', dont_inherit=True)
    mark(tree, ('f',), BOUND)
    marked = compile(tree, 'program', 'exec', dont_inherit=True)
    lines = [sorted({line for *_, line in code.co_lines() if line}) for code in (plain, marked)]
    assert lines[0] == lines[1]
