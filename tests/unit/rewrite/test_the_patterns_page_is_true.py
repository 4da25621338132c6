# SPDX-License-Identifier: Apache-2.0
"""docs/patterns.md: each row of its tables is tried."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from lens_auto.rewrite.edit import rewrite
from lens_auto.rewrite.pattern import PatternError, parse
from lens_auto.rewrite.places import Wanted, find

PAGE = (Path(__file__).parents[3] / 'docs' / 'patterns.md').read_text()
KINDS = {'Loops': 'loop', 'Blocks': 'block', 'Calls': 'call'}


def rows() -> list[tuple[str, str, str, str]]:
    found: list[tuple[str, str, str, str]] = []
    for section in PAGE.split('\n## ')[1:]:
        kind = KINDS.get(section.split('\n')[0])
        for row in re.findall(r'^\| `(.*)` \| `(.*)` \| `(.*)` \|$', section, re.M) if kind else ():
            found.append((kind or '', *row))
    return found


def matches(kind: str, pattern: str, source: str) -> bool:
    """Whether a pattern finds the loop, block or call that a source is, in a function."""
    text = f'async def main():\n    {source}{"" if kind == "call" else " pass"}\n'
    tree = ast.parse(text)
    [found] = find(tree, [Wanted('k', kind, 'main', parse(kind, pattern), (0, None))], text)
    statement: Any = tree.body[0].body[0]  # type: ignore[attr-defined]
    whole = statement
    if kind == 'call':  # the calls in its arguments are not meant
        whole = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
    return any(place.node is whole for place in found.matches)


@pytest.mark.parametrize(('kind', 'pattern', 'finds', 'not_this'), rows())
def test_a_row_of_a_table(kind: str, pattern: str, finds: str, not_this: str) -> None:
    assert matches(kind, pattern, finds)
    assert not matches(kind, pattern, not_this)


def test_there_are_rows_of_each_kind() -> None:
    assert {kind: sum(row[0] == kind for row in rows()) > 4 for kind in KINDS.values()} == dict.fromkeys(
        KINDS.values(), True
    )


def test_what_it_says_of_names_and_tuples() -> None:
    with pytest.raises(PatternError):
        parse('call', 'ray.$f(x)')
    assert matches('call', '$f(x)', 'ray.get(x)')
    assert matches('loop', 'for $t in $$$:', 'for a, b in pairs:')
    assert matches('loop', 'for $a, $b in $$$:', 'for a, b in pairs:')


REFUSED = {
    'torch.compile': 'import torch\n@torch.compile\ndef f(x):\n    for i in x: g(i)\n',
    'torch.jit.script': 'from torch import jit as j\ndef f(x):\n    for i in x: g(i)\nf = j.script(f)\n',
    'numba.njit': 'from numba import njit\ndef h():\n    @njit(cache=True)\n    def f(x):\n        for i in x: g(i)\n',
    'triton.jit': 'import triton\n@triton.jit\ndef f(x):\n    for i in x: g(i)\n',
}


@pytest.mark.parametrize('reader', REFUSED)
def test_code_that_something_else_compiles_is_refused_unless_forced(reader: str) -> None:
    qualname = 'h.f' if 'def h' in REFUSED[reader] else 'f'
    pattern = parse('loop', 'for $i in $$$:')
    [found] = find(ast.parse(REFUSED[reader]), [Wanted('k', 'loop', qualname, pattern)])
    assert (found.places, len(found.matches)) == ([], 1)
    assert reader in found.problem
    [forced] = find(ast.parse(REFUSED[reader]), [Wanted('k', 'loop', qualname, pattern, force=True)])
    assert (len(forced.places), forced.problem) == (1, '')


@pytest.mark.parametrize('call', ['super()', 'locals()', 'eval("x")', 'sys._getframe(1)', 'warn("x")'])
def test_a_call_that_looks_at_its_caller_is_refused(call: str) -> None:
    source = f'from warnings import warn\ndef f(x):\n    return {call}\n'
    [found] = find(ast.parse(source), [Wanted('k', 'call', 'f', parse('call', '$f($$$)'))])
    assert found.places == []
    assert 'looks at the frame' in found.problem


@pytest.mark.parametrize(
    'own',
    ['memoryview = 1', 'def delattr(): pass', 'from x import y as memoryview', 'def g(delattr): pass', 'b.delattr = f'],
)
def test_a_module_with_a_builtin_of_its_own_that_an_edit_needs_is_left_alone(own: str) -> None:
    [found] = find(ast.parse(f'{own}\nfor i in x: pass'), [Wanted('k', 'loop', '', parse('loop', 'for $i in $$$:'))])
    assert found.places == []
    assert 'of its own' in found.problem


def test_blocks_nested_too_deep_are_left_out_and_the_rest_is_edited() -> None:
    deep = 19
    source = 'for a in x: pass\n' + ''.join(f'{" " * n}while n{n}:\n' for n in range(deep)) + ' ' * deep + 'pass\n'
    wanted = [Wanted('k', 'loop', '', parse('loop', text), (1, None)) for text in ('for $_ in $$$:', 'while $$$:')]
    shallow, nested = rewrite(source.encode(), 'deep.py', wanted).found
    assert (len(shallow.places), shallow.problem) == (1, '')
    assert 0 < len(nested.places) < deep
    assert 'too deep' in nested.problem
    assert len(nested.places) + sum('too deep' in place.refused for place in nested.matches) == deep


SOURCE = """\
class Trainer:
    def fit(self, n):
        for step in tqdm(range(n)):
            a = ray.get(x)
            b = ray.get(y), ray.get(z)

    def fit_all(self):
        def inner():
            for i in range(3): pass
        x: f(y) = lambda: f(1)

