# SPDX-License-Identifier: Apache-2.0
"""The commands of `lens-report`, one function each: load, make tables, show them or print them as JSON."""

from __future__ import annotations

import json
import math
import os
import sys
import time as clock
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from lens_auto.collect.figures import percent, plural, time
from lens_auto.report import show
from lens_auto.report.critical import by_name, critical_path
from lens_auto.report.differ import diff as compared
from lens_auto.report.facts import facts
from lens_auto.report.folder import NoRun, Run, find, load
from lens_auto.report.live import Stack, stacks
from lens_auto.report.metrics import metrics as all_metrics
from lens_auto.report.nested import nested
from lens_auto.report.phases import phases as all_phases
from lens_auto.report.requests import requests as all_requests
from lens_auto.report.show_metrics import metric_table, request_table, spark
from lens_auto.report.show_system import gpu_table, phase_table, process_table
from lens_auto.report.steps import steps as all_steps
from lens_auto.report.system import system as all_system
from lens_auto.report.tables import console, is_unicode, lines, section
from lens_auto.report.verdicts import verdicts
from lens_auto.report.warnings import warnings
from lens_auto.report.workers import workers as all_workers

if TYPE_CHECKING:
    from argparse import Namespace

    from lens_auto.report.steps import Step


def _load(options: Namespace, spans_only: bool = False) -> Run:
    return load(find(options.run, os.getcwd()), spans_only)


def _print_json(item: Any) -> int:
    json.dump(plain(item), sys.stdout, indent=1, allow_nan=False)
    sys.stdout.write('\n')
    return 0


def plain(item: Any) -> Any:
    """What JSON takes: dataclasses as objects with what they derive, arrays as lists, what is no finite number as null.

    Args:
        item: A table, or a part of one.
    """
    kind: Any = item.__class__
    if is_dataclass(kind):
        names = [one.name for one in fields(kind) if one.name != 'children']
        names += [name for name, one in vars(kind).items() if isinstance(one, property)]
        return {name: plain(getattr(item, name)) for name in names}
    if kind is dict:
        return {str(key): plain(one) for key, one in item.items()}
    if kind is list or kind is tuple:
        return [plain(one) for one in item]
    if kind.__module__ == 'numpy':
        return plain(item.tolist())
    return None if kind is float and not math.isfinite(item) else item


def _labelled(run: Run, rows: list[Any]) -> list[dict[str, Any]]:
    """Rows with the label of their process in place of its number."""
    found: list[dict[str, Any]] = []
    for row in rows:
        one: dict[str, Any] = plain(row)
        one['process'] = None if row.process is None else run.store.processes[int(row.process)].label
        found.append(one)
    return found


def overview(options: Namespace) -> int:
    """Everything at a glance, the verdict first."""
    run = _load(options)
    known = facts(run.store, run.tree)
    found, phase_rows = verdicts(known), all_phases(run.store, run.tree)
    measured, asked, said = all_metrics(run.store), all_requests(run.store), warnings(run)
    used = all_system(run.store, run.tree)
    if options.json:
        return _print_json(
            {
                'run': run.name,
                'live': run.live,
                'finished': run.finished,
                'spans': len(run.tree.rows),
                'verdicts': found,
                'shares': known.shares,
                'mean_step': known.mean_step,
                'phases': phase_rows,
                'goodput': known.goodput.seconds if known.goodput else {},
                'steps': [
                    {'number': one.number, 'duration': one.duration, 'cut_short': one.cut_short} for one in known.listed
                ],
                'stragglers': _labelled(run, known.slow),
                'requests': _labelled(run, asked),
                'system': used.phases,
                'metrics': [{**plain(one), 'times': None, 'values': None} for one in measured],
                'warnings': said,
            }
        )
    out = console()
    out.print(show.title(run))
    out.print()
    out.print(show.verdict_lines(found))
    if phase_rows:
        out.print(section('phases', show.phase_table(phase_rows, out)))
    if (
        known.goodput is not None
        and known.goodput.total
        and any(known.goodput.share(b) for b in ('productive', 'idle'))
    ):
        out.print(section('goodput of the steps', show.goodput_line(known.goodput, out)))
    if len(known.listed) > 1:
        out.print(section('steps', _course(known.listed, out)))
    if known.slow:
        out.print(section('slow by themselves', show.straggler_table(known.slow, run)))
    if asked:
        out.print(section('requests of the engines', request_table(asked, run, out)))
    if used.phases:
        out.print(section('system', phase_table(used.phases)))
    if measured:
        out.print(section('metrics', metric_table(measured, out, 8)))
    if said:
        out.print(section('to know', lines(said)))
    out.print()
    out.print(Text(f'read in {time(run.took * 1e9)}; more: {_MORE}', style='dim'))
    return 0


