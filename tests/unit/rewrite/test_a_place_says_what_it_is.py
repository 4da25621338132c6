# SPDX-License-Identifier: Apache-2.0
"""The constant that rewritten code holds: read back, it says what was written, whatever the names and texts."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from lens_auto.rewrite.edit import rewrite
from lens_auto.rewrite.key import Key, read, written
from lens_auto.rewrite.pattern import parse
from lens_auto.rewrite.places import Wanted

VALUES = st.one_of(
    st.tuples(st.just('name'), st.sampled_from(['i', 'é', 'class_'])),
    st.tuples(
        st.just('value'),
        st.one_of(st.text(), st.booleans(), st.integers(), st.floats(allow_nan=False)),
    ),
)


@given(st.text(), st.text(), st.dictionaries(st.sampled_from(['i', 'x', 'é']), VALUES))
def test_a_key_is_read_as_it_was_written(rule: str, where: str, captures: dict[str, tuple[str, object]]) -> None:
    constant = written(Key(rule, 'loop', where, captures))  # type: ignore[arg-type]
    key = read(constant)
    assert (key.rule, key.kind, key.where) == (rule, 'loop', where)
    assert key.captures == captures
    assert {name: type(value) for name, (_, value) in key.captures.items()} == {
        name: type(value) for name, (_, value) in captures.items()
    }
    # In source it stands as itself, also inside an f-string of any Python.
    assert constant.isascii() and not any(char in constant for char in b'\\\'"\n')


def test_a_place_is_known_by_file_scope_line_and_column() -> None:
    source = 'class A:\n    def f(self):\n        for i in 1, f(2): g(i, f(i))\n'
    patterns = [('loop', 'for $i in $$$x:'), ('call', 'f($x)')]
    wanted = [Wanted(f'r#{kind}', kind, 'A.f', parse(kind, text), (1, None)) for kind, text in patterns]
    done = rewrite(source.encode(), '/some/where/a.py', wanted)

    keys = [
        read(node.value)
        for node in ast.walk(done.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes)
    ]
    assert sorted((key.rule, key.where) for key in keys) == [
        ('r#call', 'a.py:A.f:3:20'),
        ('r#call', 'a.py:A.f:3:31'),
        ('r#loop', 'a.py:A.f:3:8'),
    ]
    captures = {key.where: key.captures for key in keys}
    assert captures['a.py:A.f:3:8'] == {'i': ('name', 'i'), 'x': ('value', '1, f(2)')}
    assert captures['a.py:A.f:3:20'] == {'x': ('value', 2)}
    assert captures['a.py:A.f:3:31'] == {'x': ('name', 'i')}


def test_a_source_in_another_encoding_is_quoted_as_it_reads() -> None:
    source = '# -*- coding: latin-1 -*-\nfor é in [ü, 1]: pass\n'.encode('latin-1')
    done = rewrite(source, 'a.py', [Wanted('r', 'loop', '', parse('loop', 'for $x in $y:'))])
    [key] = [
        read(node.value)
        for node in ast.walk(done.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes)
    ]
    assert key.captures == {'x': ('name', 'é'), 'y': ('value', '[ü, 1]')}
