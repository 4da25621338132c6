# SPDX-License-Identifier: Apache-2.0
"""Draws what was measured: metrics with their course, requests to engines by what they waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group
from rich.text import Text

from lens_auto.collect.figures import number, percent, time, value
from lens_auto.report.tables import INDENT, NARROWEST, is_unicode, row, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from lens_auto.report.folder import Run
    from lens_auto.report.metrics import Metric
    from lens_auto.report.requests import Requests

_WIDE = 96  # columns from which on there is room for more than means
_ENGINES = 9  # rows of the table of requests
_COURSE, _SHORTEST = 24, 6  # bars of a course
_SPARKS = '▁▂▃▄▅▆▇█'
_ASCII_SPARKS = '_.-=+*#@'


def request_table(found: Sequence[Requests], run: Run, out: Console) -> RenderableType:
    """What requests to engines waited for.

    Args:
        found: All together first, and each engine's if there are several.
        run: Their run.
        out: Where it goes.
    """
    bar, text = Text(), Text()
    marks = '░▓█' if is_unicode(out) else '.x#'
    for (name, share), mark, colour in zip(found[0].shares.items(), marks, ('yellow', 'cyan', 'green'), strict=True):
        bar.append(mark * round(50 * share), style=colour)
        text.append(f'{mark} {name} {percent(share)}   ', style=colour)
    tails = out.width >= _WIDE
    heads = ('first token', 'p95', 'a token', 'p95') if tails else ('first token', 'a token')
    made = table('of', 'requests', 'mean', 'queue', 'prefill', 'decode', *heads)
    for one in found[:_ENGINES]:
        times = (one.first, one.first_p95, one.token, one.token_p95) if tails else (one.first, one.token)
        row(
            made,
            'all' if one.process is None else run.store.processes[one.process].label,
            number(one.count),
            time(one.mean),
            *(percent(share) for share in one.shares.values()),
            *('' if each is None else time(each) for each in times),
        )
    return Group(bar, text, made)


def spark(values: Sequence[float], width: int, unicode: bool) -> str:
    """A row of bars.

    Args:
        values: The figures.
        width: Bars at most.
        unicode: Else in ASCII.
    """
    finite = [one for one in values if one - one == 0]
    if len(finite) < 2:
        return ''
    size = len(values)
    width = min(width, size)
    low, high = min(finite), max(finite)
    bars = _SPARKS if unicode else _ASCII_SPARKS
    drawn = ''
    for place in range(width):
        part = [one for one in values[place * size // width : (place + 1) * size // width] if one - one == 0]
        if not part:
            drawn += ' '
            continue
        mean = sum(part) / len(part)
        level = (mean - low) / (high - low) if high - low > 0 else 0.5
        drawn += bars[max(0, min(len(bars) - 1, int(level * len(bars))))] if level - level == 0 else ' '
    return drawn


def metric_table(found: Sequence[Metric], out: Console, most: int | None = None) -> RenderableType:
    """Metrics with their course.

    Args:
        found: The metrics.
        out: Where it goes.
        most: How many.
    """
    shown = found[:most]
    longest = max((cell_len(one.name) for one in shown), default=0)
    heads: tuple[str, ...] = ('first', 'last', 'best', 'lowest', 'highest', 'points')
    rows = [_figures(one) for one in shown]
    # Names and figures come first; the course takes the room they leave, and the bounds give way to names.
    room = _left(out, heads, rows)
    if most is not None or room < longest:
        heads, rows = (*heads[:3], heads[-1]), [[*each[:3], each[-1]] for each in rows]
        room = _left(out, heads, rows)
    course = min(_COURSE, room - longest - 2)
    if course < _SHORTEST:
        course = 0
    made = table('metric', *(('course',) if course else ()), *heads, left=2 if course else 1)
    wide = is_unicode(out)
    for one, figures in zip(shown, rows, strict=True):
        drawn = [Text(spark(one.values.tolist(), course, wide), style='cyan')] if course else []
        row(made, _end_of(one.name, max(room, NARROWEST), wide), *drawn, *figures)
    if most is not None and len(found) > most:
        return Group(made, Text(f'{len(found) - most} more: lens-report metrics', style='dim'))
    return made


def _figures(one: Metric) -> list[str]:
    # An annotation of UCUM (`{token}`) is no unit, and the name says what is counted.
    unit = '' if one.unit.startswith('{') and one.unit.endswith('}') else one.unit.strip('{').replace('}', '')
    last = value(one.last) + (f' {unit}' if unit and unit != '1' else '')
    best = value(one.best) if one.best is not None else ''
    return [value(one.first), last, best, value(one.lowest), value(one.highest), number(one.count)]


def _left(out: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Columns that a page has left for names beside these figures."""
    room = out.width - INDENT - 2 * len(heads)
    return room - sum(max(map(cell_len, column)) for column in zip(heads, *rows, strict=True))


def _end_of(name: str, width: int, unicode: bool) -> str:
    """A name that is too long without its beginning: the end is what tells it from its neighbours."""
    if cell_len(name) <= width:
        return name
    mark = '…' if unicode else '...'
    return mark + name[len(name) - width + len(mark) :]
