# SPDX-License-Identifier: Apache-2.0
"""The summary at the end of a run: where the time went, who was slow, what was off, and where the rest is."""

from __future__ import annotations

import os

from lens_auto.collect.distribution import quantile
from lens_auto.collect.figures import number, percent, plural, time, value
from lens_auto.collect.look import Look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.collect.totals import MetricRow, RuleRow, SpanRow, Totals

_METRICS = 8
_SLOWEST = 5
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
    blocks = [_title(totals, look, going_on)]
    if totals.spans:
        from lens_auto.collect import table

        blocks += [table.draw(totals.spans, look), _findings(totals, look)]
    else:
        blocks.append(_nothing(totals, look))
    blocks += [_off(totals, look), _end(totals, look)]
    return '\n\n'.join('\n'.join(block) for block in blocks if block) + '\n'


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
    lines += _section('slowest', _slowest(totals.spans), look)
    lines += _section('metrics', _metrics(totals.metrics, look), look)
    return lines


def _slowest(rows: list[SpanRow]) -> list[str]:
    """The process that was slowest in each phase several processes have, widest gap first."""
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
    wide = min(44, max((len(name) for _, name, _ in found[:_SLOWEST]), default=0))
    return [f'{name.ljust(wide)}  {text}' for _, name, text in found[:_SLOWEST]]


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
    if not totals.processes:
        lines.append(
            '  no Python process of this run loaded the agent (another interpreter, -S, -E or -I, or no Python)'
        )
    for row in totals.processes[:_NAMES]:
        if row.outcome == 'stood_down':
            lines.append(f'  {row.command or "process"} {row.pid} stood down: {row.reason or "no reason given"}')
    lines += ['  ' + line for line in _switched_off(totals)]
    matched = [row for row in totals.rules if row.processes]
    if matched:
        lines.append(f'  {plural(len(matched), "rule")} matched, but what they hook was never called:')
        lines += [f'    {_rule(row)}' for row in matched[:_NAMES]]
    lines += ['  ' + line for line in _unmatched(totals.rules, 20, unused=True)]
    off: dict[str, list[str]] = {}
    for row in totals.rules:
        if not row.on:
            off.setdefault(row.group, []).append(_rule(row))
    lines += [f'  not selected (span group {group}): {_some(names)}' for group, names in off.items()]
    return [part for line in lines for part in _wrap(line, look.width)]


def _switched_off(totals: Totals) -> list[str]:
    """Why whole processes recorded nothing."""
    if not totals.rules:
        return [
            'no rule file is active: neither lens.yaml beside the script or in the working directory, '
            'nor --rules, LENS_RULES or an installed package names any rule; see docs/writing_rules.md'
        ]
    lines: list[str] = []
    for name in ('enabled', 'traces_enabled', 'export_strategy'):
        item, source = totals.settings.get(name) or (True, '')
        if item is False:
            lines.append(f'{name} is off: {source}')
        elif name == 'export_strategy' and item not in (True, 'all_ranks'):
            lines.append(f'only the ranks of export_strategy {item} record: {source}')
    return lines


def _off(totals: Totals, look: Look) -> list[str]:
    lines: list[str] = []
    if totals.groups_off:
        lines.append('span groups not selected: ' + ', '.join(totals.groups_off))
    if totals.spans:
        lines += _unmatched(totals.rules, _NAMES)
    over = [row for row in totals.rules if row.over_budget]
    if over:
        names = ', '.join(f'{_rule(row)} ({number(row.over_budget)})' for row in over[:_NAMES])
        lines.append(f'calls over the budget of their rule, not recorded: {names}')
    cut = totals.counts.get('truncated', 0)
    if cut:
        lines.append(f'{plural(cut, "span")} cut short by the end of their process')
    for reason, records in totals.dropped.items():
        lines.append(f'{plural(records, "record")} dropped: {reason}')
    if totals.counts.get('overflowed'):
        lines.append(
            f'{plural(totals.counts["overflowed"], "metric point")} counted without labels: too many label sets'
        )
    if totals.counts.get('damaged'):
        lines.append(f'{plural(totals.counts["damaged"], "record")} could not be read')
    if totals.counts.get('foreign') or totals.counts.get('unreadable'):
        lines.append('journals of another version or user were left alone')
    for what, count in list(totals.faults.items())[:_NAMES]:
        lines.append(f'fault in lens-auto: {what}, {plural(count, "time")}')
    return _section('off', lines, look)


def _unmatched(rules: list[RuleRow], most: int, unused: bool = False) -> list[str]:
    """Rules that are on and did not find all they name, together where the reason is the same.

    A file none of whose modules was imported is about a framework this run does not use: told only when asked.
    """
    used = {_file(row) for row in rules if row.processes or row.calls or row.missing}
    by_reason: dict[str, list[str]] = {}
    idle: dict[str, list[RuleRow]] = {}
    for row in rules:
        if not row.on:
            continue
        if row.processes or row.calls:
            if row.missing:
                # A timer that has lost its `with` form still makes spans, but not the ones it was written for.
                by_reason.setdefault(f'in part ({", ".join(row.missing)})', []).append(_rule(row))
        elif _file(row) in used:
            reason = ', '.join(row.missing) or f'no process imported {_some(_modules([row]))}'
            by_reason.setdefault(f'nothing ({reason})', []).append(_rule(row))
        else:
            idle.setdefault(_file(row), []).append(row)
    lines = [f'matched {what}: {_some(names)}' for what, names in list(by_reason.items())[:most]]
    if len(by_reason) > most:
        lines.append(f'{len(by_reason) - most} more reasons in run.json')
    if unused:
        for file, rows in list(idle.items())[:most]:
            name = f'{os.path.basename(file)} ({plural(len(rows), "rule")})'
            lines.append(f'{name}: no process imported {_some(_modules(rows))}')
    return lines


def _modules(rows: list[RuleRow]) -> list[str]:
    """The modules that rules hook."""
    return list(dict.fromkeys(target.partition(':')[0] for row in rows for target in row.targets)) or ['its module']


def _some(names: list[str]) -> str:
    return ', '.join(names[:_NAMES]) + (f' and {len(names) - _NAMES} more' if len(names) > _NAMES else '')


def _file(row: RuleRow) -> str:
    return row.where.rpartition(':')[0]


def _rule(row: RuleRow) -> str:
    return row.name or row.where or row.key


def _end(totals: Totals, look: Look) -> list[str]:
    spans, points = totals.counts.get('spans', 0), totals.counts.get('points', 0)
    recorded = sum(1 for row in totals.processes if row.spans)
    armed = sum(1 for row in totals.processes if row.outcome != 'stood_down')
    text = f'{plural(spans, "span")} from {recorded} of {plural(armed, "process")}'
    if points:
        text += f', {plural(points, "metric point")}'
    lines = [text]
    unsent = [plural(count, name.removesuffix('s')) for name, count in sorted(totals.unsent.items(), reverse=True)]
    if unsent:
        lines.append(look.bold(f'not sent: {" and ".join(unsent)}; kept in the folder, from where --replay sends'))
    for note in totals.notes:
        lines += _wrap(note, look.width)
    if not totals.complete and not unsent:
        lines.append('the run is not complete: lens-instrument --replay ' + _shown(totals.folder))
    lines.append('folder  ' + _shown(totals.folder))
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
