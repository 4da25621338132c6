# SPDX-License-Identifier: Apache-2.0
"""Draws the tables for a terminal with rich, or as plain text where there is none."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lens_auto.collect.figures import number, percent, time, value
from lens_auto.report.kinds import is_wait
from lens_auto.report.steps import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import ConsoleOptions, RenderableType, RenderResult
    from rich.table import Column

    from lens_auto.report.critical import Segment
    from lens_auto.report.differ import Change
    from lens_auto.report.folder import Run
    from lens_auto.report.goodput import Goodput
    from lens_auto.report.live import Stack
    from lens_auto.report.metrics import Metric
    from lens_auto.report.phases import Phase
    from lens_auto.report.steps import Step
    from lens_auto.report.stragglers import Straggler
    from lens_auto.report.verdicts import Verdict
    from lens_auto.report.workers import Cell

_PLAIN_WIDTH = 110
_NARROWEST = 12  # columns that a name is left
_SPARKS = '▁▂▃▄▅▆▇█'
_ASCII_SPARKS = '_.-=+*#@'
_HEAT = ('', 'yellow', 'dark_orange', 'red')
_DEEPEST = 5
_SIBLINGS = 12
KIND_ORDER = (
    *('generation', 'training', 'logprob', 'reward', 'refit', 'wait', 'data', 'advantage', 'checkpoint'),
    *('evaluation', 'setup', OTHER),
)


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
        while sum(widths) > room and max(widths) > _NARROWEST:
            widest = widths.index(max(widths))
            below = max([_NARROWEST, *(width for width in widths if width < widths[widest])])
            widths[widest] = max(below, widths[widest] - (sum(widths) - room))
        for column, width in zip(names, widths, strict=True):
            column.max_width = width
        return super().__rich_console__(console, options)


def _natural(column: Column) -> int:
    return max((cell_len(str(cell)) for cell in (column.header, *column._cells)), default=0)  # pyright: ignore[reportPrivateUsage]


def _table(*heads: str, left: int = 1) -> Table:
    """A table without lines; the first `left` columns are text, the others figures."""
    table = _Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style='dim')
    for place, head in enumerate(heads):
        justify = 'left' if place < left else 'right'
        table.add_column(head, justify=justify, overflow='ellipsis', no_wrap=True)
    return table


def _row(table: Table, *cells: str | Text, style: str = '') -> None:
    table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in cells), style=style or None)


def section(head: str, body: RenderableType) -> RenderableType:
    """A part of a page, with its name.

    Args:
        head: Its name.
        body: What it holds.
    """
    return Group(Text(''), Text(head, style='bold'), Padding(body, (0, 0, 0, 2), expand=False))


def lines(texts: Iterable[str], style: str = '') -> RenderableType:
    """Sentences, one a line.

    Args:
        texts: The sentences.
        style: How to show them.
    """
    return Group(*(Text(text, style=style) for text in texts))


def title(run: Run) -> Text:
    """What run it is, how long it took and how it ended.

    Args:
        run: The run.
    """
    words = [f'lens-report  {run.name}']
    totals, rows = run.totals, run.tree.rows
    if totals is not None and totals.ended_ns:
        words.append(time(totals.ended_ns - totals.started_ns))
    elif len(rows):
        words.append(time(float(rows['end'].max() - rows['start'].min())))
    if totals is not None and totals.signal is not None:
        words.append(f'killed by signal {totals.signal}')
    elif totals is not None and totals.exit_code is not None:
        words.append(f'exit {totals.exit_code}')
    elif run.live:
        words.append('live')
    elif totals is not None and not totals.ended_ns:
        words.append('ended without its launcher')
    spans = 'span' if len(rows) == 1 else 'spans'
    processes = sum(1 for one in run.store.processes if one.role != 'launcher')
    words.append(f'{number(len(rows))} {spans} of {number(processes)} process{"" if processes == 1 else "es"}')
    return Text('  '.join(words), style='bold')


def verdict_lines(found: Sequence[Verdict]) -> RenderableType:
    """The verdicts: what, why, and what to look at.

    Args:
        found: At least one.
    """
    parts: list[RenderableType] = []
    for place, one in enumerate(found):
        fine = one.name in ('healthy', 'no steps')
        head = Text()
        head.append(one.name if place == 0 else f'also {one.name}', style='bold green' if fine else 'bold red')
        head.append(f': {one.why}')
        parts.append(head)
        tail = Text(f'look at  {one.next}', style='dim')
        parts.append(Padding(tail, (0, 0, 0, 2), expand=False))
        if one.doubt:
            parts.append(Padding(Text(f'doubt    {one.doubt}', style='dim'), (0, 0, 0, 2), expand=False))
    return Group(*parts)


def phase_table(found: Sequence[Phase], out: Console, everything: bool = False) -> Table:
    """The tree of phases.

    Args:
        found: As `phases` gives them.
        out: Where it goes.
        everything: Also what is deep or of little weight.
    """
    table = _table('span', 'count', 'total', 'own', 'mean', 'p50', 'p95', 'of step')
    wide = is_unicode(out)

    def add(one: Phase, stem: str, tail: str, depth: int) -> None:
        marks = ''
        if one.errors:
            marks += f' ({number(one.errors)} failed)'
        if one.cut_short:
            marks += f' ({number(one.cut_short)} cut short)'
        if one.still_open:
            marks += f' ({number(one.still_open)} open)'
        many = one.count > 1
        label = Text(stem, style='dim')
        label.append(one.name, style='bold' if one.group == 'step' else '')
        label.append(marks, style='yellow')
        _row(
            table,
            label,
            number(one.count),
            time(one.total),
            time(one.own),
            time(one.mean) if many else '',
            time(one.p50) if many else '',
            time(one.p95) if many else '',
            percent(one.share) if one.share is not None else '',
        )
        children = one.children if everything else one.children[:_SIBLINGS]
        if not everything and depth >= _DEEPEST:
            children = []
        for place, child in enumerate(children):
            last = place == len(children) - 1 and len(children) == len(one.children)
            branch = ('└─ ' if last else '├─ ') if wide else ('`- ' if last else '|- ')
            trunk = '   ' if last else ('│  ' if wide else '|  ')
            add(child, tail + branch, tail + trunk, depth + 1)
        left = one.children[len(children) :]
        if left and depth < _DEEPEST:
            spent = sum(each.total for each in left)
            _row(table, Text(f'{tail}{"└─" if wide else "`-"} {len(left)} more', style='dim'), '', time(spent))

    tops = [one for one in found if len(one.path) == 1 and one.name != 'lens.run']
    # The step is what people look for; what lies outside of it follows.
    for one in sorted(tops, key=lambda each: (each.group != 'step', -each.total))[: None if everything else 12]:
        add(one, '', '', 0)
    return table


def goodput_line(found: Goodput, out: Console) -> RenderableType:
    """The account as a bar and its figures.

    Args:
        found: The account.
        out: Where it goes.
    """
    order = ('productive', 'overhead', 'idle', 'wasted', 'unaccounted')
    colours = {'productive': 'green', 'overhead': 'cyan', 'idle': 'yellow', 'wasted': 'red', 'unaccounted': 'dim'}
    marks = dict(zip(order, '█▓░▒·' if is_unicode(out) else '#=.x ', strict=True))
    bar, text = Text(), Text()
    for name in order:
        share = found.share(name)
        bar.append(marks[name] * round(50 * share), style=colours[name])
        if share >= 0.0005 or name == 'productive':
            text.append(f'{marks[name]} {name} {percent(share)}   ', style=colours[name])
    return Group(bar, text)


def straggler_table(found: Sequence[Straggler], run: Run) -> RenderableType:
    """Who was slow by itself.

    Args:
        found: The slow ones.
        run: Their run.
    """
    if not found:
        return Text('nobody: no process is slower than its peers by its own doing')
    table = _table('process', 'phase', 'own time', 'peers', 'ratio', 'lost', 'of steps', left=2)
    for one in found[:8]:
        _row(
            table,
            run.store.processes[one.process].label,
            one.name,
            time(one.mean),
            time(one.median),
            f'{one.ratio:.2f} x',
            time(one.lost),
            percent(one.share),
        )
    return table


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
    bounds = ('lowest', 'highest') if most is None else ()
    table = _table('metric', 'course', 'first', 'last', 'best', *bounds, 'points', left=2)
    wide = is_unicode(out)
    for one in found[:most]:
        unit = f' {one.unit}' if one.unit and one.unit != '1' else ''
        _row(
            table,
            one.name,
            Text(spark(one.values.tolist(), 24, wide), style='cyan'),
            value(one.first),
            value(one.last) + unit,
            value(one.best) if one.best is not None else '',
            *((value(one.lowest), value(one.highest)) if most is None else ()),
            number(one.count),
        )
    if most is not None and len(found) > most:
        return Group(table, Text(f'{len(found) - most} more: lens-report metrics', style='dim'))
    return table


def step_table(found: Sequence[Step], out: Console, most: int | None = None) -> RenderableType:
    """Every step with what it was spent on.

    Args:
        found: The steps.
        out: Where it goes.
        most: Those at most, the slowest of them marked.
    """
    total: dict[str, int] = {}
    for one in found:
        for kind, spent in one.kinds.items():
            total[kind] = total.get(kind, 0) + spent
    everything = sum(total.values()) or 1
    columns = [kind for kind in KIND_ORDER if total.get(kind, 0) >= 0.002 * everything][:8]
    table = _table('step', 'time', *columns, left=1)
    middle = sorted(one.duration for one in found)[len(found) // 2] if found else 0
    shown = found if most is None else found[:most]
    for one in shown:
        slow = one.duration > 1.5 * middle
        _row(
            table,
            f'{one.number}{" (open)" if one.cut_short else ""}',
            Text(time(one.duration) + (' !' if slow else ''), style='yellow' if slow else ''),
            *(time(one.kinds.get(kind, 0)) if one.kinds.get(kind) else '' for kind in columns),
        )
    return table


def worker_table(cells: Sequence[Cell], run: Run, out: Console) -> RenderableType:
    """Mean of every phase in every process; what is above the median of its column is marked, not by colour alone.

    Args:
        cells: All cells.
        run: The run.
        out: Where it goes; it has as many phases as fit, those with the most time in more than one process first.
    """
    by_name: dict[str, dict[int, Cell]] = {}
    for cell in cells:
        if not is_wait(cell.name) and cell.name != 'lens.run':
            by_name.setdefault(cell.name, {})[cell.process] = cell
    shared = sorted(by_name, key=lambda name: (len(by_name[name]) < 2, -sum(c.total for c in by_name[name].values())))
    columns: list[str] = []
    heads: list[str] = []
    room = out.width - 4 - max((cell_len(one.label) for one in run.store.processes), default=0)
    for name in shared:
        head = name.removeprefix('rl.').rpartition('.')[2] or name
        head = name if head in heads else head
        room -= max(10, cell_len(head)) + 2
        if room < 0 and columns:
            break
        columns.append(name)
        heads.append(head)
    table = _table('process', *heads)
    middles = {
        name: sorted(cell.mean for cell in by_name[name].values())[(len(by_name[name]) - 1) // 2] for name in columns
    }
    for number_, process in enumerate(run.store.processes):
        if process.role == 'launcher':
            continue
        texts: list[Text] = []
        for name in columns:
            cell = by_name[name].get(number_)
            if cell is None:
                texts.append(Text('', style='dim'))
                continue
            ratio = cell.mean / middles[name] if middles[name] and len(by_name[name]) > 1 else 1.0
            level = 3 if ratio > 1.5 else 2 if ratio > 1.2 else 1 if ratio > 1.05 else 0
            texts.append(Text(time(cell.mean) + ('!' * level).ljust(3), style=_HEAT[level]))
        _row(table, process.label, *texts)
    return Group(table, Text('! more than 5 %, !! 20 %, !!! 50 % above the median of the column', style='dim'))


def path_table(segments: Sequence[tuple[str, str, int]], total: int) -> Table:
    """The critical path, by name.

    Args:
        segments: As `by_name` gives them.
        total: The step's nanoseconds.
    """
    table = _table('critical path', 'process', 'time', 'of step', left=2)
    for name, process, spent in segments[:15]:
        _row(table, name, process, time(spent), percent(spent / max(1, total)))
    return table


def step_tree(run: Run, row: int, on_path: Sequence[Segment], out: Console, most: int = 200) -> Table:
    """The spans of one step as they nest, those on the critical path marked.

    Args:
        run: The run.
        row: The step.
        on_path: Its critical path.
        out: Where it goes.
        most: Spans at most.
    """
    tree, store = run.tree, run.store
    held: dict[int, int] = {}
    for one in on_path:
        held[one.row] = held.get(one.row, 0) + one.end - one.start
    table = _table('span', 'process', 'at', 'time', 'own', 'on path', left=2)
    children: dict[int, list[int]] = {}
    for child in (int(n) for n in (tree.step == row).nonzero()[0]):
        children.setdefault(int(tree.parent[child]), []).append(child)
    start = int(tree.rows['start'][row])
    left = [most]

    def add(span: int, depth: int) -> None:
        if left[0] <= 0:
            return
        left[0] -= 1
        star = '* ' if span in held else '  '
        label = Text(star + '  ' * depth)
        label.append(store.names[int(tree.rows['name'][span])], style='bold' if span in held else '')
        _row(
            table,
            label,
            store.processes[int(tree.rows['process'][span])].label,
            '+' + time(max(0, int(tree.rows['start'][span]) - start)),
            time(int(tree.duration[span])),
            time(int(tree.own[span])),
            time(held[span]) if span in held else '',
        )
        for child in children.get(span, ()):
            add(child, depth + 1)

    add(row, 0)
    if left[0] <= 0:
        _row(table, Text(f'... more than {most} spans', style='dim'), '')
    return table


def change_table(found: Sequence[Change], names: tuple[str, str]) -> RenderableType:
    """Phase by phase, what became slower or faster, and whether that is more than noise.

    Args:
        found: The changes.
        names: Of the two runs.
    """
    table = _table('phase', names[0][:16], names[1][:16], 'change', 'noise', '')
    styles = {'slower': 'red', 'faster': 'green'}
    for one in found:
        change = f'{one.change / 1e9:+.3g} s' if abs(one.change) >= 1e9 else f'{one.change / 1e6:+.3g} ms'
        part = f' ({100 * one.ratio:+.1f} %)' if one.before else ''
        _row(
            table,
            '  ' * (len(one.path) - 1) + one.path[-1],
            time(one.before),
            time(one.after),
            change + part,
            '±' + time(one.noise) if one.noise is not None else '',
            Text(one.word, style=styles.get(one.word, 'dim')),
        )
    return table


def stack_table(found: Sequence[Stack], out: Console) -> RenderableType:
    """What each process has open, and for how long.

    Args:
        found: The stacks.
        out: Where it goes.
    """
    if not found:
        return Text('no span is open')
    table = _table('process', 'open spans, outermost first', 'age', 'longest before', 'it', left=2)
    arrow = ' > '
    for one in found:
        names = [*one.names]
        if len(names) > 3:
            names = ['...', *names[-3:]]
        works = 'works' if one.alive else 'worked'
        mark = 'SUSPECT' if one.suspect else 'waits' if one.waits else works
        style = 'bold red' if one.suspect else ''
        _row(
            table,
            Text(one.process, style=style),
            Text(arrow.join(names), style=style),
            ('< ' if one.estimated else '') + time(one.age),
            time(one.longest) if one.longest else '',
            Text(mark, style=style or ('dim' if one.waits else '')),
        )
    return table
