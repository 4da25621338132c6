# SPDX-License-Identifier: Apache-2.0
"""Draws the tables for a terminal with rich, or as plain text where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lens_auto.collect.figures import number, percent, time, value
from lens_auto.report.kinds import is_wait
from lens_auto.report.steps import OTHER
from lens_auto.report.tables import is_unicode
from lens_auto.report.tables import row as row_of
from lens_auto.report.tables import table as table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from lens_auto.report.differ import Change
    from lens_auto.report.folder import Run
    from lens_auto.report.goodput import Goodput
    from lens_auto.report.live import Stack
    from lens_auto.report.nested import Nested
    from lens_auto.report.phases import Phase
    from lens_auto.report.steps import Step
    from lens_auto.report.stragglers import Straggler
    from lens_auto.report.verdicts import Verdict
    from lens_auto.report.workers import Cell

_AT_ONCE = 1.05  # of the steps' time from which on spans overlap, rather than figures being inexact
_HEAT = ('', 'yellow', 'dark_orange', 'red')
_DEEPEST = 5
_SIBLINGS = 12
KIND_ORDER = (
    *('generation', 'training', 'logprob', 'reward', 'refit', 'wait', 'data', 'advantage', 'checkpoint'),
    *('evaluation', 'setup', OTHER),
)


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


def of_step(share: float) -> str:
    """A phase's time as part of the steps'; more than all of it is of spans that overlap, and said as how many do.

    Args:
        share: 1 is all.
    """
    return percent(share) if share < _AT_ONCE else f'{value(round(share, 1 if share < 10 else 0))} x'


def phase_table(found: Sequence[Phase], out: Console, everything: bool = False) -> RenderableType:
    """The tree of phases.

    Args:
        found: As `phases` gives them.
        out: Where it goes.
        everything: Also what is deep or of little weight.
    """
    table = table_of('span', 'count', 'total', 'own', 'mean', 'p50', 'p95', 'of step')
    wide = is_unicode(out)
    overlap: list[bool] = []

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
        row_of(
            table,
            label,
            number(one.count),
            time(one.total),
            time(one.own),
            time(one.mean) if many else '',
            time(one.p50) if many else '',
            time(one.p95) if many else '',
            of_step(one.share) if one.share is not None else '',
        )
        overlap.append((one.share or 0) >= _AT_ONCE)
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
            row_of(table, Text(f'{tail}{"└─" if wide else "`-"} {len(left)} more', style='dim'), '', time(spent))

    tops = [one for one in found if len(one.path) == 1 and one.name != 'lens.run']
    # The step is what people look for; what lies outside of it follows.
    for one in sorted(tops, key=lambda each: (each.group != 'step', -each.total))[: None if everything else 12]:
        add(one, '', '', 0)
    if any(overlap):
        said = 'x: spans that overlap; so many were open at once, on average over the steps'
        return Group(table, Text(said, style='dim'))
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
    table = table_of('process', 'phase', 'own time', 'peers', 'ratio', 'lost', 'of steps', left=2)
    for one in found[:8]:
        row_of(
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
    table = table_of('step', 'time', *columns, left=1)
    middle = sorted(one.duration for one in found)[len(found) // 2] if found else 0
    shown = found if most is None else found[:most]
    for one in shown:
        slow = one.duration > 1.5 * middle
        row_of(
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
    table = table_of('process', *heads)
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
        row_of(table, process.label, *texts)
    return Group(table, Text('! more than 5 %, !! 20 %, !!! 50 % above the median of the column', style='dim'))


def path_table(segments: Sequence[tuple[str, str, int]], total: int) -> Table:
    """The critical path, by name.

    Args:
        segments: As `by_name` gives them.
        total: The step's nanoseconds.
    """
    table = table_of('critical path', 'process', 'time', 'of step', left=2)
    for name, process, spent in segments[:15]:
        row_of(table, name, process, time(spent), percent(spent / max(1, total)))
    return table


def step_tree(found: Sequence[Nested], most: int = 200) -> Table:
    """The spans of one step as they nest, those on the critical path marked.

    Args:
        found: As `nested` gives them.
        most: Spans at most.
    """
    table = table_of('span', 'process', 'at', 'time', 'own', 'on path', left=2)
    for one in found[:most]:
        on_path = one.on_path is not None
        label = Text(('* ' if on_path else '  ') + '  ' * one.depth)
        label.append(one.name, style='bold' if on_path else '')
        row_of(
            table,
            label,
            one.process,
            '+' + time(max(0, one.at)),
            time(one.duration),
            time(one.own),
            time(one.on_path) if one.on_path is not None else '',
        )
    if len(found) > most:
        row_of(table, Text(f'... {number(len(found) - most)} more spans', style='dim'), '')
    return table


def change_table(found: Sequence[Change], names: tuple[str, str]) -> RenderableType:
    """Phase by phase, what became slower or faster, and whether that is more than noise.

    Args:
        found: The changes.
        names: Of the two runs.
    """
    table = table_of('phase', names[0][:16], names[1][:16], 'change', 'noise', '')
    styles = {'slower': 'red', 'faster': 'green'}
    for one in found:
        change = f'{one.change / 1e9:+.3g} s' if abs(one.change) >= 1e9 else f'{one.change / 1e6:+.3g} ms'
        part = f' ({100 * one.ratio:+.1f} %)' if one.before else ''
        row_of(
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
    table = table_of('process', 'open spans, outermost first', 'age', 'longest before', 'it', left=2)
    arrow = ' > '
    for one in found:
        names = [*one.names]
        if len(names) > 3:
            names = ['...', *names[-3:]]
        works = 'works' if one.alive else 'worked'
        mark = 'SUSPECT' if one.suspect else 'waits' if one.waits else works
        style = 'bold red' if one.suspect else ''
        row_of(
            table,
            Text(one.process, style=style),
            Text(arrow.join(names), style=style),
            ('< ' if one.estimated else '') + time(one.age),
            time(one.longest) if one.longest else '',
            Text(mark, style=style or ('dim' if one.waits else '')),
        )
    return table
