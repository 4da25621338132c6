# SPDX-License-Identifier: Apache-2.0
"""Takes out of a file what the codemod put in: every use of its names, recognised by syntax, and its import block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import libcst as cst

from lens_auto.codemod import block
from lens_auto.codemod.block import Damaged, digest
from lens_auto.codemod.edits import pushable
from lens_auto.codemod.piece import OWN
from lens_auto.codemod.source import Source, Unreadable, called

_OWN = OWN.encode()


class Use(NamedTuple):
    """A place that the codemod wrote.

    Attributes:
        line: Its line.
        name: The name that is used there.
        shown: Its arguments without a keyword, as written: the span's name is one of them.
    """

    line: int
    name: str
    shown: str


class Undone(NamedTuple):
    """A file without what was put in.

    Attributes:
        text: The whole text.
        exact: Whether that is, byte for byte, what was there before; else somebody has edited the file since.
        uses: What was taken out.
        style: The style it was in.
    """

    text: str
    exact: bool
    uses: list[Use]
    style: str


def undo(source: Source) -> Undone | None:
    """A file without what was put in, or None where there is nothing.

    Args:
        source: The file.

    Raises:
        Damaged: Something of ours is in a shape that it was not written in.
    """
    found = block.there(source)
    if found is None:
        return None
    traces = _Traces(source, found.start, found.end)
    source.walk(traces)
    text = _without(source, [(found.start, found.end), *traces.gone])
    exact = digest(source.data(text)) == found.original
    if not exact:
        _see_that_nothing_is_left(source, text)
    return Undone(text, exact, sorted(traces.uses), found.style)


def _see_that_nothing_is_left(source: Source, text: str) -> None:
    try:
        left = _Left(Source(source.path, source.data(text)), OWN)
    except Unreadable as unreadable:
        raise Damaged(f'without what lens-codemod wrote, the file would be no Python: {unreadable}') from None
    if left.names:
        name = left.names[0]
        raise Damaged(f'{name} is used in a way that lens-codemod does not write: take that out by hand')


def _without(source: Source, gone: list[tuple[int, int]]) -> str:
    found: list[bytes] = []
    at = 0
    for start, end in sorted(gone):
        if end <= at:
            continue
        found.append(source.utf8[at : max(at, start)])
        at = end
    return b''.join([*found, source.utf8[at:]]).decode()


class _Left(cst.CSTVisitor):
    """Names of ours in a file."""

    def __init__(self, source: Source, own: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self._own = own
        source.walk(self)

    def visit_Name(self, node: cst.Name) -> None:
        if node.value.startswith(self._own):
            self.names.append(node.value)


class _Traces(cst.CSTVisitor):
    """Where in a file something of ours is."""

    def __init__(self, source: Source, start: int, end: int) -> None:
        super().__init__()
        self._source = source
        self._block = (start, end)
        self.gone: list[tuple[int, int]] = []
        self.uses: list[Use] = []

    def _is_ours(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and called(node).startswith(OWN)

    def _take(self, node: cst.CSTNode, start: int, end: int) -> None:
        self.gone.append((start, end))
        assert isinstance(node, cst.Call)
        if called(node) == f'{OWN}set':
            return  # it came with a decorator
        given = [self._source.tree.code_for_node(a.value) for a in node.args if a.keyword is None and not a.star]
        self.uses.append(Use(self._source.line(self._source.span(node)[0]), called(node), ' '.join(given)))

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Skip the block itself, and statements with nothing of ours: what is in them is most of a file."""
        if isinstance(node, (cst.Try, cst.SimpleStatementLine, cst.FunctionDef, cst.ClassDef)):
            start, end = self._source.span(node)
            if self._block[0] <= start < self._block[1]:
                return False
            if isinstance(node, cst.SimpleStatementLine) and _OWN not in self._source.utf8[start:end]:
                return False
        return super().on_visit(node)

    def visit_Decorator(self, node: cst.Decorator) -> None:
        if self._is_ours(node.decorator):
            source = self._source
            start = source.line_start(source.span(node)[0])
            self._take(node.decorator, start, source.span(node.trailing_whitespace.newline)[1])

    def visit_With(self, node: cst.With) -> None:
        source = self._source
        ours = [self._is_ours(item.item) for item in node.items]
        if not any(ours):
            return
        spans = [source.span(item) for item in node.items]
        if all(ours):
            start, end = self._unwrapped(node)
            for number, item in enumerate(node.items):
                self._take(item.item, *((start, end) if not number else (end, end)))
            return
        first_kept = ours.index(False)
        for number, item in enumerate(node.items):
            if ours[number] and number < first_kept:
                self._take(item.item, spans[number][0], spans[number + 1][0])
            elif ours[number]:
                self._take(item.item, spans[number - 1][1], spans[number][1])

    def _unwrapped(self, node: cst.With) -> tuple[int, int]:
        """The header of a block that is all ours; what is in it goes out by one level."""
        source = self._source
        start = source.span(node)[0]
        line = source.line_start(start)
        if isinstance(node.body, cst.IndentedBlock):
            inner = source.span(node.body.header.newline)[1]
            first, last = source.span(node.body.body[0])[0], source.span(node.body.body[-1])[1]
            prefix = source.slice(line, start)
            deeper = _lead(source, first)
            if not deeper.startswith(prefix):
                raise Damaged(f'line {source.line(first)} is indented in a way that lens-codemod does not write')
            level, at = len(deeper) - len(prefix), len(prefix.encode())
            for offset in pushable(source, inner, last):
                if source.utf8.startswith(deeper.encode(), offset):
                    self.gone.append((offset + at, offset + at + level))
            return line, inner
        # `for x in y: f(x)` was given a line of its own for the block: up to the colon before it.
        body = source.span(node.body.body[0])[0]
        colon = source.utf8.rindex(b':', 0, body) + 1
        before = source.utf8[:line].rstrip(b'\r\n')
        if before.rstrip().endswith(b':'):
            return len(before.rstrip()), colon
        return start, body

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        source = self._source
        self._statements(node.body)
        [*_, only] = node.body
        if len(node.body) == 1 and isinstance(only, cst.Expr) and self._is_ours(only.value):
            start = source.line_start(source.span(node)[0])
            end = source.span(node.trailing_whitespace.newline)[1]
            if not source.slice(start, end).endswith(('\n', '\r')):
                start = len(source.utf8[:start].rstrip(b'\r\n')) if start else start
            self._take(only.value, start, end)

    def visit_SimpleStatementSuite(self, node: cst.SimpleStatementSuite) -> None:
        self._statements(node.body)

    def _statements(self, body: Iterable[object]) -> None:
        statements = [each for each in body if isinstance(each, cst.BaseSmallStatement)]
        for number, each in enumerate(statements[:-1]):
            if isinstance(each, cst.Expr) and self._is_ours(each.value):
                self._take(each.value, self._source.span(each)[0], self._source.span(statements[number + 1])[0])

    def visit_Call(self, node: cst.Call) -> None:
        # `_lens_x(...)(function)(arguments)` was `function(arguments)`.
        around = node.func
        if isinstance(around, cst.Call) and self._is_ours(around.func) and len(around.args) == 1:
            start, end = self._source.span(around)
            first, last = self._source.span(around.args[0].value)
            self._take(around.func, start, first)
            self.gone.append((last, end))


def _lead(source: Source, offset: int) -> str:
    """The indentation of the line of an offset."""
    return source.slice(source.line_start(offset), offset)
