# SPDX-License-Identifier: Apache-2.0
"""The whitelist: nothing but trees of known shape leaves the parser, whatever goes in."""

import ast
import marshal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lens_auto.rules import template
from lens_auto.rules.expression import FUNCTIONS, MAX_DEPTH, ExpressionError, parse, show, show_template

ALPHABET = st.sampled_from(
    ['arg', 'self', 'frame', 'env', 'result', 'label', 'x', '__class__', '__', 'len', 'total', 'round', 'lambda', 'if']
    + ['else', 'for', 'in', 'not', 'and', 'or', 'is', 'None', 'True', '.', '.', '[', ']', '(', ')', ',', ' ', '+', '-']
    + ['*', '**', '/', '//', '%', '<', '==', '!=', ':', '{', '}', "'", '"', '1', '2.5', '1e9', 'é', '\\', '\n', '#']
)
BINARY = ('+', '-', '*', '/', '//', '%', '<', '<=', '>', '>=', '==', '!=', 'and', 'or')


def check(tree: Any, depth: int = 1) -> None:
    assert isinstance(tree, tuple)
    assert depth <= MAX_DEPTH + 2
    head = tree[0]
    if head == 'c':
        assert len(tree) == 2
        assert tree[1] is None or type(tree[1]) in (str, int, float, bool)
    elif head in ('arg', 'frame', 'env', 'caller', 'var'):
        assert len(tree) == 2
        assert tree[1].isidentifier()
        assert not tree[1].startswith('__')
    elif head in ('self', 'result', 'label', 'key'):
        assert len(tree) == 1
    elif head == '.':
        check(tree[1], depth + 1)
        assert len(tree) == 3
        assert not tree[2].startswith('__')
    elif head == 'call':
        assert tree[1] in FUNCTIONS
        for part in tree[2]:
            check(part, depth + 1)
    elif head == 'fmt':
        for part in tree[1]:
            check(part, depth + 1)
    elif head in ('neg', 'not'):
        assert len(tree) == 2
        check(tree[1], depth + 1)
    else:
        assert head in BINARY or head == '[]'
        assert len(tree) == 3
        check(tree[1], depth + 1)
        check(tree[2], depth + 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(max_size=80), st.lists(ALPHABET, max_size=25).map(''.join), st.lists(ALPHABET).map(' '.join)))
def test_any_text_gives_a_tree_or_an_expression_error(text: str) -> None:
    for read, write in ((parse, show), (template.parse, show_template)):
        try:
            tree = read(text)
        except ExpressionError as error:
            assert 0 <= error.column <= len(text)
            assert error.hint
            continue
        check(tree)
        marshal.dumps(tree, 2)
        # What is shown to people means the same.
        assert read(write(tree)) == tree


@pytest.mark.parametrize(
    'text', ['(' * 200, '-' * 499 + '1', '[' * 400, 'x.' * 240 + 'x', 'x[' * 150 + '1' + ']' * 150]
)
def test_deep_and_long_texts_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)
    with pytest.raises(ExpressionError, match='nested'):
        parse('x' + ' and x' * 60)
    with pytest.raises(ExpressionError, match='longer'):
        parse('x' * 501)


@pytest.mark.parametrize(
    ('text', 'tree'),
    [
        ('arg.step', ('arg', 'step')),
        ('self.cfg.model_name', ('.', ('.', ('self',), 'cfg'), 'model_name')),
        ('frame.total_steps + 1', ('+', ('frame', 'total_steps'), ('c', 1))),
        ('total(result.input_lengths)', ('call', 'total', (('.', ('result',), 'input_lengths'),))),
        ("self.cfg['a'][-1]", ('[]', ('[]', ('.', ('self',), 'cfg'), ('c', 'a')), ('c', -1))),
        ('env.RANK', ('env', 'RANK')),
        ('env.TOKENIZERS_PARALLELISM', ('env', 'TOKENIZERS_PARALLELISM')),
        ('caller.function', ('caller', 'function')),
        ('-arg.n', ('neg', ('arg', 'n'))),
        ('not a and b or c', ('or', ('and', ('not', ('var', 'a')), ('var', 'b')), ('var', 'c'))),
        (
            'round(mean(arg.x), 2) >= 1',
            ('>=', ('call', 'round', (('call', 'mean', (('arg', 'x'),)), ('c', 2))), ('c', 1)),
        ),
        ('  label  ', ('label',)),
        ('arg.a\n+ key', ('+', ('arg', 'a'), ('key',))),
    ],
)
def test_trees_of_the_documented_forms(text: str, tree: Any) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    ('text', 'message', 'column'),
    [
        ('arg', '`arg` needs a name after it', 0),
        ('len', '`len` is a function and must be called', 0),
        ('1 + x.y()', '`x.y()` cannot be called in an expression', 4),
        ('a ** 2', '`**` is not allowed in an expression', 0),
        ('a if b else c', '`if`/`else` is not allowed in an expression', 0),
        ('[i for i in x]', 'a comprehension is not allowed in an expression', 0),
        ('x[1:2]', 'a slice is not allowed in an expression', 2),
        ('a < b < c', 'comparisons cannot be chained', 0),
        ("f'{x}'", 'an f-string is not allowed in an expression', 0),
        ("b'x'", 'a bytes literal is not allowed in an expression', 0),
        ('9223372036854775808', 'a number this large is not allowed in an expression', 0),
        ("'x' * arg.n", '`*` does not take text', 0),
        ('env.MY_API_KEY', '`env.MY_API_KEY` looks like a secret, and secrets are never recorded', 4),
        ('label.upper', '`.upper`: text and numbers have no attributes here', 6),
        ('caller.file', '`caller.file` is not known', 7),
        ('round(1, ndigits=2)', '`round()` takes 1 to 2 arguments, none of them by name', 0),
        ('max(*arg.x)', 'an unpacked argument is not allowed in an expression', 4),
        ('x = 3', 'this is not a complete expression', 2),
        ('', 'this expression is empty', 0),
        # Python reads look-alike letters as the plain ones, so the check comes after that.
        ('x.__\U0001d4ecode__', '`__code__`: names that start with `__` are not allowed', 2),
    ],
)
def test_what_is_refused_says_why_and_where(text: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse(text)
    assert (raised.value.message, raised.value.column) == (message, column)


def test_the_parser_neither_warns_nor_evaluates(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ExpressionError):
        parse('1 is 1')
    assert parse("'\\d'") == ('c', '\\d')
    assert capfd.readouterr() == ('', '')
    assert ast.literal_eval('1') == 1


@pytest.mark.parametrize(
    ('text', 'tree'),
    [
        ('rl.step', ('c', 'rl.step')),
        ('rl.{algorithm}.step', ('fmt', (('c', 'rl.'), ('var', 'algorithm'), ('c', '.step')))),
        ('{label}', ('fmt', (('label',),))),
        ('a{{b}}{ arg.x + 1 }', ('fmt', (('c', 'a{b}'), ('+', ('arg', 'x'), ('c', 1))))),
        ("{'}'}", ('c', '}')),
    ],
)
def test_name_templates(text: str, tree: Any) -> None:
    assert template.parse(text) == tree
