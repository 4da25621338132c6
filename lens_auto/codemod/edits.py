# SPDX-License-Identifier: Apache-2.0
"""Insertions into a text, and lines pushed in by one level: all that the codemod does to a file."""

from __future__ import annotations

from typing import NamedTuple

from lens_auto.codemod.source import Source


class Shift(NamedTuple):
    """Lines that are pushed in by one level.

    Attributes:
        start: Offset of the first of them.
        end: Offset behind the last of them.
        prefix: The indentation they share; the level goes behind it. A line without it (a comment further out, the
            inside of parentheses) stays as it is.
    """

    start: int
    end: int
    prefix: str


class Insert(NamedTuple):
    """A text that is put in.

    Attributes:
        offset: Where.
        text: The text.
        order: Which of several texts at one place comes first.
        whole: Whether it is whole lines, put in at the start of a line.
        header: The shift that the text is the header of: it is not pushed in by that one.
        anchor: Where the code is that it belongs to, if elsewhere: what is pushed in with it.
    """

    offset: int
    text: str
    order: tuple[int, ...] = ()
    whole: bool = False
    header: Shift | None = None
    anchor: int | None = None


def render(source: Source, inserts: list[Insert], shifts: list[Shift]) -> str:
    """The text with everything put in.

    Args:
        source: The file.
        inserts: What to put in.
        shifts: What to push in.
    """
    # Whole lines, then what the line is pushed in by, then what comes into the line.
    pieces = [(each.offset, 0 if each.whole else 2, each.order, _pushed(source, each, shifts)) for each in inserts]
    pieces += [(offset, 1, (), source.unit) for shift in shifts for offset in _lines(source, shift)]
    pieces.sort(key=lambda piece: piece[:3])
    found: list[bytes] = []
    at = 0
    for offset, _, _, text in pieces:
        found += [source.utf8[at:offset], text.encode()]
        at = offset
    return b''.join([*found, source.utf8[at:]]).decode()


def pushable(source: Source, start: int, end: int) -> list[int]:
    """The offsets of lines in a range that may be changed at their start: not blank, and not inside a string.

    Args:
        source: The file.
        start: Where the range begins.
        end: Where it ends.
    """
    first, last = source.line(start), source.line(max(start, end - 1))
    inside = source.inside_text
    lines = [number for number in range(first, last + 1) if number not in inside]
    offsets = [source.starts[number - 1] for number in lines if start <= source.starts[number - 1] < end]
    return [offset for offset in offsets if source.utf8[offset : offset + 4096].partition(b'\n')[0].strip()]


def _lines(source: Source, shift: Shift) -> list[int]:
    prefix = shift.prefix.encode()
    return [
        offset + len(prefix)
        for offset in pushable(source, shift.start, shift.end)
        if source.utf8.startswith(prefix, offset)
    ]


def _pushed(source: Source, insert: Insert, shifts: list[Shift]) -> str:
    """A text as it looks where the lines around it are pushed in."""
    anchor = insert.offset if insert.anchor is None else insert.anchor
    around = [shift for shift in shifts if shift.start <= anchor < shift.end]
    if insert.header is not None:
        # Of several rules for one loop the first is outermost.
        around = [s for s in around if s.start < insert.header.start or shifts.index(s) < shifts.index(insert.header)]
    if not around or '\n' not in insert.text:
        return insert.text
    lines = insert.text.split('\n')
    for shift in sorted(around, key=lambda shift: -len(shift.prefix)):
        for number, line in enumerate(lines):
            if (number or insert.whole) and line.startswith(shift.prefix):
                lines[number] = shift.prefix + source.unit + line[len(shift.prefix) :]
    return '\n'.join(lines)
