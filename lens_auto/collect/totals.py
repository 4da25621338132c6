# SPDX-License-Identifier: Apache-2.0
"""What a run came to, as rows: the summary draws them, run.json keeps them, launchers of one run add theirs up."""

from __future__ import annotations

from lens_auto.collect.distribution import KEPT, spread
from lens_auto.collect.rollcall import counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    R = TypeVar('R', bound='Row')

_NUMBERS = ('first', 'last', 'total')
# What processes count of each rule, in the order of their reports; a journal of an older version has fewer.
STATS = ('calls', 'spans', 'errors', 'ns', 'over_budget', 'unread', 'filtered')
_NAN = float('nan')


class Row:
    """Named values; a dataclass in all but the import, which costs a short run as much as Python's own start."""

    __slots__: tuple[str, ...] = ()

    def values(self) -> tuple[Any, ...]:
        """All values, in the order of their names."""
        return tuple([getattr(self, name) for name in self.__slots__])

    def plain(self) -> dict[str, Any]:
        """All values by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def filled(row: R, plain: Mapping[str, Any]) -> R:
    """The row with the values given; names of other versions are left out.

    Args:
        row: Changed.
        plain: Values by name.
    """
    for name in row.__slots__:
        if name in plain:
            setattr(row, name, plain[name])
    return row


def taken(row: R, values: tuple[Any, ...]) -> R:
    """The row with all its values, as `Row.values` gave them.

    Args:
        row: Changed.
        values: In the order of their names.
    """
    for name, item in zip(row.__slots__, values, strict=True):
        setattr(row, name, item)
    return row


class SpanRow(Row):
    """All spans of one name at one place of the tree; times in nanoseconds.

    `sample` holds order statistics of the durations, each standing for count / len(sample) of them.
    """

    __slots__ = (
        *('path', 'count', 'total', 'least', 'most', 'errors', 'truncated', 'bucket', 'group', 'linked', 'idle'),
        *('watched', 'sample', 'processes'),
    )

    def __init__(self, path: list[str] | None = None) -> None:
        self.path: list[str] = path or []
        self.count = self.total = self.least = self.most = 0
        self.errors = self.truncated = 0
        self.bucket = self.group = ''
        self.linked = False
        self.idle = self.watched = 0
        self.sample: list[int] = []
        self.processes: dict[str, list[int]] = {}


class MetricRow(Row):
    """One metric by name, over all label sets and processes of the launcher."""

    __slots__ = ('name', 'instrument', 'unit', 'count', 'first_ns', 'first', 'last_ns', 'last', 'total')

    def __init__(self, name: str = '', instrument: str = '', unit: str = '') -> None:
        self.name = name
        self.instrument = instrument
        self.unit = unit
        self.count = self.first_ns = self.last_ns = 0
        self.first = self.last = self.total = 0.0


class ProcessRow(Row):
    """One Python process of the run."""

    __slots__ = (
        *('host', 'pid', 'start', 'role', 'rank', 'python', 'command', 'outcome', 'reason', 'spans', 'points'),
        'alive',
    )

    def __init__(self, host: str = '', pid: int = 0, start: int = 0) -> None:
        self.host = host
        self.pid = pid
        self.start = start
        self.role = self.python = self.command = self.outcome = self.reason = ''
        self.rank: int | None = None
        self.spans = self.points = 0
        self.alive = False


class RuleRow(Row):
    """One rule: what it matched and what that cost; `on` is false when none of its groups was selected.

    Attributes:
        unread: Attributes that could not be read and were left out.
        filtered: Calls that the rule itself leaves out: outside `only_from`, no label or metric key it lists.
        missing: Why it matched nothing -> in how many processes.
        off: The setting that keeps it from recording, ''.
        labels: Labels it lists whose groups are selected.
        keys: Metric keys it lists; those that feed one metric together.
        seen: Those of them that occurred, None when no process told.
    """

    __slots__ = (
        *('key', 'kind', 'group', 'name', 'where', 'on', 'processes', 'calls', 'spans', 'errors', 'ns', 'over_budget'),
        *('unread', 'filtered', 'missing', 'faults', 'targets', 'off', 'labels', 'keys', 'seen'),
    )

    def __init__(
        self, key: str = '', kind: str = '', group: str = '', name: str = '', where: str = '', on: bool = True
    ) -> None:
        self.key = key
        self.kind = kind
        self.group = group
        self.name = name
        self.where = where
        self.on = on
        self.processes = self.calls = self.spans = self.errors = self.ns = self.over_budget = 0
        self.unread = self.filtered = 0
        self.missing: dict[str, int] = {}
        self.faults: dict[str, int] = {}
        self.targets: list[str] = []
        self.off = ''
        self.labels: list[str] = []
        self.keys: list[list[str]] = []
        self.seen: list[str] | None = None

    def saw(self, patterns: Iterable[str]) -> None:
        """Labels or metric keys that occurred.

        Args:
            patterns: As the rule lists them.
        """
        self.seen = list(dict.fromkeys([*(self.seen or ()), *patterns]))


class OpenRow(Row):
    """A span that had been open for a while when run.json was written."""

    __slots__ = ('name', 'process', 'since_ns')

    def __init__(self, name: str = '', process: str = '', since_ns: int = 0) -> None:
        self.name = name
        self.process = process
        self.since_ns = since_ns


class Totals(Row):
    """Everything one launcher knows of the run, or what several know together.

    Attributes:
        launcher: `<host>-<pid>-<start>` of the launcher.
        role: Label of this launcher's part ('rank 3'), '' when it is alone.
        creator: Whether it made the folder.
        complete: Nothing is left to read, and nothing unsent.
        last: No other launcher of the run is still at work.
        groups_off: Span groups that were not selected.
        named: Rule files that the user named for this run.
        counts: spans, points, logs, truncated, execs, damaged, foreign, overflowed, clock_step_ns, ...
        dropped: Reason -> records lost before they could be stored.
        unsent: spans and points no backend acknowledged; they are in the folder.
        faults: Where the agent failed -> how often.
        notes: What a user should know, one line each.
        roll_call: `workers` of Ray and other `processes`, each {seen, instrumented, not: [{reason, count}]}; `reach`,
            {workers, reason}, when the workers of a cluster could not be given our variables.
    """

    __slots__ = (
        *('launcher', 'run_id', 'trace_id', 'folder', 'host', 'role', 'creator', 'root_written', 'started_ns'),
        *('ended_ns', 'exit_code', 'signal', 'complete', 'last', 'command', 'settings', 'groups_off', 'spools'),
        *('processes', 'spans', 'metrics', 'rules', 'counts', 'dropped', 'unsent', 'faults', 'open', 'notes'),
        *('roll_call', 'named'),
    )

    def __init__(self, **given: Any) -> None:
        """A run of which nothing is known but what is given by name."""
        self.launcher = self.run_id = self.trace_id = self.folder = self.host = self.role = ''
        self.creator = self.last = True
        self.root_written = self.complete = False
        self.started_ns = self.ended_ns = 0
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.command: list[str] = []
        self.settings: dict[str, Any] = {}
        self.groups_off: list[str] = []
        self.spools: list[str] = []
        self.processes: list[ProcessRow] = []
        self.spans: list[SpanRow] = []
        self.metrics: list[MetricRow] = []
        self.rules: list[RuleRow] = []
        self.counts: dict[str, int] = {}
        self.dropped: dict[str, int] = {}
        self.unsent: dict[str, int] = {}
        self.faults: dict[str, int] = {}
        self.open: list[OpenRow] = []
        self.notes: list[str] = []
        self.roll_call: dict[str, Any] = {}
        self.named: list[str] = []
        for name, item in given.items():
            setattr(self, name, item)

    def to_json(self) -> dict[str, Any]:
        """Plain data for run.json."""
        plain = self.plain()
        for name in ROWS:
            plain[name] = [row.plain() for row in plain[name]]
        for row in plain['metrics']:
            for name in _NUMBERS:
                row[name] = _written(row[name])
        return plain

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> Totals:
        """Read what `to_json` gave; names of other versions are left out.

        Args:
            plain: Its answer.
        """
        totals = filled(Totals(), plain)
        for name, kind in ROWS.items():
            listed: list[Any] = plain.get(name) or []
            setattr(totals, name, [filled(kind(), item) for item in listed])
        for row in totals.metrics:
            for name in _NUMBERS:
                setattr(row, name, _read(getattr(row, name)))
        return totals


def _written(item: Any) -> Any:
    """A metric's value in JSON, which has no NaN (a loss may well be one); whatever it is, it costs nothing else."""
    if item.__class__ is not int or item.bit_length() > 64:
        item = _read(item)
    return item if item - item == 0 else str(item)


