# SPDX-License-Identifier: Apache-2.0
"""The summary at the end of a run: where the time went, who was slow, what was off, and where the rest is."""

from __future__ import annotations

import os

from lens_auto.collect import reasons, rollcall, store
from lens_auto.collect.distribution import quantile
from lens_auto.collect.figures import number, percent, plural, time, value
from lens_auto.collect.look import Look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lens_auto.collect.totals import MetricRow, SpanRow, Totals

_METRICS = 8
_LONGEST = 5
_SLOWER = 1.05
_NAMES = 6
# What a person looks for first, among many metrics.
_FIRST = ('reward', 'loss', 'accuracy', 'acc', 'kl', 'entropy', 'score')


def render(totals: Totals, look: Look | None = None, going_on: bool = False) -> str:
    """The summary, with a line break at its end.

    Args:
        totals: The run.
        look: How to draw it.
        going_on: Its launcher is still at work (a replay that looks at it meanwhile).
    """
    look = look or Look()
    parts: list[Callable[[], list[str]]] = [lambda: _title(totals, look, going_on)]
    if totals.spans:
        from lens_auto.collect import table

        parts += [lambda: table.draw(totals.spans, look), lambda: _findings(totals, look)]
    else:
        parts += [lambda: _nothing(totals, look), lambda: _section('metrics', _metrics(totals.metrics, look), look)]
    parts += [lambda: _off(totals, look), lambda: _end(totals, look)]
    blocks = [_guarded(part) for part in parts]
    text = '\n\n'.join('\n'.join(block) for block in blocks if block) + '\n'
    if not look.unicode:
        text = text.replace('…', '...')
    try:
        text.encode('utf-8', 'surrogateescape')  # a folder's name may hold bytes that are no UTF-8
    except UnicodeEncodeError:
        text = text.encode('utf-8', 'backslashreplace').decode()
    return text


def _guarded(part: Callable[[], list[str]]) -> list[str]:
    """A part of the summary, or a line in its place: what cannot be drawn must not cost the rest."""
    try:
        return part()
    except Exception as error:
        return [f'(a part of the summary is missing: {type(error).__name__}; run.json has what it would have said)']


def render_part(totals: Totals) -> str:
    """One line for a launcher whose run goes on elsewhere; the last one draws the whole.

    Args:
        totals: The launcher's part.
    """
    who = totals.role or f'launcher {totals.launcher}'
    spans = totals.counts.get('spans', 0)
    return (
        f'lens-auto: {who} is done ({plural(spans, "span")}); the last launcher of the run draws the summary: '
        f'{_shown(totals.folder)}\n'
    )


def _title(totals: Totals, look: Look, going_on: bool) -> list[str]:
    words = [look.bold(f'lens-auto  run {totals.run_id}')]
    if totals.ended_ns:
        words.append(time(totals.ended_ns - totals.started_ns))
    if totals.signal is not None:
        words.append(f'killed by signal {totals.signal}')
    elif totals.exit_code is not None:
        words.append(f'exit {totals.exit_code}')
    elif not totals.ended_ns:
        words.append('still going on' if going_on else 'launcher was killed')
    return ['  '.join(words)]


def _findings(totals: Totals, look: Look) -> list[str]:
    lines: list[str] = []
    lines += _section('longest', _longest(totals.spans), look)
    lines += _section('metrics', _metrics(totals.metrics, look), look)
    return lines