_MORE = 'lens-report steps, step N, workers, metrics, system, diff A B, why, top, html, export (--help)'


def _course(listed: list[Step], out: Any) -> Text:
    durations = [one.duration for one in listed]
    ordered = sorted(durations)
    line = Text(spark(durations, 60, is_unicode(out)), style='cyan')
    line.append(
        f'  {len(durations)} steps, {time(ordered[0])} to {time(ordered[-1])}, '
        f'median {time(ordered[len(ordered) // 2])}'
    )
    return line


def steps(options: Namespace) -> int:
    """Every step."""
    run = _load(options, spans_only=True)
    listed = all_steps(run.store, run.tree)
    if options.json:
        return _print_json(listed)
    out = console()
    out.print(show.title(run))
    if not listed:
        out.print('no span of group `step` was recorded')
        return 1
    out.print()
    out.print(show.step_table(listed, out))
    return 0


def step(options: Namespace) -> int:
    """One step."""
    run = _load(options, spans_only=True)
    listed = all_steps(run.store, run.tree)
    try:
        number = int(options.number)
    except ValueError:
        raise NoRun(f'`{options.number}` is no step number\n    as in: lens-report step 3 RUN') from None
    if not listed:
        print('lens-report: there is no step: no span of group `step` was recorded', file=sys.stderr)
        return 1
    # Of a step that was run twice (a restart from a checkpoint) the later one.
    chosen = listed[-1] if number == -1 else next((one for one in reversed(listed) if one.number == number), None)
    if chosen is None:
        first, last = min(one.number for one in listed), max(one.number for one in listed)
        print(f'lens-report: there is no step {number}; this run has {first} to {last}', file=sys.stderr)
        return 1
    path = critical_path(run.store, run.tree, chosen.row)
    held, inside = by_name(run.store, run.tree, path), nested(run, chosen.row, path)
    if options.json:
        return _print_json(
            {
                'step': chosen,
                'critical_path': [{'name': name, 'process': who, 'time': spent} for name, who, spent in held],
                'segments': [
                    {
                        'name': run.store.names[int(run.tree.rows['name'][one.row])],
                        'process': run.store.processes[int(run.tree.rows['process'][one.row])].label,
                        'start': one.start,
                        'end': one.end,
                    }
                    for one in path
                ],
                'spans': inside,
            }
        )
    out = console()
    out.print(show.title(run))
    split = ', '.join(f'{kind} {percent(spent / max(1, chosen.duration))}' for kind, spent in chosen.kinds.items())
    out.print(section(f'step {chosen.number}: {time(chosen.duration)}', lines([split])))
    out.print(section('what held it up', show.path_table(held, chosen.duration)))
    out.print(section('its spans (* on the critical path)', show.step_tree(inside)))
    return 0


def phases(options: Namespace) -> int:
    """All phases."""
    run = _load(options, spans_only=True)
    found = all_phases(run.store, run.tree)
    if options.json:
        return _print_json(found)
    out = console()
    out.print(show.title(run))
    out.print()
    out.print(show.phase_table(found, out, everything=True))
    return 0