def _read(item: Any) -> float:
    try:
        return float(item)
    except (OverflowError, TypeError, ValueError):
        return _NAN


ROWS: dict[str, type[Row]] = {
    'processes': ProcessRow,
    'spans': SpanRow,
    'metrics': MetricRow,
    'rules': RuleRow,
    'open': OpenRow,
}


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
    reach = next((part.roll_call['reach'] for part in parts if part.roll_call.get('reach')), None)
    whole.roll_call = counts(whole.processes) | ({'reach': reach} if reach else {})
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
                mine.first_ns, mine.first = row.first_ns, _read(row.first)
            if not mine.count or row.last_ns >= mine.last_ns:
                mine.last_ns, mine.last = row.last_ns, _read(row.last)
            mine.count += row.count
            mine.total += _read(row.total)
    return list(merged.values())


def _merge_rules(parts: list[Totals]) -> list[RuleRow]:
    merged: dict[str, RuleRow] = {}
    for part in parts:
        for row in part.rules:
            mine = merged.setdefault(row.key, RuleRow(row.key, row.kind, row.group, row.name, row.where, row.on))
            for name in ('processes', *STATS):
                setattr(mine, name, getattr(mine, name) + getattr(row, name))
            mine.targets, mine.labels, mine.keys = row.targets, row.labels, row.keys
            mine.off = mine.off or row.off
            if row.seen is not None:
                mine.saw(row.seen)
            _sum(mine.missing, row.missing)
            _sum(mine.faults, row.faults)
    return list(merged.values())