def _longest(rows: list[SpanRow]) -> list[str]:
    """The process that was longest in each phase several processes have, widest gap first; a wait counts too."""
    found: list[tuple[float, str, str]] = []
    shared = False
    for row in rows:
        means = {label: spent / count for label, (count, spent) in row.processes.items() if count}
        if len(means) < 2 or row.total < 1_000_000:
            continue
        label = max(means, key=lambda one: (means[one], one))
        middle = quantile(sorted(means.values()), 0.5)
        ratio = means[label] / middle if middle else 1.0
        shared = True
        if ratio < _SLOWER:
            continue
        lost = (means[label] - middle) * row.processes[label][0]
        text = f'{label}: {time(means[label])} on average, {ratio:.2f} x the median of {len(means)} processes'
        found.append((lost, row.path[-1], text))
    if shared and not found:
        return [f'no process is more than {percent(_SLOWER - 1)} slower than the others in any phase']
    found.sort(key=lambda one: -one[0])
    wide = min(44, max((len(name) for _, name, _ in found[:_LONGEST]), default=0))
    lines = [f'{name.ljust(wide)}  {text}' for _, name, text in found[:_LONGEST]]
    return [*lines, 'waits for others included: lens-report says who is slow by itself'] if lines else []


def _metrics(rows: list[MetricRow], look: Look) -> list[str]:
    ranked = sorted(enumerate(rows), key=lambda one: (_rank(one[1].name), one[0]))
    shown = [row for _, row in ranked[:_METRICS]]
    wide = max((len(row.name) for row in shown), default=0)
    arrow = '→' if look.unicode else '->'
    lines: list[str] = []
    for row in shown:
        unit = f' {row.unit}' if row.unit and row.unit != '1' else ''
        if row.instrument == 'gauge':
            text = (
                f'{value(row.first)} {arrow} {value(row.last)}{unit}' if row.count > 1 else f'{value(row.last)}{unit}'
            )
        elif row.instrument == 'counter':
            text = f'{value(row.total)}{unit} in all'
        else:
            text = f'{value(row.total / max(1, row.count))}{unit} on average of {number(row.count)}'
        lines.append(f'{row.name.ljust(min(wide, 44))}  {text}')
    if len(rows) > len(shown):
        lines.append(f'{len(rows) - len(shown)} more in the run folder')
    return lines


def _rank(name: str) -> int:
    words = name.lower().replace('/', '.').replace('_', '.').split('.')
    return next((place for place, word in enumerate(_FIRST) if word in words), len(_FIRST))


def _nothing(totals: Totals, look: Look) -> list[str]:
    lines = [look.bold('0 spans recorded')]
    if all(row.outcome == rollcall.UNREPORTED for row in totals.processes):
        lines.append(
            '  no Python process of this run loaded the agent (another interpreter, -S, -E or -I, or no Python)'
        )
    for row in totals.processes[:_NAMES]:
        if row.outcome == 'stood_down' and row.role != rollcall.RAY:
            lines.append(f'  {row.command or "process"} {row.pid} stood down: {row.reason or "no reason given"}')
    lines += ['  ' + line for line in _switched_off(totals)]
    lines += ['  ' + line for line in reasons.rules(totals, nothing=True)]
    off = reasons.not_selected(totals)
    lines += [f'  not selected (span group {group}): {reasons.some(names)}' for group, names in off.items()]
    return [part for line in lines for part in _wrap(line, look.width)]


def _switched_off(totals: Totals) -> list[str]:
    """Why whole processes recorded nothing."""
    if not totals.rules:
        return [
            'no rule file is active: neither lens.yaml beside the script or in the working directory, '
            'nor --rules, LENS_RULES or an installed package names any rule; see docs/writing_rules.md'
        ]
    lines: list[str] = []
    for name in ('enabled', 'traces_enabled'):
        item, source = totals.settings.get(name) or (True, '')
        if item is False:
            lines.append(f'{name} is off: {source}')
    limited = reasons.strategy(totals)
    return [*lines, limited] if limited else lines


_CUT = {
    'truncated': 'cut short by the end of their process',
    'execs': 'ended by an exec: the process went on as another program',
}


def _cut(totals: Totals) -> list[str]:
    return [
        f'{plural(totals.counts[counted], "span")} {said}'
        for counted, said in _CUT.items()
        if totals.counts.get(counted)
    ]


