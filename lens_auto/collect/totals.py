# SPDX-License-Identifier: Apache-2.0
"""What a run came to, as rows: the summary draws them, run.json keeps them, launchers of one run add theirs up."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from lens_auto.collect.distribution import KEPT, spread

_NUMBERS = ('first', 'last', 'total')


@dataclass
class SpanRow:
    """All spans of one name at one place of the tree; times in nanoseconds."""

    path: list[str]
    count: int = 0
    total: int = 0
    least: int = 0
    most: int = 0
    errors: int = 0
    truncated: int = 0
    bucket: str = ''
    group: str = ''
    linked: bool = False
    idle: int = 0
    watched: int = 0
    # Order statistics of the durations, each standing for count / len(sample) of them.
    sample: list[int] = field(default_factory=list[int])
    processes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])


@dataclass
class MetricRow:
    """One metric by name, over all label sets and processes of the launcher."""

    name: str
    instrument: str
    unit: str
    count: int = 0
    first_ns: int = 0
    first: float = 0.0
    last_ns: int = 0
    last: float = 0.0
    total: float = 0.0


@dataclass
class ProcessRow:
    """One Python process of the run."""

    host: str
    pid: int
    start: int
    role: str = ''
    rank: int | None = None
    python: str = ''
    command: str = ''
    outcome: str = ''
    reason: str = ''
    spans: int = 0
    points: int = 0
    alive: bool = False


@dataclass
class RuleRow:
    """One rule: what it matched and what that cost; `on` is false when none of its groups was selected."""

    key: str
    kind: str = ''
    group: str = ''
    name: str = ''
    where: str = ''
    on: bool = True
    processes: int = 0
    calls: int = 0
    spans: int = 0
    errors: int = 0
    ns: int = 0
    over_budget: int = 0
    # Why it matched nothing -> in how many processes.
    missing: dict[str, int] = field(default_factory=dict[str, int])
    faults: dict[str, int] = field(default_factory=dict[str, int])


@dataclass
class OpenRow:
    """A span that had been open for a while when run.json was written."""

    name: str
    process: str
    since_ns: int


@dataclass
class Totals:
    """Everything one launcher knows of the run, or what several know together.

    Attributes:
        launcher: `<host>-<pid>-<start>` of the launcher.
        role: Label of this launcher's part ('rank 3'), '' when it is alone.
        creator: Whether it made the folder.
        complete: Nothing is left to read, and nothing unsent.
        last: No other launcher of the run is still at work.
        groups_off: Span groups that were not selected.
        counts: spans, points, logs, truncated, damaged, foreign, overflowed, clock_step_ns, ...
        dropped: Reason -> records lost before they could be stored.
        unsent: spans and points no backend acknowledged; they are in the folder.
        faults: Where the agent failed -> how often.
        notes: What a user should know, one line each.
    """

    launcher: str = ''
    run_id: str = ''
    trace_id: str = ''
    folder: str = ''
    host: str = ''
    role: str = ''
    creator: bool = True
    root_written: bool = False
    started_ns: int = 0
    ended_ns: int = 0
    exit_code: int | None = None
    signal: int | None = None
    complete: bool = False
    last: bool = True
    command: list[str] = field(default_factory=list[str])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    groups_off: list[str] = field(default_factory=list[str])
    spools: list[str] = field(default_factory=list[str])
    processes: list[ProcessRow] = field(default_factory=list[ProcessRow])
    spans: list[SpanRow] = field(default_factory=list[SpanRow])
    metrics: list[MetricRow] = field(default_factory=list[MetricRow])
    rules: list[RuleRow] = field(default_factory=list[RuleRow])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    unsent: dict[str, int] = field(default_factory=dict[str, int])
    faults: dict[str, int] = field(default_factory=dict[str, int])
    open: list[OpenRow] = field(default_factory=list[OpenRow])
    notes: list[str] = field(default_factory=list[str])

    def to_json(self) -> dict[str, Any]:
        """Plain data for run.json."""
        plain = asdict(self)
        for row in plain['metrics']:
            for name in _NUMBERS:
                # JSON has no NaN, and a loss may well be one.
                row[name] = row[name] if math.isfinite(row[name]) else str(row[name])
        return plain

    @staticmethod
    def from_json(plain: dict[str, Any]) -> Totals:
        """Read what `to_json` gave; names of other versions are left out.

        Args:
            plain: Its answer.
        """
        totals = Totals()
        rows = {'processes': ProcessRow, 'spans': SpanRow, 'metrics': MetricRow, 'rules': RuleRow, 'open': OpenRow}
        for one in fields(Totals):
            if one.name in rows:
                listed: list[Any] = plain.get(one.name) or []
                setattr(totals, one.name, [_row(rows[one.name], item) for item in listed])
            elif one.name in plain:
                setattr(totals, one.name, plain[one.name])
        return totals


def _row(kind: Any, plain: Any) -> Any:
    names = {one.name for one in fields(kind)}
    row = kind(**{name: item for name, item in plain.items() if name in names})
    if kind is MetricRow:
        for name in _NUMBERS:
            setattr(row, name, float(getattr(row, name)))
    return row


def merge(parts: list[Totals]) -> Totals:
    """The run as all its launchers saw it.

    Args:
        parts: At least one; the folder's creator lends its command and settings.
    """
    first = next((part for part in parts if part.creator), parts[0])
    whole = Totals.from_json(first.to_json())
    whole.role = first.role if len(parts) == 1 else ''
    whole.started_ns = min(part.started_ns for part in parts)
    whole.ended_ns = max(part.ended_ns for part in parts) if all(part.ended_ns for part in parts) else 0
    whole.complete = all(part.complete for part in parts)
    whole.root_written = any(part.root_written for part in parts)
    failed = next((part for part in parts if part.exit_code or part.signal), first)
    whole.exit_code, whole.signal = failed.exit_code, failed.signal
    whole.notes = list(dict.fromkeys(note for part in parts for note in part.notes))
    whole.spools = list(dict.fromkeys(spool for part in parts for spool in part.spools))
    whole.groups_off = list(dict.fromkeys(group for part in parts for group in part.groups_off))
    whole.processes = [row for part in parts for row in part.processes]
    whole.open = [row for part in parts for row in part.open]
    for name in ('counts', 'dropped', 'unsent', 'faults'):
        mine: dict[str, int] = {}
        for part in parts:
            _sum(mine, getattr(part, name))
        setattr(whole, name, mine)
    whole.spans = _merge_spans(parts)
    whole.metrics = _merge_metrics(parts)
    whole.rules = _merge_rules(parts)
    return whole


def _sum(mine: dict[str, int], theirs: dict[str, int]) -> None:
    for name, count in theirs.items():
        mine[name] = mine.get(name, 0) + count


def _merge_spans(parts: list[Totals]) -> list[SpanRow]:
    merged: dict[tuple[str, ...], SpanRow] = {}
    for part in parts:
        for row in part.spans:
            mine = merged.setdefault(tuple(row.path), SpanRow(row.path))
            mine.least = row.least if not mine.count else min(mine.least, row.least)
            mine.most = max(mine.most, row.most)
            mine.sample = _merge_samples(mine, row)
            mine.count += row.count
            mine.total += row.total
            mine.errors += row.errors
            mine.truncated += row.truncated
            mine.bucket = mine.bucket or row.bucket
            mine.group = mine.group or row.group
            mine.linked = mine.linked or row.linked
            mine.idle += row.idle
            mine.watched += row.watched
            for label, (count, spent) in row.processes.items():
                old = mine.processes.setdefault(label, [0, 0])
                old[0] += count
                old[1] += spent
    return list(merged.values())


def _merge_samples(mine: SpanRow, theirs: SpanRow) -> list[int]:
    if not mine.count or not theirs.count:
        return mine.sample or theirs.sample
    both = mine.count + theirs.count
    if both <= KEPT:
        return sorted(mine.sample + theirs.sample)
    share = max(1, round(KEPT * mine.count / both))
    return sorted(spread(mine.sample, share) + spread(theirs.sample, max(1, KEPT - share)))


def _merge_metrics(parts: list[Totals]) -> list[MetricRow]:
    merged: dict[tuple[str, str], MetricRow] = {}
    for part in parts:
        for row in part.metrics:
            mine = merged.setdefault((row.name, row.instrument), MetricRow(row.name, row.instrument, row.unit))
            if not mine.count or row.first_ns < mine.first_ns:
                mine.first_ns, mine.first = row.first_ns, row.first
            if not mine.count or row.last_ns >= mine.last_ns:
                mine.last_ns, mine.last = row.last_ns, row.last
            mine.count += row.count
            mine.total += row.total
    return list(merged.values())


def _merge_rules(parts: list[Totals]) -> list[RuleRow]:
    merged: dict[str, RuleRow] = {}
    for part in parts:
        for row in part.rules:
            mine = merged.setdefault(row.key, RuleRow(row.key, row.kind, row.group, row.name, row.where, row.on))
            for name in ('processes', 'calls', 'spans', 'errors', 'ns', 'over_budget'):
                setattr(mine, name, getattr(mine, name) + getattr(row, name))
            _sum(mine.missing, row.missing)
            _sum(mine.faults, row.faults)
    return list(merged.values())
