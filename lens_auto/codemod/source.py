# SPDX-License-Identifier: Apache-2.0
"""A Python file as the codemod sees it: its text, its syntax tree with positions, its name as a module."""

from __future__ import annotations

import io
import os
import re
import tokenize
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

_BOM = '\ufeff'
# Some generated files: hundreds of strings or operators in one expression, each a level of its own.
_TOO_DEEP = 'it is nested too deep for the parser'


class Unreadable(Exception):
    """A file is no Python source that can be changed; the text says why."""


class Source:
    """A file's text and syntax tree. Offsets count bytes of the UTF-8 form of `text`.

    Attributes:
        path: Where it is.
        text: What it says, without a byte order mark, with its own line ends.
        encoding: How it is stored.
        bom: Whether it begins with a byte order mark.
        tree: libcst's tree.
    """

    def __init__(self, path: str, data: bytes):
        """Read a file.

        Args:
            path: Its path.
            data: Its bytes.

        Raises:
            Unreadable: It is no Python source.
        """
        self.path = path
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            text = data.decode(encoding)
        except (SyntaxError, UnicodeDecodeError, LookupError) as error:
            raise Unreadable(f'this is not text in a known encoding ({error})') from None
        self.encoding = 'utf-8' if encoding == 'utf-8-sig' else encoding
        self.bom = encoding == 'utf-8-sig'
        self._set(text.removeprefix(_BOM))

    def _set(self, text: str) -> None:
        self.text = text
        self.utf8 = text.encode()
        try:
            self.tree = cst.parse_module(text)
            again = self.tree.code
        except cst.ParserSyntaxError as error:
            raise Unreadable(f'syntax error in line {error.raw_line}') from None
        except RecursionError:
            raise Unreadable(_TOO_DEEP) from None
        except (ValueError, UnicodeError) as error:
            raise Unreadable(f'this cannot be parsed ({type(error).__name__})') from None
        if again != text:
            raise Unreadable('the parser does not give this text back as it was')

    def data(self, text: str) -> bytes:
        """A text as it is stored in this file.

        Args:
            text: The whole text.
        """
        return (b'\xef\xbb\xbf' if self.bom else b'') + text.encode(self.encoding)

    @cached_property
    def newline(self) -> str:
        """Its line end."""
        return self.tree.default_newline

    @cached_property
    def unit(self) -> str:
        """One level of its indentation."""
        return self.tree.default_indent

    @cached_property
    def _spans(self) -> Any:
        wrapper = MetadataWrapper(self.tree, unsafe_skip_copy=True)
        try:
            return wrapper.resolve(ByteSpanPositionProvider)
        except RecursionError:
            raise Unreadable(_TOO_DEEP) from None

    def walk(self, visitor: cst.CSTVisitor) -> None:
        """Show the whole tree to a visitor.

        Args:
            visitor: The visitor.

        Raises:
            Unreadable: The tree is too deep for that.
        """
        try:
            self.tree.visit(visitor)
        except RecursionError:
            raise Unreadable(_TOO_DEEP) from None

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Where a node begins and ends.

        Args:
            node: A node of `tree`.
        """
        span = self._spans[node]
        return span.start, span.start + span.length

    def slice(self, start: int, end: int) -> str:
        """The text between two offsets."""
        return self.utf8[start:end].decode()

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line, as the parser counts lines; and one of the end."""
        found = [0]
        found += [match.end() for match in re.finditer(rb'\r\n|\r|\n', self.utf8)]
        if found[-1] != len(self.utf8):
            found.append(len(self.utf8))
        return found

    def line(self, offset: int) -> int:
        """The line of an offset, counted from 1."""
        from bisect import bisect_right

        return bisect_right(self.starts, offset)

    def line_start(self, offset: int) -> int:
        """Where the line of an offset begins."""
        return self.starts[self.line(offset) - 1] if offset < self.starts[-1] else self.starts[-1]

    def line_end(self, offset: int) -> int:
        """Where the line of an offset ends, its line end not included."""
        line = self.line(offset) if offset < self.starts[-1] else len(self.starts) - 1
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.utf8)
        return start + len(self.utf8[start:end].rstrip(b'\r\n'))

    def indentation(self, offset: int) -> str:
        """What stands before an offset on its line, if that is blank; else the blank start of that line."""
        start = self.line_start(offset)
        before = self.slice(start, offset)
        return before[: len(before) - len(before.lstrip(' \t\f'))]

    def offset(self, line: int, column: int) -> int:
        """The offset of a position as `ast` has it.

        Args:
            line: Counted from 1.
            column: In UTF-8 bytes.
        """
        return self.starts[line - 1] + column

    @cached_property
    def inside_text(self) -> frozenset[int]:
        """Lines that begin inside a string: nothing may be added to them."""
        found: set[int] = set()
        deep: list[int] = []
        # f-strings are several tokens from Python 3.12 on.
        begin, end = getattr(tokenize, 'FSTRING_START', -1), getattr(tokenize, 'FSTRING_END', -1)
        t_begin, t_end = getattr(tokenize, 'TSTRING_START', -1), getattr(tokenize, 'TSTRING_END', -1)
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text, newline='').readline):
                if token.type == tokenize.STRING:
                    found.update(range(token.start[0] + 1, token.end[0] + 1))
                elif token.type in (begin, t_begin):
                    deep.append(token.start[0])
                elif token.type in (end, t_end) and deep:
                    found.update(range(deep.pop() + 1, token.end[0] + 1))
        except (tokenize.TokenError, SyntaxError, IndentationError):
            raise Unreadable('this cannot be split into tokens') from None
        return frozenset(found)