def workers(options: Namespace) -> int:
    """Every process by every phase."""
    run = _load(options, spans_only=True)
    cells = all_workers(run.store, run.tree)
    slow = facts(run.store, run.tree).slow
    if options.json:
        return _print_json({'cells': _labelled(run, list(cells)), 'stragglers': _labelled(run, slow)})
    out = console()
    out.print(show.title(run))
    out.print(section('mean time of a span', show.worker_table(cells, run, out)))
    out.print(section('slow by themselves', show.straggler_table(slow, run)))
    return 0


def metrics(options: Namespace) -> int:
    """What the program logged."""
    run = _load(options)
    found = all_metrics(run.store)
    if options.json:
        return _print_json(found)
    out = console()
    out.print(show.title(run))
    out.print()
    out.print(metric_table(found, out) if found else 'no metric was recorded')
    return 0


def system(options: Namespace) -> int:
    """What the system said."""
    run = _load(options)
    found = all_system(run.store, run.tree)
    if options.json:
        listed = {'processes': _labelled(run, found.processes), 'gpus': _labelled(run, found.gpus)}
        return _print_json({'phases': found.phases, **listed})
    out = console()
    out.print(show.title(run))
    if not found.processes and not found.gpus:
        out.print('the system was not asked: `system_metrics` is off, or the run ended within a second')
        return 1
    if found.phases:
        out.print(section('by phase', phase_table(found.phases)))
    else:
        out.print('\nno kind of phase went on for three samples: they are too short for a table by phase')
    out.print(section('by process', process_table(found.processes, run)))
    if found.gpus:
        out.print(section('by GPU', gpu_table(found.gpus, run)))
    out.print(Text('cpu: 100 % is all CPUs that a process may use, of the node for `node cpu`', style='dim'))
    return 0


def diff(options: Namespace) -> int:
    """Two runs."""
    one, other = (load(find(name, os.getcwd())) for name in (options.before, options.after))
    found = compared(one, other)
    if options.json:
        return _print_json(found)
    out = console()
    out.print(show.title(one))
    out.print(show.title(other))
    if not found:
        out.print('neither has steps to compare')
        return 1
    out.print(section('per step', show.change_table(found, (f'A {one.name}', f'B {other.name}'))))
    word = Text('noise: two standard errors of the difference, from how steps of a run differ among themselves', 'dim')
    out.print(word)
    return 0


def why(options: Namespace) -> int:
    """What was open in each process when it died."""
    run = _load(options, spans_only=True)
    found = stacks(run, died=True)
    if options.json:
        return _print_json(found)
    out = console()
    out.print(show.title(run))
    totals = run.totals
    if totals is not None and (totals.signal is not None or totals.exit_code):
        cause = f'killed by signal {totals.signal}' if totals.signal is not None else f'exit code {totals.exit_code}'
        out.print(f'the command ended: {cause}')
    if not found:
        out.print('no span was open in a process that ended')
        return 0
    alive = any(one.alive for one in found)
    if alive:
        out.print('the run goes on: what is open now need not be what it will end in')
    said = 'open now, or when their process ended' if alive else 'open when their process ended'
    out.print(section(said, show.stack_table(found, out)))
    out.print(_named(found))
    return 0


def _named(found: list[Stack]) -> Text:
    """Who did not merely wait, in a sentence."""
    working = [one for one in found if one.suspect] or [one for one in found if not one.waits and len(one.names) > 1]
    if not working:
        return Text('\neverything that was open waited, or encloses what did', style='dim')
    one = working[0]
    usual = f'; before, it took {time(one.longest)} at most' if one.longest else ''
    age = f'for {time(one.age)}' if not one.estimated else f'for up to {time(one.age)}'
    said = f'\n{one.process} was in {one.names[-1]} {age}{usual}'
    return Text(f'{said}. Others waited.' if any(other.waits for other in found) else said, style='bold')


