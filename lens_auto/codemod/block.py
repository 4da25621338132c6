# SPDX-License-Identifier: Apache-2.0
"""The one import block that a changed file has, between two comments: what it looks like, and where it goes."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

import libcst as cst

from lens_auto.codemod.edits import Insert
from lens_auto.codemod.source import Source

_BEGIN = re.compile(rb'^# lens-codemod: begin \(style ([\w-]+), original ([0-9a-f]{16})\)[ \t]*\r?$', re.MULTILINE)
_END = re.compile(rb'^# lens-codemod: end[ \t]*(\r\n|\r|\n|\Z)', re.MULTILINE)
_NOTE = '# Written by lens-codemod. `lens-codemod revert` takes this and every _lens_ name out again.'


class Damaged(Exception):
    """There is a block, and it is not as it was written; the text says what is wrong."""


class Block(NamedTuple):
    """A block that is there.

    Attributes:
        start: Where it begins, with a blank line before it that came with it.
        end: Where it ends, with a blank line behind it that came with it.
        style: The style it was written in.
        original: `digest` of the file as it was before.
    """

    start: int
    end: int
    style: str
    original: str


def digest(data: bytes) -> str:
    """What a file is known by.

    Args:
        data: Its bytes.
    """
    return hashlib.sha256(data).hexdigest()[:16]


def written(source: Source, style: str, lines: list[str], original: str) -> Insert:
    """The block, and where it goes: behind the docstring and the imports at the top.

    Args:
        source: The file.
        style: The style's name.
        lines: The imports.
        original: `digest` of the file.
    """
    begin = f'# lens-codemod: begin (style {style}, original {original})'
    lines = [begin, _NOTE, *lines, '# lens-codemod: end']
    after = _last_of_head(source.tree)
    if after is None:
        first = source.span(source.tree.body[0])[0]
        at = source.line_start(_above_decorators(source, first))
        return Insert(at, source.newline.join([*lines, '', '']), whole=True)
    offset = source.span(after.trailing_whitespace.newline)[1]
    return Insert(offset, source.newline.join(['', *lines, '']), whole=True)


def _above_decorators(source: Source, first: int) -> int:
    """Where the first statement begins, its decorators included."""
    statement = source.tree.body[0]
    decorators = statement.decorators if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) else ()
    return min([first, *(source.span(decorator)[0] for decorator in decorators)])


def _last_of_head(tree: cst.Module) -> cst.SimpleStatementLine | None:
    """The last of the statements a file begins with: its docstring, and imports one after the other."""
    last = None
    for number, statement in enumerate(tree.body):
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        docstring = number == 0 and _is_text(statement.body[0])
        if not docstring and not all(isinstance(each, (cst.Import, cst.ImportFrom)) for each in statement.body):
            break
        last = statement
    return last


def _is_text(statement: cst.BaseSmallStatement) -> bool:
    return isinstance(statement, cst.Expr) and isinstance(statement.value, (cst.SimpleString, cst.ConcatenatedString))


def there(source: Source) -> Block | None:
    """The block of a file, or None.

    Args:
        source: The file.

    Raises:
        Damaged: There is only part of one, or several.
    """
    begins = [m for m in _BEGIN.finditer(source.utf8) if source.line(m.start()) not in source.inside_text]
    if not begins:
        return None
    if len(begins) > 1:
        raise Damaged(f'there are {len(begins)} blocks of lens-codemod: leave the one whose names are used')
    [begin] = begins
    end = _END.search(source.utf8, begin.end())
    if end is None:
        raise Damaged('the block of lens-codemod has lost its last line, `# lens-codemod: end`')
    start, stop = begin.start(), end.end()
    newline = source.newline.encode()
    if any(source.span(statement)[0] < start for statement in source.tree.body):
        if source.utf8[:start].endswith(newline * 2):
            start -= len(newline)
    elif source.utf8.startswith(newline, stop):
        stop += len(newline)
    return Block(start, stop, begin[1].decode(), begin[2].decode())