for i in range(3): [f(2) for _ in f(3)]
"""


def problem(kind: str, qualname: str, text: str, **fields: Any) -> str:
    pattern = parse(kind, text) if text else None
    [found] = find(ast.parse(SOURCE), [Wanted('k', kind, qualname, pattern, **fields)], SOURCE)
    assert found.places == [] or not found.problem
    return found.problem


@pytest.mark.parametrize(
    ('kind', 'qualname', 'text', 'says'),
    [
        (
            'loop',
            'Trainer.fit',
            'for $i in range($$$):',
            '`for $i in range($$$):` in Trainer.fit is not there; it is in the module itself (line 12), '
            'Trainer.fit_all.inner (line 9)',
        ),
        (
            'loop',
            'Trainer.fit',
            'for $i in tqdm(steps):',
            '`for $i in tqdm(steps):` in Trainer.fit is not there; nearest: line 3 `for step in tqdm(range(n)):`',
        ),
        (
            'call',
            'Trainer.fit',
            'ray.get($_)',
            '`ray.get($_)` in Trainer.fit is there 3 times, 1 is expected: line 4 `a = ray.get(x)`, '
            'line 5 `b = ray.get(y), ray.get(z)`',
        ),
        (
            'function',
            'Trainer.fitt',
            '',
            'there is no Trainer.fitt in it; nearest: Trainer.fit (line 2), Trainer.fit_all (line 7), '
            'Trainer.fit_all.inner (line 8)',
        ),
        ('loop', 'Trainer.fit_all.<locals>.inner', 'for $i in range($$$):', ''),
        ('loop', '', 'for $i in range($$$):', ''),
        ('call', 'Trainer.fit_all', 'f($_)', ''),  # that of the lambda, not of the annotation
    ],
)
def test_drift_is_told_with_what_is_there_instead(kind: str, qualname: str, text: str, says: str) -> None:
    assert problem(kind, qualname, text) == says


def test_a_star_stands_for_the_last_part_and_expect_for_a_number() -> None:
    assert problem('call', 'Trainer.*', 'ray.get($_)', expect=(3, 3)) == ''
    assert problem('call', 'Trainer.fit*', 'f($_)', expect=(1, None)) == ''
    assert '4 are expected' in problem('call', 'Trainer.*', 'ray.get($_)', expect=(4, 4))
    assert 'at least 4 are' in problem('call', 'Trainer.*', 'ray.get($_)', expect=(4, None))
    assert problem('call', '', 'f($_)', expect=(2, 2)) == ''  # the comprehension belongs to the module