def top(options: Namespace) -> int:
    """What every process has open now."""
    path = find(options.run, os.getcwd())
    if options.json:
        return _print_json(stacks(load(path, spans_only=True)))
    out = console()
    if options.once or not out.is_terminal:
        out.print(_top(load(path, spans_only=True), out))
        return 0
    from rich.live import Live

    with Live(console=out, screen=True, auto_refresh=False) as screen:
        while True:
            run = load(path, spans_only=True)
            screen.update(_top(run, out), refresh=True)
            if not run.live:
                break
            # Reading a long run takes a while: look no more often than leaves most of a core to the run.
            clock.sleep(max(options.every, 3 * run.took))
    out.print(_top(run, out))
    return 0


def _top(run: Run, out: Any) -> Group:
    found = stacks(run)
    parts: list[Any] = [show.title(run)]
    ended = [one for one in all_steps(run.store, run.tree) if not one.cut_short]
    if ended:
        last = ended[-1]
        now = int(run.tree.rows['end'].max())
        parts.append(
            Text(
                f'{plural(len(ended), "step")}; the last one, {last.number}, took {time(last.duration)} and ended '
            ).append(f'{time(max(0, now - last.start - last.duration))} {"ago" if run.live else "before the run did"}')
        )
    if not run.live:
        parts.append(Text('no process of this run is alive: lens-report why says what they died in', style='yellow'))
    parts.append(section('open now', show.stack_table(found, out)))
    return Group(*parts)


def tail(options: Namespace) -> int:
    """Steps as they end."""
    path = find(options.run, os.getcwd())
    out = console()
    shown: set[int] = set()  # ids of spans: rows change from one look to the next
    while True:
        run = load(path, spans_only=True)
        for one in all_steps(run.store, run.tree):
            ident = int(run.tree.rows['id'][one.row])
            if one.cut_short or ident in shown:
                continue
            shown.add(ident)
            if options.json:
                print(json.dumps(plain(one), allow_nan=False), flush=True)
            else:
                out.print(_line(one))
        if options.once or not run.live:
            return 0
        clock.sleep(max(options.every, 3 * run.took))


def _line(one: Step) -> Text:
    split = '  '.join(
        f'{kind} {percent(spent / max(1, one.duration))}'
        for kind, spent in one.kinds.items()
        if spent >= 0.02 * one.duration
    )
    return Text(f'step {one.number:>5}  {time(one.duration):>8}  {split}')


def export(options: Namespace) -> int:
    """The run in other formats."""
    wanted = [name for name in ('perfetto', 'csv', 'parquet') if getattr(options, name)]
    if not wanted:
        raise NoRun(
            'nothing to export: --perfetto FILE, --csv FOLDER or --parquet FOLDER\n'
            '    to send a run to an OTLP backend: lens-instrument --replay RUN'
        )
    run = _load(options)
    from lens_auto.report import perfetto, spreadsheet

    try:
        if options.perfetto:
            events = perfetto.write(run, options.perfetto)
            print(f'{options.perfetto}: {events:,} events; open it at ui.perfetto.dev')
        if options.csv:
            print(f'{options.csv}: ' + ', '.join(spreadsheet.write_csv(run, options.csv)))
        if options.parquet:
            print(f'{options.parquet}: ' + ', '.join(spreadsheet.write_parquet(run, options.parquet)))
    except OSError as error:
        raise NoRun(f'{error.filename}: {error.strerror}') from None
    return 0


def html(options: Namespace) -> int:
    """The run as one page."""
    path = find(options.run, os.getcwd())
    run = load(path)
    from lens_auto.report import page

    text = page.render(run)
    if options.output == '-':
        sys.stdout.write(text)
        return 0
    output = options.output or (
        os.path.join(path, 'report.html') if os.path.isdir(path) else path.partition('.')[0] + '.html'
    )
    try:
        with open(output, 'w', encoding='utf-8') as file:
            file.write(text)
    except OSError as error:
        raise NoRun(f'{error.filename}: {error.strerror}') from None
    print(f'{output}: {len(text) / 1e6:.1f} MB, needs no network')
    return 0
