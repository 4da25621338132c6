# SPDX-License-Identifier: Apache-2.0
"""Why a rule recorded nothing, or not all it names: switched off, not matched, not called, or called in vain."""

from __future__ import annotations

import os

from lens_auto.collect import rollcall
from lens_auto.collect.figures import number, plural
from lens_auto.record.format import NOT_INSTALLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from lens_auto.collect.totals import RuleRow, Totals

_GIVEN = ('-c', '-')  # a program that is no file, as stage 1 names it
MOST = 6  # names in a line, and lines of a kind


def switched_off(kind: str, settings: Mapping[str, Any]) -> str:
    """The setting that keeps rules of a kind from recording, '' when none does.

    Args:
        kind: Of the rule.
        settings: Name -> [value, source].
    """
    names = ['enabled']
    if kind != 'resource':
        names.append('metrics_enabled' if kind in ('logger', 'metric') else 'traces_enabled')
    return next((f'{name}=false' for name in names if (settings.get(name) or (True,))[0] is False), '')


def strategy(totals: Totals) -> str:
    """Which ranks the settings let record, in a line; '' when it is all of them, or all processes recorded something.

    Args:
        totals: The run.
    """
    if all(row.spans or row.points for row in totals.processes if rollcall.took_part(row)):
        return ''

    def setting(name: str) -> Any:
        return (totals.settings.get(name) or (None,))[0]

    chosen = setting('export_strategy')
    if chosen == 'single_rank':
        rank = setting('export_rank')
        who = 'the last rank' if rank in (None, -1) else f'rank {rank}'
        return f'export_strategy single_rank: only {who} of each world records'
    if chosen == 'first_rank_per_node':
        return 'export_strategy first_rank_per_node: only the first rank of each node records'
    if chosen == 'sampled' or setting('sampler_enabled'):
        name = 'export_strategy sampled' if chosen == 'sampled' else 'sampler_enabled'
        return f'{name}: only one rank in {_one_in(setting("export_sample_rate"))} records'
    return ''


def _one_in(rate: Any) -> str:
    return f'{1 / rate:.3g}' if isinstance(rate, (int, float)) and rate > 0 else '(a rate of 0)'


def rules(totals: Totals, nothing: bool) -> list[str]:
    """What rules that are on did not record, and why, together where the reason is the same.

    A file none of whose modules was imported is about a framework this run does not use: told only when its user named
    it, or nothing was recorded at all. Of a file that matched, a module nobody imported is for another mode of the
    program; that it is not there, and not only not imported, is told in `missing`.

    Args:
        totals: The run.
        nothing: No span was recorded.
    """
    found = _Found()
    matched = {_file(row) for row in totals.rules if row.processes or row.calls or row.spans}
    used = matched | {_file(row) for row in totals.rules if _looked_for(row)}
    # A process that does not record by the settings, or could not, says nothing of what it imported.
    blind = bool(strategy(totals)) or not any(rollcall.took_part(row) for row in totals.processes)
    for row in totals.rules:
        if row.on and row.off and not row.spans:
            if nothing or _file(row) in used:
                found.add(f'off by {row.off}', row)
        elif row.on and (row.processes or row.calls):
            _matched(row, nothing, found, shares_its_targets(row, totals.rules))
        elif row.on and row.missing:
            if _file(row) in used or nothing or _file(row) in totals.named:
                found.add(f'matched nothing ({", ".join(row.missing)})', row)
        elif row.on and not blind:
            if _file(row) in used:
                if nothing or _file(row) not in matched:
                    found.add(f'matched nothing (no process {_took_up([row])})', row)
                    found.waiting.append(row)
            elif nothing or _file(row) in totals.named:
                found.strangers.setdefault(_file(row), []).append(row)
                found.waiting.append(row)
    lines = found.lines(20 if nothing else MOST)
    given = sum(row.command in _GIVEN and rollcall.took_part(row) for row in totals.processes)
    if given and any(name.endswith('.py') for name in _modules(found.waiting)):
        lines.append(f'{plural(given, "process")} ran what -c or standard input gave: no file, so no rule reaches it')
    return lines