def read(path: str) -> Source:
    """Read a file.

    Args:
        path: Its path.

    Raises:
        Unreadable: It cannot be read, or is no Python source.
    """
    try:
        with open(path, 'rb') as file:
            return Source(path, file.read())
    except OSError as error:
        raise Unreadable(f'{error.strerror}') from None


def files(paths: list[str]) -> Iterator[str]:
    """The Python files at some paths: a file as it is named, a folder with all below it, hidden ones left out.

    Args:
        paths: Files and folders.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith('.') and name != '__pycache__')
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith('.py'))


def is_module(path: str, module: str) -> bool:
    """Whether a file is what a target calls by this name: a dotted module, or the path of a script or its end.

    Args:
        path: The file's path.
        module: The first half of a target.
    """
    parts = os.path.abspath(path).split(os.sep)
    if module.endswith('.py'):
        wanted = module.split('/')
        return parts[-len(wanted) :] == wanted
    wanted = module.split('.')
    last = parts[-1].removesuffix('.py')
    parts = parts[:-1] if last == '__init__' else [*parts[:-1], last]
    above = os.sep.join(parts[: -len(wanted)])
    # A package above would make its name a longer one.
    return parts[-len(wanted) :] == wanted and not os.path.isfile(os.path.join(above, '__init__.py'))


def module_of(path: str) -> str:
    """The name a file has as a module, by the packages it lies in.

    Args:
        path: The file's path.
    """
    folder, name = os.path.split(os.path.abspath(path))
    parts = [] if name == '__init__.py' else [name.removesuffix('.py')]
    while os.path.isfile(os.path.join(folder, '__init__.py')):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    return '.'.join(parts)


def dotted(node: cst.BaseExpression) -> str:
    """A name or a chain of attributes as text, '' for anything else.

    Args:
        node: The expression.
    """
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        inner = dotted(node.value)
        return f'{inner}.{node.attr.value}' if inner else ''
    return ''


def called(node: cst.BaseExpression) -> str:
    """The name of what a call calls, or of what is not called, as text."""
    return dotted(node.func if isinstance(node, cst.Call) else node)
