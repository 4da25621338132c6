# SPDX-License-Identifier: Apache-2.0
"""The parser of a traced process reads what the launcher's reads, and makes the same trees of it."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from lens_auto.rules import expression, template
from lens_auto.wrap import spelled

NAMES = st.sampled_from(['a', 'total_steps', 'x1', 'é'])
CONSTANTS = st.one_of(
    st.booleans(),
    st.none(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8).filter(lambda text: text.isprintable()),
)
LEAVES = st.one_of(
    CONSTANTS.map(lambda value: ('c', value)),
    st.tuples(st.sampled_from(['arg', 'frame']), NAMES),
    st.sampled_from([('self',), ('result',), ('label',), ('caller', 'module'), ('env', 'RANK')]),
    NAMES.map(lambda name: ('var', name)),
)
BINARY = st.sampled_from(['+', '-', '*', '/', '//', '%', '<', '<=', '>', '>=', '==', '!=', 'and', 'or'])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(BINARY, inner, inner),
        st.tuples(st.just('not'), inner),
        st.tuples(st.just('[]'), inner, inner),
        st.tuples(st.just('.'), inner, NAMES),
        st.tuples(st.just('call'), st.sampled_from(['len', 'min', 'total']), st.tuples(inner)),
    ),
    max_leaves=8,
)
WRITTEN = (
    *('frame.total_steps + 1', "self.cfg['model'].name", 'not a and b or c', 'min(arg.a, 2, 1e3)', '1.5*(2-result)'),
    *('a - b - c', 'a - (b - c)', 'a<b', 'not (a == b)', 'arg.x[-1]', '- - 3', '-a.b', '+3', '0x10', '1_000', '.5'),
    *("\"it's\" + 'q\\n\\x41\\u20ac'", ' len( result ) ', 'a\n+ b', 'True', 'None', 'x and y and z', '2 * -3'),
)


@given(TREES)
def test_what_one_prints_the_other_reads(tree: tuple[object, ...]) -> None:
    text = expression.show(tree)
    try:
        wanted = expression.parse(text)
    except expression.ExpressionError:
        return
    assert spelled.expression(text) == wanted


@pytest.mark.parametrize('text', WRITTEN)
def test_both_read_what_people_write(text: str) -> None:
    assert spelled.expression(text) == expression.parse(text)


def test_both_know_the_same_words() -> None:
    for name in expression.ROOTS:
        text = f'{name}.x' if name in ('arg', 'frame', 'env', 'match', 'version') else name
        text = 'caller.module' if name == 'caller' else text
        assert spelled.expression(text) == expression.parse(text)
    for name, (fewest, _) in expression.FUNCTIONS.items():
        given = ', '.join(('result', "'x'")[:fewest])
        text = f'{name}({given})'
        assert spelled.expression(text) == expression.parse(text)


@pytest.mark.parametrize('text', ['rl.{algorithm}.step', 'a{{b}}c', "{label + '}'}", 'plain', '{a}{b.c}'])
def test_both_read_names(text: str) -> None:
    assert spelled.template(text) == template.parse(text)


@pytest.mark.parametrize(
    'text',
    ['', 'a +', 'a b', '(a', 'a)', "'a", 'frame', 'arg.', 'len', 'len(', 'a = b', '1x', 'a.1', 'a ? b', '(' * 99],
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(spelled.Misspelled):
        spelled.expression(text)


@given(st.text(max_size=30))
def test_no_text_does_anything_else(text: str) -> None:
    try:
        spelled.expression(text)
        spelled.template(text)
    except spelled.Misspelled:
        pass