def not_selected(totals: Totals) -> dict[str, list[str]]:
    """Rules that are off by their span group, by group; not those of frameworks that this run does not use.

    Args:
        totals: The run.
    """
    used = {_file(row) for row in totals.rules if row.processes or row.calls or _looked_for(row)} | set(totals.named)
    off: dict[str, list[str]] = {}
    for row in totals.rules:
        if not row.on and (_file(row) in used or not used):
            off.setdefault(row.group, []).append(name_of(row))
    return off


def _looked_for(row: RuleRow) -> bool:
    """Whether some target was not there though its framework is: a rule of NeMo-RL may be on a function of Ray."""
    return any(not reason.endswith(NOT_INSTALLED) for reason in row.missing)


class _Found:
    """Rules by what is to be said of them."""

    def __init__(self) -> None:
        self.uncalled: list[str] = []
        self.vain: list[str] = []
        self.together: dict[str, list[str]] = {}
        self.strangers: dict[str, list[RuleRow]] = {}
        self.waiting: list[RuleRow] = []  # for a module that nobody imported, a script that nobody ran

    def add(self, what: str, row: RuleRow) -> None:
        self.together.setdefault(what, []).append(name_of(row))

    def lines(self, most: int) -> list[str]:
        lines: list[str] = []
        if self.uncalled:
            lines.append(f'{plural(len(self.uncalled), "rule")} matched, but what they hook was never called:')
            lines += [f'  {name}' for name in self.uncalled[:MOST]]
        lines += self.vain[:most]
        lines += [f'{what}: {some([*dict.fromkeys(names)])}' for what, names in list(self.together.items())[:most]]
        if len(self.together) > most:
            lines.append(f'{len(self.together) - most} more reasons in run.json')
        for file, rows in list(self.strangers.items())[:most]:
            name = f'{os.path.basename(file)} ({plural(len(rows), "rule")})'
            lines.append(f'{name}: no process {_took_up(rows)}')
        return lines


def _matched(row: RuleRow, nothing: bool, found: _Found, shares: bool) -> None:
    if row.missing:
        # A timer that has lost its `with` form still makes spans, but not the ones it was written for.
        found.add(f'matched in part ({", ".join(row.missing)})', row)
    if row.kind in ('resource', 'annotate'):
        return  # it makes no spans; and it may well have nothing to say
    if nothing and not row.calls:
        found.uncalled.append(name_of(row))
    elif not shares and _in_vain(row, nothing):
        found.vain.append(
            f'{name_of(row)}: called {plural(row.calls, "time")}, none recorded: '
            f'outside only_from, or no listed label or metric key'
        )


def shares_its_targets(row: RuleRow, rows: Iterable[RuleRow]) -> bool:
    """Whether another rule that recorded something hooks the same: then what this one leaves out is that one's.

    Args:
        row: The rule.
        rows: All of them.
    """
    return any(
        other is not row and other.spans and other.kind == row.kind and set(other.targets) & set(row.targets)
        for other in rows
    )


def _in_vain(row: RuleRow, nothing: bool) -> bool:
    """Called and never recorded. A span still open when its process was killed counts as a call and no span."""
    return not row.spans and row.calls > row.over_budget and bool(row.filtered or nothing)


def never_seen(rows: Iterable[RuleRow]) -> list[str]:
    """Labels and metric keys of rules that were called, and never with these: renamed, most likely.

    Labels are told where the timer ran with one that is not listed, or with none that is; else the phases they stand
    for did not come up in this run.

    Args:
        rows: The rules.
    """
    found: list[str] = []
    rows = list(rows)
    for row in rows:
        if not row.on or row.off or not row.calls or row.seen is None:
            continue
        shares = shares_its_targets(row, rows)
        if (row.filtered and not shares) or not (shares or any(label in row.seen for label in row.labels)):
            found += [f'label {label} ({name_of(row)})' for label in row.labels if label not in row.seen]
        for keys in row.keys:
            # Keys that feed one metric are its names in several versions: one of them is enough.
            if not any(key in row.seen for key in keys):
                found.append(f'metric {" or ".join(keys)} ({name_of(row)})')
    return found


