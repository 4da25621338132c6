# SPDX-License-Identifier: Apache-2.0
"""Puts what the rules want into a file: wishes to pieces of a style, pieces to insertions, and the proof of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import libcst as cst

from lens_auto.codemod import block
from lens_auto.codemod.block import Damaged, digest
from lens_auto.codemod.edits import Insert, Shift, render
from lens_auto.codemod.index import Index, yields
from lens_auto.codemod.piece import OWN, Piece, Said, laid_out
from lens_auto.codemod.source import Source, Unreadable, called
from lens_auto.codemod.style import Style
from lens_auto.codemod.undo import undo
from lens_auto.codemod.wish import DECORATED, Refused, Wish
from lens_auto.codemod.wishes import Problem

# What these do depends on the frame that calls them.
_LOOKING = ('super', 'locals', 'globals', 'vars', 'dir', 'eval', 'exec', 'breakpoint', 'sys._getframe')
_OURS = re.compile(rf'\b{OWN}\w+')


class Written(NamedTuple):
    """A file with what the rules want.

    Attributes:
        text: The whole text; that of the file itself where nothing is wanted.
        places: What is written: line of the file as it was, kind, and the span's name or the function's.
        problems: What is left out.
    """

    text: str
    places: list[tuple[int, str, str]]
    problems: list[Problem]


def write(source: Source, index: Index, wishes: list[Wish], style: Style) -> Written:
    """Put what the rules want into a file that has nothing of ours.

    Args:
        source: The file.
        index: What is in it.
        wishes: What is wanted.
        style: How to say it.

    Raises:
        Refused: The file cannot be changed at all.
    """
    taken = sorted(name for name in index.names if name.startswith(OWN))
    if taken and wishes:
        raise Refused(f'it uses {taken[0]} already: names that begin with {OWN} are those of lens-codemod')
    edit = _Edit(source, index, style)
    for wish in wishes:
        edit.grant(wish)
    done = edit.done()
    if done.places and not _is_proven(source, done.text):
        # Twenty blocks in one another are all that Python takes: the loops are what adds to them.
        edit = _Edit(source, index, style)
        for wish in wishes:
            if wish.kind == 'loop':
                edit.refuse(wish, 'with one more block the file does not compile')
            else:
                edit.grant(wish)
        done = edit.done()
        if done.places and not _is_proven(source, done.text):
            raise Refused('what would be written cannot be taken out again exactly, or does not compile')
    return done


def _is_proven(source: Source, text: str) -> bool:
    """Whether a text compiles, and is the file again once what was put in is taken out."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            compile(text.encode() if not text.startswith('\ufeff') else text, source.path, 'exec', dont_inherit=True)
        undone = undo(Source(source.path, source.data(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError, Damaged, Unreadable):
        return False
    return undone is not None and undone.text == source.text and undone.exact


class _Edit:
    def __init__(self, source: Source, index: Index, style: Style) -> None:
        self._source = source
        self._index = index
        self._style = style
        self._inserts: list[Insert] = []
        self._shifts: list[Shift] = []
        self._uses: set[str] = set()
        self._places: list[tuple[int, str, str]] = []
        self._problems: list[Problem] = []
        self._ends: set[tuple[str, str]] = set()
        self._granted: set[tuple[object, ...]] = set()

    def refuse(self, wish: Wish, reason: str, part: bool = False) -> None:
        self._problems.append(Problem(self._line(wish), reason, wish.rule, part))

    def _line(self, wish: Wish) -> int:
        return self._source.line(self._source.span(wish.node)[0])

    def grant(self, wish: Wish) -> None:
        """Do what a rule wants at a place, or say why not."""
        try:
            self._check(wish)
            pieces = self._style.write(wish, lambda reason: self.refuse(wish, reason, True))
        except Refused as refused:
            self.refuse(wish, str(refused))
            return
        if wish.kind == 'end' and (wish.timer, wish.label) not in self._ends:
            return  # what begins it was refused
        if wish.kind == 'begin':
            self._ends.add((wish.timer, wish.label))
        places = [(self._source.span(wish.node), piece) for piece in pieces]
        for where, piece in places:
            if (where, piece) not in self._granted:  # two rules that say the same
                self._granted.add((where, piece))
                self._put(wish, piece)
        shown = wish.target if wish.kind in DECORATED else _shown(wish)
        self._places.append((self._line(wish), wish.kind, shown))

    def _check(self, wish: Wish) -> None:
        if not wish.rule.get('force'):
            reader = self._index.compiled(wish.scope)
            if reader:
                raise Refused(f'{reader}: it is better left alone')
        if isinstance(wish.node, cst.Call) and called(wish.node) in _LOOKING:
            raise Refused(f'{called(wish.node)}() looks at the function that calls it, which would be another one')
        if wish.kind == 'call' and wish.part == 'await':
            raise Refused('the call is awaited: its span would end before the wait')
        if wish.until is not None and self._style.name != 'lens':
            self._check_between(wish.node, wish.until)
        if wish.kind in ('block', 'loop'):
            body = wish.node
            assert isinstance(body, (cst.With, cst.For, cst.While))
            if yields(body.body):
                raise Refused('there is a `yield` in it: the span would be current in whoever takes what it yields')

    def _check_between(self, start: cst.CSTNode, until: cst.CSTNode) -> None:
        first, last = self._source.span(start)[1], self._source.span(until)[0]
        if self._index.yields_between(first, last):
            raise Refused('there is a `yield` in it: the span would be current in whoever takes what it yields')
        [block] = [call.block for call in self._index.calls if call.line is start]
        if block.index(until) - block.index(start) < 2:
            raise Refused('nothing is done between start and stop')
        for shift in self._shifts:
            if shift.start < last and first < shift.end and not shift.start <= first < last <= shift.end:
                if not (first <= shift.start and shift.end <= last):
                    raise Refused('what is timed overlaps with something else that is: style lens can say that')

    def _put(self, wish: Wish, piece: Piece) -> None:
        node, said = wish.node, piece.said
        self._uses.update(_OURS.findall(f'{said.name} {said.flat}'))
        order = (len(self._inserts),)
        if piece.how in ('decorator', 'outer'):
            self._decorate(node, said, order, piece.how == 'outer')
        elif piece.how == 'item':
            assert isinstance(node, cst.With)
            self._item(node, said, order)
        elif piece.how == 'loop':
            assert isinstance(node, (cst.For, cst.While))
            self._loop(node, said, order)
        elif piece.how == 'after':
            assert isinstance(node, cst.SimpleStatementLine)
            self._after(node, said, order)
        elif piece.how == 'between':
            assert isinstance(node, cst.SimpleStatementLine) and wish.until is not None
            self._between(node, wish.until, said, order)
        elif piece.how == 'first':
            assert isinstance(node, cst.FunctionDef)
            self._first(node, said, order)
        else:
            assert isinstance(node, cst.Call)
            start, end = self._source.span(node.func)
            self._inserts.append(Insert(start, f'{said.name}({said.flat})(', (-end, *order)))
            self._inserts.append(Insert(end, ')', (start, *order)))

    def _laid_out(self, said: Said, before: int, indentation: str, after: int = 0) -> str:
        return laid_out(said, before, indentation, self._source.unit, after, self._source.newline)

    def _decorate(self, node: cst.CSTNode, said: Said, order: tuple[int, ...], outer: bool) -> None:
        source = self._source
        start = source.span(node)[0]
        if outer:
            start = min([start, *(source.span(each)[0] for each in _decorators(node))])
        line = source.line_start(start)
        indentation = source.slice(line, start)
        text = self._laid_out(said, len(indentation) + 1, indentation)
        # The first rule's is next to the `def`, so that it is applied first, as the first rule is at run time.
        inner = tuple(-number for number in order)
        self._inserts.append(Insert(line, f'{indentation}@{text}{source.newline}', (1, *inner), whole=True))

    def _item(self, node: cst.With, said: Said, order: tuple[int, ...]) -> None:
        source = self._source
        end = source.span(node.items[-1])[1]
        line = source.line_start(end)
        after = len(source.slice(end, source.line_end(end)))
        text = self._laid_out(said, len(source.slice(line, end)) + 2, source.indentation(end), after)
        self._inserts.append(Insert(end, f', {text}', order))

    def _loop(self, node: cst.For | cst.While, said: Said, order: tuple[int, ...]) -> None:
        source, body = self._source, node.body
        if isinstance(body, cst.SimpleStatementSuite):
            first = source.span(body.body[0])[0]
            colon = len(source.utf8[:first].rstrip(b' \t'))
            if source.utf8[colon - 1 : colon] != b':':
                raise AssertionError(f'no colon before {first}')
            indentation = source.indentation(source.span(node)[0]) + source.unit
            text = self._laid_out(
                said, len(indentation) + 5, indentation, len(source.slice(colon, source.line_end(colon)))
            )
            self._inserts.append(Insert(colon, f'{source.newline}{indentation}with {text}:', order))
            return
        assert isinstance(body, cst.IndentedBlock)
        only = body.body[0] if len(body.body) == 1 else None
        if isinstance(only, cst.With) and only.asynchronous is None:
            # Its block is the whole body: one more item, before the others, is all it takes.
            start = source.span(only.items[0])[0]
            line = source.line_start(start)
            after = len(source.slice(start, source.line_end(start)))
            text = self._laid_out(said, len(source.slice(line, start)), source.indentation(start), after)
            self._inserts.append(Insert(start, f'{text}, ', order))
            return
        start = source.span(body.header.newline)[1]
        first, last = source.span(body.body[0])[0], source.span(body.body[-1])[1]
        first = min([first, *(source.span(each)[0] for each in _decorators(body.body[0]))])
        prefix = source.slice(source.line_start(first), first)
        shift = Shift(start, source.line_end(last), prefix)
        text = self._laid_out(said, len(prefix) + 5, prefix, 1)
        header = f'{prefix}with {text}:{source.newline}'
        # Of several, the first rule's is outermost: it is put in first, and what comes after it goes in deeper.
        self._inserts.append(Insert(start, header, (0, *order), whole=True, header=shift))
        self._shifts.append(shift)

    def _after(self, node: cst.SimpleStatementLine, said: Said, order: tuple[int, ...]) -> None:
        source = self._source
        start = source.span(node)[0]
        end = source.span(node.trailing_whitespace.newline)[1]
        indentation = source.indentation(start)
        text = indentation + self._laid_out(said, len(indentation), indentation)
        if source.utf8[:end].endswith((b'\n', b'\r')):
            self._inserts.append(Insert(end, text + source.newline, (0, *order), whole=True, anchor=start))
        else:  # the file's last line, and it does not end
            self._inserts.append(Insert(end, source.newline + text, (0, *order), anchor=start))

    def _between(
        self, node: cst.SimpleStatementLine, until: cst.SimpleStatementLine, said: Said, order: tuple[int, ...]
    ) -> None:
        source = self._source
        start = source.span(node.trailing_whitespace.newline)[1]
        [block] = [call.block for call in self._index.calls if call.line is node]
        end = source.line_end(source.span(block[block.index(until) - 1])[1])
        prefix = source.indentation(source.span(node)[0])
        shift = Shift(start, end, prefix)
        text = self._laid_out(said, len(prefix) + 5, prefix, 1)
        self._inserts.append(Insert(start, f'{prefix}with {text}:{source.newline}', (0, *order), True, shift))
        self._shifts.append(shift)

    def _first(self, node: cst.FunctionDef, said: Said, order: tuple[int, ...]) -> None:
        source, body = self._source, node.body
        first = body.body[0]
        start = source.span(first)[0]
        if isinstance(body, cst.SimpleStatementSuite):
            self._inserts.append(Insert(start, f'{said.name}({said.flat}); ', order))
            return
        start = min([start, *(source.span(each)[0] for each in _decorators(first))])
        line = source.line_start(start)
        indentation = source.slice(line, start)
        text = f'{indentation}{self._laid_out(said, len(indentation), indentation)}{source.newline}'
        if isinstance(first, cst.SimpleStatementLine) and _is_docstring(first):
            end = source.span(first.trailing_whitespace.newline)[1]
            if not source.utf8[:end].endswith((b'\n', b'\r')):
                text, end = source.newline + text.removesuffix(source.newline), len(source.utf8)
            self._inserts.append(Insert(end, text, (0, *order), whole=True, anchor=start))
        else:
            self._inserts.append(Insert(line, text, (0, *order), whole=True))

    def done(self) -> Written:
        source = self._source
        if not self._inserts:
            return Written(source.text, [], self._problems)
        original = digest(source.data(source.text))
        head = block.written(source, self._style.name, self._style.imports(self._uses), original)
        text = render(source, [head, *self._inserts], self._shifts)
        return Written(text, sorted(self._places), self._problems)


def _decorators(node: cst.CSTNode) -> list[cst.Decorator]:
    return list(node.decorators) if isinstance(node, (cst.FunctionDef, cst.ClassDef)) else []


def _is_docstring(line: cst.SimpleStatementLine) -> bool:
    return isinstance(line.body[0], cst.Expr) and isinstance(
        line.body[0].value, (cst.SimpleString, cst.ConcatenatedString)
    )


def _shown(wish: Wish) -> str:
    from lens_auto.rules.expression import show_template

    name: Any = wish.name
    return show_template(name)


def rule_shown(rule: Mapping[str, Any]) -> str:
    """A rule in a few words, for a message.

    Args:
        rule: The rule.
    """
    return f'the {rule["kind"]} rule of line {rule["line"]}'
