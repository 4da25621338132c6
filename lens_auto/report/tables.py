# SPDX-License-Identifier: Apache-2.0
"""The console that a report goes to, and what its pages are made of: tables, sections, sentences."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType, RenderResult
    from rich.table import Column

INDENT = 2
NARROWEST = 12  # columns that a name is left
_PLAIN_WIDTH = 110


class _Plain:
    """A stream without the blanks at the ends of lines, with which rich fills up columns."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._stream.write('\n'.join(line.rstrip(' ') for line in text.split('\n')))


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The reader has seen enough; rich itself would end the program with an error."""
        self.quiet = True
        raise BrokenPipeError


def console() -> Console:
    """A console for stdout: colours on a terminal alone, and none with NO_COLOR."""
    terminal = sys.stdout.isatty()
    file: Any = sys.stdout if terminal else _Plain(sys.stdout)
    width = None if terminal else int(os.environ.get('COLUMNS') or 0) or _PLAIN_WIDTH
    return _Console(file=file, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def is_unicode(out: Console) -> bool:
    """Whether the stream can show more than ASCII.

    Args:
        out: The console.
    """
    return (out.encoding or '').lower().replace('-', '') == 'utf8'


class _Table(Table):
    """A table that cuts names where the width does not suffice, and never figures."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        figures = [column for column in self.columns if column.justify == 'right']
        names = [column for column in self.columns if column.justify != 'right']
        room = options.max_width - 2 * (len(self.columns) - 1)
        room -= sum(_natural(column) for column in figures)
        widths = [_natural(column) for column in names]
        while sum(widths) > room and max(widths) > NARROWEST:
            widest = widths.index(max(widths))
            below = max([NARROWEST, *(width for width in widths if width < widths[widest])])
            widths[widest] = max(below, widths[widest] - (sum(widths) - room))
        for column, width in zip(names, widths, strict=True):
            column.max_width = width
        return super().__rich_console__(console, options)


def _natural(column: Column) -> int:
    return max((cell_len(str(cell)) for cell in (column.header, *column._cells)), default=0)  # pyright: ignore[reportPrivateUsage]


def table(*heads: str, left: int = 1) -> Table:
    """A table without lines.

    Args:
        heads: Of its columns.
        left: Columns that are text; the others are figures.
    """
    made = _Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style='dim')
    for place, head in enumerate(heads):
        justify = 'left' if place < left else 'right'
        made.add_column(head, justify=justify, overflow='ellipsis', no_wrap=True)
    return made


def row(table: Table, *cells: str | Text, style: str = '') -> None:
    """Add a row.

    Args:
        table: To it.
        cells: Texts, in which nothing is markup.
        style: Of the whole row.
    """
    table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in cells), style=style or None)


def section(head: str, body: RenderableType) -> RenderableType:
    """A part of a page, with its name.

    Args:
        head: Its name.
        body: What it holds.
    """
    return Group(Text(''), Text(head, style='bold'), Padding(body, (0, 0, 0, INDENT), expand=False))


def lines(texts: Iterable[str], style: str = '') -> RenderableType:
    """Sentences, one a line.

    Args:
        texts: The sentences.
        style: How to show them.
    """
    return Group(*(Text(text, style=style) for text in texts))