def groups_off(totals: Totals) -> list[str]:
    """The groups that were not selected; those of a framework this run does not use go without saying.

    Args:
        totals: The run.
    """
    used = {_file(row) for row in totals.rules if row.processes or row.calls or row.missing}
    of_used: set[str] = set()
    of_others: set[str] = set()
    for row in totals.rules:
        (of_used if _file(row) in used or not used else of_others).update(row.group.split(', '))
    return [group for group in totals.groups_off if group in of_used or group not in of_others]


def counted(rows: Iterable[RuleRow], figure: str) -> list[str]:
    """Rules for which a figure is not 0, with it.

    Args:
        rows: The rules.
        figure: Its name.
    """
    return [f'{name_of(row)} ({number(getattr(row, figure))})' for row in rows if getattr(row, figure)]


def left_out(totals: Totals) -> list[str]:
    """What rules that recorded did not: labels and keys that never came, calls over a budget, attributes not read.

    Args:
        totals: The run.
    """
    return [
        f'{head}: {some(names)}'
        for head, names in (
            ('never seen', never_seen(totals.rules)),
            ('calls over the budget of their rule, not recorded', counted(totals.rules, 'over_budget')),
            ('attributes left out', counted(totals.rules, 'unread')),
        )
        if names
    ]


def lost(totals: Totals) -> list[str]:
    """What was recorded, or meant to be, and is not there, and faults of our own.

    Args:
        totals: The run.
    """
    counts = totals.counts
    lines: list[str] = []
    if counts.get('no_room'):
        lines.append(f'the file system of the run folder was 90 % full: {plural(counts["no_room"], "write")} put off')
    lines += [f'{plural(records, "record")} dropped: {reason}' for reason, records in totals.dropped.items()]
    for name, noun, said in (
        ('not_numbers', 'metric point', 'left out: the value is no finite number'),
        ('overflowed', 'metric point', 'counted without labels: too many label sets'),
        ('not_printed', 'console line', 'could not be printed'),
        ('damaged', 'record', 'could not be read'),
    ):
        if counts.get(name):
            lines.append(f'{plural(counts[name], noun)} {said}')
    if counts.get('foreign') or counts.get('unreadable'):
        lines.append('journals of another version or user were left alone')
    for what, count in list(totals.faults.items())[:MOST]:
        lines.append(f'fault in lens-auto: {what}, {plural(count, "time")}')
    return lines


def name_of(row: RuleRow) -> str:
    """What a person calls a rule.

    Args:
        row: The rule.
    """
    return row.name or row.where or row.key


def some(names: list[str]) -> str:
    """The first names of a list.

    Args:
        names: All of them.
    """
    return ', '.join(names[:MOST]) + (f' and {len(names) - MOST} more' if len(names) > MOST else '')


def _took_up(rows: list[RuleRow]) -> str:
    """What no process did with what rules hook: a module is imported, a script run."""
    names = _modules(rows)
    scripts = [name for name in names if name.endswith('.py')]
    modules = [name for name in names if name not in scripts]
    done = [f'{verb} {some(those)}' for verb, those in (('imported', modules), ('ran', scripts)) if those]
    return ' or '.join(done)


def _modules(rows: list[RuleRow]) -> list[str]:
    """The modules that rules hook."""
    return list(dict.fromkeys(target.partition(':')[0] for row in rows for target in row.targets)) or ['its module']


def _file(row: RuleRow) -> str:
    return row.where.rpartition(':')[0]
