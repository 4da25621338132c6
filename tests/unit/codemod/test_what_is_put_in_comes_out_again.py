# SPDX-License-Identifier: Apache-2.0
"""`revert(apply(x)) == x` and `apply(apply(x)) == apply(x)`, on the standard library and on programs made at random."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, given, settings

from lens_auto.codemod.index import Index
from lens_auto.codemod.style import STYLES
from lens_auto.codemod.writing import write
from tests.unit.codemod.everything import on_everything, reverted, wishes

LIBRARY = Path(os.__file__).parent
EXAMPLES = sorted((Path(__file__).parents[3] / 'examples').rglob('*.py'))
MODULES = (
    *('abc.py', 'base64.py', 'bisect.py', 'bdb.py', 'cmd.py', 'code.py', 'codeop.py', 'colorsys.py', 'compileall.py'),
    *('contextlib.py', 'copy.py', 'copyreg.py', 'csv.py', 'filecmp.py', 'fnmatch.py', 'fractions.py', 'getpass.py'),
    *('gettext.py', 'glob.py', 'heapq.py', 'hmac.py', 'linecache.py', 'operator.py', 'pprint.py', 'queue.py'),
    *('sched.py', 'selectors.py', 'shelve.py', 'textwrap.py', 'timeit.py'),
)


def bare(text: str) -> str:
    """A program without what the codemod put in, by its syntax tree: another way to see that nothing else changed."""

    class Strip(ast.NodeTransformer):
        def _ours(self, node: ast.AST) -> bool:
            if isinstance(node, ast.Call):
                return self._ours(node.func)
            if isinstance(node, ast.Attribute):
                return self._ours(node.value)
            return isinstance(node, ast.Name) and node.id.startswith('_lens_')

        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
            self.generic_visit(node)
            node.decorator_list = [each for each in node.decorator_list if not self._ours(each)]
            return node

        def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
            self.generic_visit(node)
            node.decorator_list = [each for each in node.decorator_list if not self._ours(each)]
            return node

        def _with(self, node: ast.With | ast.AsyncWith) -> ast.AST | list[ast.stmt]:
            self.generic_visit(node)
            node.items = [item for item in node.items if not self._ours(item.context_expr)]
            return node if node.items else node.body

        visit_With = visit_AsyncWith = _with

        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            around = node.func
            if isinstance(around, ast.Call) and isinstance(around.func, ast.Call) and self._ours(around.func):
                node.func = around.args[0]
            return node

    tree = ast.parse(text)
    lines = text.splitlines()
    begin = next(n for n, line in enumerate(lines, 1) if line.startswith('# lens-codemod: begin'))
    end = next(n for n, line in enumerate(lines, 1) if line.startswith('# lens-codemod: end'))
    tree.body = [node for node in tree.body if not begin < node.lineno < end]
    return ast.dump(Strip().visit(tree))


@pytest.mark.parametrize('name', MODULES)
def test_modules_of_the_standard_library_come_back_byte_for_byte(name: str) -> None:
    data = (LIBRARY / name).read_bytes()
    source, written = on_everything(data, calls=name < 'd')
    assert written.places and not [each for each in written.problems if 'one more block' in each.reason]
    assert bare(written.text) == ast.dump(ast.parse(data))
    assert reverted(source.data(written.text)) == (data, True)


@pytest.mark.parametrize('style', ['otel', 'nemo-lens'])
@pytest.mark.parametrize('name', ['contextlib.py', 'queue.py', 'sched.py'])
def test_every_style_comes_back(name: str, style: str) -> None:
    data = (LIBRARY / name).read_bytes()
    source, written = on_everything(data, style)
    assert f'(style {style}, ' in written.text
    assert reverted(source.data(written.text)) == (data, True)


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.name)
def test_the_example_comes_back_and_a_second_time_changes_nothing(path: Path) -> None:
    data = path.read_bytes()
    source, written = on_everything(data)
    if not written.places:
        assert written.text == source.text
        return
    once = source.data(written.text)
    assert reverted(once) == (data, True)
    assert on_everything(reverted(once)[0])[1].text == written.text


NAMES = st.sampled_from(['a', 'b', 'c'])
EXPRESSIONS = st.sampled_from(
    ['a', '(b)', 'f(a)', '(f)(a)(b)', 'f(\n  a,\n)', '"t"', '"""t\n  u\n"""', '[a for a in b]']
)


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """Lines of a block, at indentation 0: of everything that a program may have in some form."""
    found: list[str] = []
    unit = draw(st.sampled_from(['    ', '\t', '  '])) if not depth else '    '
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 11 if depth < 3 else 4))
        value = draw(EXPRESSIONS)
        if kind <= 1:
            found += [f'{draw(NAMES)} = {value}  # c']
        elif kind == 2:
            found += [f'f({draw(NAMES)}); g()']
        elif kind == 3:
            found += [f'for {draw(NAMES)} in {value}: {draw(NAMES)} = 1; f()']
        elif kind == 4:
            found += [f'with {value}: f(a)  # c']
        else:
            body = draw(blocks(depth + 1))
            comment = draw(st.sampled_from([[], ['# comment'], ['']]))
            inner = (
                [unit + line for line in '\n'.join([*comment, *body]).split('\n')]
                if '"""' not in '\n'.join(body)
                else [unit + 'f(a)']
            )
            header = {
                5: f'for {draw(NAMES)} in {value}:',
                6: f'while {value}:  # c',
                7: f'with {value} as {draw(NAMES)}, ({value}):',
                8: f'with (\n  {value} as x,  # c\n  f(b),\n):',
                9: f'def {draw(NAMES)}(self, x=1):',
                10: f'@f\n# c\n@g()\nasync def {draw(NAMES)}(*a):',
                11: f'class {draw(NAMES)}:',
            }[kind]
            found += [*header.split('\n'), *inner]
            if kind in (5, 6) and draw(st.booleans()):
                found += ['else:', unit + 'f()', '# after']
    return found


PROGRAMS = st.builds(
    lambda head, lines, newline, end: newline.join([*head, *lines, *end]),
    st.sampled_from(
        [[], ['"""doc"""'], ['# license', '', 'import os'], ['from __future__ import annotations', 'import a', 'x = 1']]
    ),
    blocks(),
    st.sampled_from(['\n', '\r\n']),
    st.sampled_from([[], [''], ['', '', '# end']]),
)


@given(PROGRAMS, st.sampled_from(sorted(STYLES)), st.booleans())
@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_any_program_comes_back(text: str, style: str, calls: bool) -> None:
    data = text.encode()
    try:
        compile(text, 'made', 'exec')
    except SyntaxError:
        return
    source, written = on_everything(data, style, calls)
    again = Index(source)
    assert write(source, again, wishes(again, calls), STYLES[style]).text == written.text
    if written.places:
        once = source.data(written.text)
        assert reverted(once) == (data, True)
        if style == 'lens':
            assert bare(written.text) == ast.dump(ast.parse(data))
    else:
        assert written.text == source.text
