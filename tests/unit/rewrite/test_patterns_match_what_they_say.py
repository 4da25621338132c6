# SPDX-License-Identifier: Apache-2.0
"""The pattern language: what each wildcard stands for, what does not matter, and how a mistake is told."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lens_auto.rewrite.nodes import same
from lens_auto.rewrite.pattern import PatternError, parse


def matched(kind: str, pattern: str, source: str, awaited: bool = False) -> dict[str, str] | None:
    """What a pattern captures of the first statement of a source, as text; None where it does not match."""
    node: Any = ast.parse(source).body[0]
    if kind == 'call':
        node = node.value
    found = parse(kind, pattern).match(node, awaited)
    if found is None:
        return None
    return {name: shown(value) for name, value in found.items()}


def shown(value: Any) -> str:
    return ', '.join(ast.unparse(each) for each in value) if isinstance(value, tuple) else ast.unparse(value)


@pytest.mark.parametrize(
    ('kind', 'pattern', 'source', 'captures'),
    [
        ('loop', 'for $i in range($$$):', 'for step in range(3, n): pass', {'i': 'step'}),
        ('loop', 'for $i in range($$$n):', 'for step in range(3, n): pass', {'i': 'step', 'n': '3, n'}),
        ('loop', 'for $i in range($$$):', 'for step in range(): pass\nelse: pass', {'i': 'step'}),
        ('loop', 'for $i in range($n):', 'for step in range(3, n): pass', None),
        ('loop', 'for $i in range($$$):', 'for step in xrange(3): pass', None),
        ('loop', 'for $i in $$$:', 'for a, (b, c) in zip(d, e): pass', {'i': '(a, (b, c))'}),
        ('loop', 'for $i, $b in enumerate($_):', 'for (i, batch) in enumerate(loader): pass', {'i': 'i', 'b': 'batch'}),
        ('loop', 'for $first, $$$rest in x:', 'for a, b, c in x: pass', {'first': 'a', 'rest': 'b, c'}),
        ('loop', 'for $i in $$$:', 'while x: pass', None),
        ('loop', 'while $$$:', 'while a and b: pass', {}),
        ('loop', 'while $a < $b:', 'while step < cfg.steps: pass', {'a': 'step', 'b': 'cfg.steps'}),
        ('loop', 'while $a < $a:', 'while step < cfg.steps: pass', None),
        ('loop', 'while $a.x < $a.y:', 'while f("s") . x < f(\'s\').y: pass', {'a': "f('s')"}),
        ('loop', 'while True:', 'while 1: pass', None),
        ('loop', 'async for $x in $y:', 'async for a in b: pass', {'x': 'a', 'y': 'b'}),
        ('loop', 'for $x in $y:', 'async for a in b: pass', None),
        ('block', 'with timer.time("generation"):', "with timer.time('generation') as t: pass", {}),
        ('block', 'with timer.time("generation"):', 'with lock, timer.time("generation"), x: pass', {}),
        ('block', 'with timer.time("generation"):', 'with timer.time("training"): pass', None),
        ('block', 'with timer.time($label):', 'with timer.time("training"): pass', {'label': "'training'"}),
        ('block', 'with $x as $y:', 'with a: pass', None),
        ('block', 'with $x as $y:', 'with a, b as c: pass', {'x': 'b', 'y': 'c'}),
        ('block', 'with $x, $y:', 'with a, b: pass', {'x': 'a', 'y': 'b'}),
        ('block', 'with $$$all:', 'with a, b as c: pass', {'all': 'a, b as c'}),
        ('block', 'with a, $$$, b:', 'with a, b: pass', {}),
        ('block', 'async with $x:', 'with a: pass', None),
        ('call', 'ray.get($x)', 'ray.get([f.remote() for f in fs])', {'x': '[f.remote() for f in fs]'}),
        ('call', 'ray.get($x)', 'ray.get(x, timeout=3)', None),
        ('call', 'ray.get($$$x)', 'ray.get(x, timeout=3)', {'x': 'x, timeout=3'}),
        ('call', 'f(a=1, b=$b)', 'f(b=2, a=1)', {'b': '2'}),
        ('call', 'f($$$, a=1)', 'f(0, *r, b=2, a=1, **k)', {}),
        ('call', 'f(a=1)', 'f(b=2, a=1)', None),
        ('call', 'f(**$k)', 'f(**kwargs)', {'k': 'kwargs'}),
        ('call', 'f(*$a)', 'f(*args)', {'a': 'args'}),
        ('call', 'f($x, $$$, $x)', 'f(1, 2, 3, 1)', {'x': '1'}),
        ('call', 'f($$$a, $x, $$$b, $x)', 'f(1, 2, 3, 2, 3)', {'a': '1, 2', 'x': '3', 'b': '2'}),
        ('call', '$f($$$)', 'a.b[0]()', {'f': 'a.b[0]'}),
        ('call', '$$$.remote($$$)', 'worker.step.remote(1)', {}),
        ('call', 'f(0)', 'f(False)', None),
        ('call', 'f(-0.0)', 'f(0.0)', None),
        ('call', 'f("a" "b")', "f('ab')", {}),
        ('call', "f('$x')", "f('$x')", {}),
        ('call', 'f(lambda a: $x)', 'f(lambda a: a + 1)', {'x': 'a + 1'}),
        ('call', 'f({$k: 1, **$m})', 'f({"a": 1, **b})', {'k': "'a'", 'm': 'b'}),
        ('call', 'f([$$$, 1])', 'f([3, 2, 1])', {}),
    ],
)
def test_a_pattern_matches(kind: str, pattern: str, source: str, captures: dict[str, str] | None) -> None:
    assert matched(kind, pattern, source) == captures


def test_a_pattern_with_await_matches_awaited_calls_alone() -> None:
    assert matched('call', 'await f($x)', 'f(1)', awaited=False) is None
    assert matched('call', 'await f($x)', 'f(1)', awaited=True) == {'x': '1'}
    assert matched('call', 'f($x)', 'f(1)', awaited=True) == {'x': '1'}


def test_captures_are_told_in_the_order_they_are_written() -> None:
    assert parse('call', 'é.f($b, $$$, $_, x=$a, *$$$c, y=$b)').captures == ('b', 'a', 'c')


@pytest.mark.parametrize(
    ('kind', 'text', 'column', 'says'),
    [
        ('loop', 'for $i in range($$$)', 20, 'ends in a colon'),
        ('loop', 'for $i in x: f():', 16, 'invalid syntax'),
        ('loop', 'with a:', 0, 'header of one loop'),
        ('block', 'for a in b:', 0, 'one with statement'),
        ('call', 'ray.get', 0, 'one call'),
        ('call', 'ray.get(', 7, ''),
        ('call', '  ray.get($x,,)', 13, 'invalid syntax'),
        ('call', 'ray.$x(1)', 0, 'only a name can stand'),
        ('call', 'f($k=1)', 2, 'only a name can stand'),
        ('call', 'a$b()', 1, 'right before'),
        ('call', 'f($1)', 3, "'1'"),
        ('call', 'f($for)', 3, "'for'"),
        ('call', 'f($)', 2, '$name, $_, $$$ or $$$name'),
        ('call', 'f($$x)', 2, '$name, $_, $$$ or $$$name'),
        ('call', 'f($$$$x)', 2, '$name, $_, $$$ or $$$name'),
        ('call', 'f(x) # why', 5, 'no comments'),
        ('call', 'f(\u01c3)', 2, 'has no'),
        ('call', 'f(' + 'x' * 1000 + ')', 1000, 'longer than'),
    ],
)
def test_a_mistake_is_told_with_its_column(kind: str, text: str, column: int, says: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(kind, text)
    assert caught.value.column == column
    assert says in caught.value.message


NAMES = st.sampled_from(['a', 'step', 'self', 'é', '_'])
ATOMS = st.one_of(NAMES, st.sampled_from(['1', '2.5', 'None', "'text'", '"$x"', "b'b'", '...']))


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(inner, max_size=3)
    return st.one_of(
        st.builds('{}.{}'.format, NAMES, NAMES),
        st.builds('({} + {})'.format, inner, inner),
        st.builds('({} if {} else {})'.format, inner, inner, inner),
        st.builds('{}[{}]'.format, NAMES, inner),
        lists.map(lambda parts: f'[{", ".join(parts)}]'),
        st.builds(lambda name, parts, value: f'{name}({", ".join([*parts, f"k={value}"])})', NAMES, lists, inner),
        st.builds('(lambda {}: {})'.format, st.just('x'), inner),
        st.builds('[{} for x in {} if {}]'.format, inner, inner, inner),
    )


EXPRESSIONS = st.recursive(ATOMS, _wider, max_leaves=12)
CALLS = st.builds(lambda name, parts: f'{name}({", ".join(parts)})', NAMES, st.lists(EXPRESSIONS, max_size=4))


def _holes(tree: ast.expr, chosen: list[int]) -> tuple[str, dict[str, str]]:
    """The source of a tree with some of its expressions as wildcards, and what these then capture."""
    captured: dict[str, str] = {}
    count = 0

    class Dig(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            nonlocal count
            if isinstance(node, ast.expr) and not isinstance(getattr(node, 'ctx', ast.Load()), ast.Store):
                count += 1
                if count > 1 and count in chosen:
                    name = f'w{count}'
                    captured[name] = ast.unparse(node)
                    return ast.Name(id=f'WILD{name}', ctx=ast.Load())
            return super().generic_visit(node)

    dug = Dig().visit(tree)
    return ast.unparse(dug).replace('WILD', '$'), captured


@settings(deadline=None, max_examples=200)
@given(CALLS, st.lists(st.integers(1, 20), max_size=5))
def test_source_with_wildcards_for_some_of_its_expressions_matches_itself(source: str, chosen: list[int]) -> None:
    text, captured = _holes(ast.parse(source, mode='eval').body, chosen)
    assert matched('call', text, source) == captured


@settings(deadline=None, max_examples=200)
@given(CALLS, CALLS)
def test_a_pattern_without_wildcards_matches_exactly_equal_trees(one: str, other: str) -> None:
    one_tree, other_tree = (ast.parse(text, mode='eval').body for text in (one, other))
    assert (parse('call', one).match(other_tree) is not None) == same(one_tree, other_tree)
    assert same(one_tree, other_tree) == (ast.dump(one_tree) == ast.dump(other_tree))
    assert parse('call', one).match(one_tree) == {}


@settings(deadline=None, max_examples=200)
@given(CALLS, st.integers(0, 3), st.integers(0, 3))
def test_a_run_matches_any_arguments_that_are_left(source: str, before: int, after: int) -> None:
    node: Any = ast.parse(source, mode='eval').body
    given_ = [ast.unparse(each) for each in node.args]
    before, after = min(before, len(given_)), min(after, len(given_))
    if before + after > len(given_):
        after = len(given_) - before
    end = len(given_) - after
    text = f'{ast.unparse(node.func)}({", ".join([*given_[:before], "$$$r", *given_[end:]])})'
    assert matched('call', text, source) == {'r': ', '.join(given_[before:end])}


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(['loop', 'block', 'call']), st.text('$x_ (),:=.*"\'#for inwith\n\\', max_size=30))
def test_any_text_is_a_pattern_or_a_pattern_error(kind: str, text: str) -> None:
    try:
        assert parse(kind, text).text == text
    except PatternError as error:
        assert 0 <= error.column <= len(text)
