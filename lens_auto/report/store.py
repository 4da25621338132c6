# SPDX-License-Identifier: Apache-2.0
"""A run in columns: a row of 48 bytes a span, every text once: 50 MB a million spans, and no Python object each."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import Any

from lens_auto.report.arrays import Rows, np
from lens_auto.report.distributions import Distribution

# One row: what `_ROW` packs, numpy reads back without a copy.
_ROW = Struct('<QQqqIIHBBi')
ROW = np.dtype(
    [
        ('id', '<u8'),
        ('parent', '<u8'),
        ('start', '<i8'),  # wall clock, nanoseconds
        ('end', '<i8'),
        ('name', '<u4'),
        ('process', '<u4'),
        ('group', '<u2'),
        ('bucket', 'u1'),
        ('flags', 'u1'),
        ('iteration', '<i4'),  # -1: none
    ]
)
ERROR, TRUNCATED, ESTIMATED, OPEN, SKEWED = 1, 2, 4, 8, 16

BUCKETS = ('', 'productive', 'overhead', 'idle', 'wasted')
SYSTEM = ('process.', 'system.', 'hw.')
"""How the names of metrics begin that the operating system or a driver gives, and no program logs."""
_MOST_NAMES = 1 << 20
_MOST_GROUPS = 4096
_MOST_SERIES = 65536
_LONGEST_NAME = 256


@dataclass
class Process:
    """One process of the run.

    Attributes:
        label: What a person calls it: its actor's name, its rank, else its role and pid.
        kind: What its peers have in common with it: the actor's class, 'rank', or the role.
        alive: It was alive when its journal was read; of what stands in files nobody knows.
    """

    label: str
    kind: str = ''
    host: str = ''
    pid: int = 0
    rank: int | None = None
    role: str = ''
    resource: dict[str, Any] = field(default_factory=dict[str, Any])
    alive: bool = False


@dataclass
class Series:
    """Points of one metric in one process, by time; of a histogram the mean of each.

    Attributes:
        part: Of a system's figure what it is of: a GPU, a direction, a mode; '' of any other metric.
    """

    name: str
    process: int
    unit: str = ''
    kind: str = 'gauge'
    part: str = ''
    times: array[int] = field(default_factory=lambda: array('q'))
    values: array[float] = field(default_factory=lambda: array('d'))


class Store:
    """What was read of a run.

    Attributes:
        names: Span names; a row has the index.
        groups: Span groups, '' first.
        known_names: Text as it was read -> its number in `names`.
        known_groups: Likewise of groups.
        processes: Processes.
        series: Metrics, by (name, process, part).
        distributions: Histograms, by (name, process, labels).
        versions: Row number at the time of reading -> `rl.weight_version`, of spans that tell one.
        skipped: What could not be used -> how often.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.names: list[str] = []
        self.known_names: dict[str, int] = {}
        self.groups: list[str] = ['']
        self.known_groups: dict[str, int] = {'': 0}
        self.processes: list[Process] = []
        self._processes: dict[Any, int] = {}
        self.series: dict[tuple[str, int, str], Series] = {}
        self.distributions: dict[tuple[str, int, str], Distribution] = {}
        self.versions: dict[int, int] = {}
        self.skipped: dict[str, int] = {}
        self.origin: str = ''

    def __len__(self) -> int:
        return len(self._bytes) // _ROW.size

    def skip(self, why: str, count: int = 1) -> None:
        """Count something that was left out.

        Args:
            why: What it was, in the plural.
            count: How many.
        """
        self.skipped[why] = self.skipped.get(why, 0) + count

    def name(self, text: object) -> int:
        """The number of a span name; control characters are made visible, so that no name moves a cursor.

        Args:
            text: The name.

        Raises:
            TypeError: It is no string.
        """
        known = self.known_names.get(text)  # pyright: ignore[reportArgumentType]
        if known is not None:
            return known
        if text.__class__ is not str:
            raise TypeError('a name must be a string')
        shown = printable(str(text)[:_LONGEST_NAME]) or '(no name)'
        number = self.known_names.get(shown)
        if number is None:
            if len(self.names) >= _MOST_NAMES:
                shown = '(other names)'
            number = self.known_names.setdefault(shown, len(self.names))
            if number == len(self.names):
                self.names.append(shown)
        if len(self.known_names) < 2 * _MOST_NAMES:
            self.known_names[str(text)] = number
        return number

    def group(self, text: str) -> int:
        """The number of a span group.

        Args:
            text: The group.
        """
        known = self.known_groups.get(text)
        if known is None:
            shown = printable(text[:_LONGEST_NAME])
            known = self.known_groups.setdefault(shown, len(self.groups) if len(self.groups) < _MOST_GROUPS else 0)
            if known == len(self.groups):
                self.groups.append(shown)
        return known

    def process(self, resource: dict[str, Any]) -> int:
        """The number of the process that a resource describes.

        Args:
            resource: Attributes, plain.
        """
        key = resource.get('service.instance.id') or (
            resource.get('host.name'),
            resource.get('process.pid'),
            resource.get('service.name'),
            resource.get('dl.rank'),
        )
        if key.__class__ is list:
            key = str(key)
        known = self._processes.get(key)
        if known is None:
            known = self._processes[key] = len(self.processes)
            self.processes.append(described(resource))
        elif not self.processes[known].resource.get('lens.role') and resource.get('lens.role'):
            self.processes[known] = described(resource)
        return known

    def adopt(self, other: Store) -> None:
        """Add what another store holds and this one does not; the same span id is the same span.

        Args:
            other: Not to be used any more.
        """
        theirs = other.rows().copy()
        processes = [self.process(one.resource) for one in other.processes]
        for number, one in zip(processes, other.processes, strict=True):
            self.processes[number].alive = one.alive
        if len(theirs):
            theirs['name'] = np.array([self.name(name) for name in other.names], dtype='<u4')[theirs['name']]
            theirs['group'] = np.array([self.group(name) for name in other.groups], dtype='<u2')[theirs['group']]
            theirs['process'] = np.array(processes, dtype='<u4')[theirs['process']]
            new = ~np.isin(theirs['id'], self.rows()['id'])
            first = len(self)
            places = np.cumsum(new) - 1 + first
            for row, version in other.versions.items():
                if new[row]:
                    self.versions[int(places[row])] = version
            self.extend(theirs[new])
        for (name, process, part), series in other.series.items():
            mine = self.series.setdefault(
                (name, processes[process], part),
                Series(series.name, processes[process], series.unit, series.kind, series.part),
            )
            last = mine.times[-1] if mine.times else -1
            for at, value in zip(series.times, series.values, strict=True):
                if at > last:
                    mine.times.append(at)
                    mine.values.append(value)
        for one in other.distributions.values():
            mine = self.distribution(one.name, processes[one.process], one.labels, one.unit)
            if mine is not None:
                for at, value in zip(one.times, one.values, strict=True):
                    mine.observe(at, value)
        for why, count in other.skipped.items():
            self.skip(why, count)

    def add(
        self,
        span: int,
        parent: int,
        start: int,
        end: int,
        name: int,
        process: int,
        group: int = 0,
        bucket: int = 0,
        flags: int = 0,
        iteration: int = -1,
    ) -> bool:
        """Add a span; False when a value does not fit, and then nothing was added.

        Args:
            span: Its id as a number.
            parent: Likewise, 0 for none.
            start: Wall-clock nanoseconds.
            end: Wall-clock nanoseconds.
            name: As `name` gave it.
            process: As `process` gave it.
            group: As `group` gave it.
            bucket: Index into BUCKETS.
            flags: Of ERROR and its neighbours.
            iteration: `rl.iteration`, -1 for none.
        """
        if not 0 <= start <= end < 1 << 62:
            return False
        try:
            self._bytes += _ROW.pack(span, parent, start, end, name, process, group, bucket, flags, iteration)
        except (StructError, TypeError):
            return False
        return True

    def extend(self, rows: Rows) -> None:
        """Add spans that were checked already.

        Args:
            rows: Of dtype ROW.
        """
        self._bytes += rows.tobytes()

    def point(
        self, name: str, process: int, at: int, value: float, unit: str = '', kind: str = 'gauge', part: str = ''
    ) -> None:
        """Add a metric point.

        Args:
            name: The metric.
            process: As `process` gave it.
            at: Wall-clock nanoseconds.
            value: Its value.
            unit: Its unit.
            kind: gauge, counter or histogram.
            part: See `Series`.
        """
        series = self.series.get((name, process, part))
        if series is None:
            if len(self.series) >= _MOST_SERIES:
                self.skip('metric points of too many metrics')
                return
            series = self.series[(name, process, part)] = Series(
                printable(name[:_LONGEST_NAME]), process, printable(unit[:32]), kind, printable(part[:_LONGEST_NAME])
            )
        try:
            series.times.append(at)
        except OverflowError:
            self.skip('metric points with an impossible time')
            return
        series.values.append(value)

    def distribution(self, name: str, process: int, labels: str, unit: str) -> Distribution | None:
        """The histogram of that name, process and label set; None where there are too many.

        Args:
            name: The metric.
            process: As `process` gave it.
            labels: Its labels as a text.
            unit: Its unit.
        """
        key = (name, process, labels)
        found = self.distributions.get(key)
        if found is None:
            if len(self.distributions) >= _MOST_SERIES:
                self.skip('metric points of too many metrics')
                return None
            found = self.distributions[key] = Distribution(name[:_LONGEST_NAME], process, labels, unit)
        return found

    def rows(self) -> Rows:
        """All spans, in the order they came; a view that must not outlive further reading."""
        return np.frombuffer(self._bytes, dtype=ROW) if self._bytes else np.empty(0, dtype=ROW)