def _off(totals: Totals, look: Look) -> list[str]:
    lines: list[str] = []
    groups = reasons.groups_off(totals)
    if groups:
        lines.append('span groups not selected: ' + ', '.join(groups))
    if totals.spans:
        limited = reasons.strategy(totals)
        lines += [limited] if limited else []
        lines += reasons.rules(totals, nothing=False)
    lines += [*reasons.left_out(totals), *_cut(totals), *reasons.lost(totals)]
    return _section('off', lines, look)


def _end(totals: Totals, look: Look) -> list[str]:
    spans, points = totals.counts.get('spans', 0), totals.counts.get('points', 0)
    recorded = sum(1 for row in totals.processes if row.spans)
    took_part = sum(1 for row in totals.processes if rollcall.took_part(row))
    told = (rollcall.RAY, rollcall.WORKER)  # Ray's helpers are no part of the run; workers have a line of their own
    down = [row for row in totals.processes if row.outcome == 'stood_down' and row.role not in told]
    text = f'{plural(spans, "span")} from {recorded} of {plural(took_part, "process")}'
    if down:
        why = list(dict.fromkeys(row.reason or 'no reason given' for row in down))
        text += f' ({len(down)} stood down: {reasons.some(why)})'
    if points:
        text += f', {plural(points, "metric point")}'
    lines = _wrap(text, look.width)
    for line in _roll_call(totals):
        lines += _wrap(line, look.width)
    if totals.dropped.get(store.FULL):
        lost = plural(totals.dropped[store.FULL], 'record')
        lines.append(look.bold(f'{lost} lost: {store.FULL}; select fewer span groups, or fewer ranks'))
    unsent = [plural(count, name.removesuffix('s')) for name, count in sorted(totals.unsent.items(), reverse=True)]
    if unsent:
        lines.append(look.bold(f'not sent: {" and ".join(unsent)}; kept in the folder, from where --replay sends'))
    for note in totals.notes:
        lines += _wrap(note, look.width)
    if not totals.complete and not unsent:
        lines.append('the run is not complete: lens-instrument --replay ' + _shown(totals.folder))
    lines.append('folder  ' + _shown(totals.folder))
    return lines


def _roll_call(totals: Totals) -> list[str]:
    """How many of Ray's workers are instrumented, who of the others never reported, and why."""
    lines: list[str] = []
    workers: dict[str, Any] = totals.roll_call.get('workers', {})
    if workers.get('seen'):
        text = f'{workers["instrumented"]} of {plural(workers["seen"], "worker")} instrumented'
        lines.append('; '.join([text, *(f'{item["count"]}: {item["reason"]}' for item in workers['not'][:_NAMES])]))
    silent: dict[str, int] = {}
    for row in totals.processes:
        if row.outcome == rollcall.UNREPORTED and row.role != rollcall.WORKER:
            silent[row.reason] = silent.get(row.reason, 0) + 1
    if silent:
        text = f'{plural(sum(silent.values()), "Python process")} never reported'
        lines.append('; '.join([text, *(f'{count}: {why}' for why, count in list(silent.items())[:_NAMES])]))
    reach = totals.roll_call.get('reach')
    if reach:
        lines.append(f'workers of the cluster are not instrumented: {reach.get("reason") or "no reason given"}')
    return lines


def _shown(folder: str) -> str:
    here = os.getcwd() + os.sep
    return folder.removeprefix(here)


def _section(head: str, lines: list[str], look: Look) -> list[str]:
    wrapped: list[str] = []
    for line in lines:
        wrapped += _wrap(line, look.width - 10)
    return [look.dim((head if not place else '').ljust(10)) + line for place, line in enumerate(wrapped)]


def _wrap(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    lines: list[str] = []
    while len(text) > width:
        place = text.rfind(' ', 0, width)
        place = place if place > width // 3 else width
        lines.append(text[:place].rstrip())
        text = '  ' + text[place:].lstrip()
    return [*lines, text]