def printable(text: str) -> str:
    """A text with nothing in it that a terminal would obey.

    Args:
        text: Whatever a file holds.
    """
    if text.isprintable():
        return text
    return ''.join(c if c.isprintable() else c.encode('unicode_escape', 'replace').decode() for c in text)


def described(resource: dict[str, Any]) -> Process:
    """Who a process is, from its resource.

    Args:
        resource: Attributes, plain.
    """

    def text(key: str) -> str:
        item = resource.get(key)
        return printable(str(item)[:_LONGEST_NAME]) if item is not None else ''

    def number(key: str) -> int | None:
        try:
            return int(resource[key])
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    role = text('lens.role')
    rank, pid = number('dl.rank'), number('process.pid') or 0
    size = number('dl.world_size') or 1
    actor, name = text('ray.actor.class'), text('ray.actor.name')
    kind = actor or role or text('service.name') or 'process'
    if name:
        label = f'{actor}/{name}' if actor else name
    elif actor or role == 'worker':
        label = f'{actor or role} rank {rank}' if rank is not None and size > 1 else f'{actor or role} {pid}'
    elif rank is not None:
        label, kind = f'rank {rank}', 'rank'
    elif role in ('driver', 'launcher'):
        label = role
    else:
        label = f'{kind} {pid}' if pid else kind
    return Process(label, kind, text('host.name'), pid, rank, role, resource)
