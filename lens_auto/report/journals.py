# SPDX-License-Identifier: Apache-2.0
"""Reads what a collector has not written yet: the journals of a live run, or of one whose launcher was killed.

Nothing is changed: the collector may be at work on the same files. What it has read is in its checkpoint, spans that
are still open included; from there on the segments are read.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lens_auto.collect import checkpoint
from lens_auto.collect.run import digest
from lens_auto.record import process as liveness
from lens_auto.record.format import (
    CALLED,
    ENDED,
    FIELDS,
    HEADER,
    OPENED,
    POINT,
    RESOURCE,
    STATUS_ERROR,
    TASK,
)
from lens_auto.record.reader import ForeignSegment, identity, read, segments
from lens_auto.report.otlp import labels_of
from lens_auto.report.store import BUCKETS, ERROR, OPEN

if TYPE_CHECKING:
    from lens_auto.record.reader import Identity, Record
    from lens_auto.report.store import Store

    Opened = tuple[str, bytes, int, Any]  # name, parent, start, attributes

_BUCKET = {name: number for number, name in enumerate(BUCKETS)}
_WRONG = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


class _Member:
    """A process whose journal is read."""

    def __init__(self, who: Identity) -> None:
        self.who = who
        self.told: dict[str, Any] = {}
        self.shift: int | None = None
        self.last = 0
        self.opened: dict[bytes, Opened] = {}
        self.ended: list[tuple[bytes, Opened, int, int]] = []  # id, what was opened, end, flags
        self.points: list[Record] = []

    @property
    def alive(self) -> bool:
        host, pid, started = self.who
        return host != liveness.hostname() or liveness.alive(pid, started)

    def take(self, record: Record, tasks: dict[bytes, bytes], calls: dict[bytes, bytes]) -> None:
        """Take a record of this process."""
        kind = record[0]
        if kind == OPENED:
            _, span, _, parent, start, name, _, items, _ = record
            self.last = max(self.last, start)
            self.opened[span] = (name, parent, start, items)
        elif kind == ENDED:
            _, span, _, parent, start, duration, name, _, status, items, _, _ = record
            self.last = max(self.last, start + duration)
            before = self.opened.pop(span, None)
            if before is not None and before[3]:
                told: dict[str, Any] = items or {}
                items = {**before[3], **told}
            flags = ERROR if status == STATUS_ERROR else 0
            self.ended.append((span, (name, parent, start, items), start + duration, flags))
        elif kind == POINT:
            self.points.append(record)
        elif kind == HEADER:
            self.told = {**record[2], **self.told}
            if self.shift is None:
                self.shift = record[3] - record[4]
            self.last = max(self.last, record[4])
        elif kind == RESOURCE:
            self.told.update(record[2])
        elif kind == CALLED:
            calls[record[2]] = record[4]
        elif kind == TASK:
            tasks[record[2]] = record[3]


class _Spool:
    """What is read of one spool.

    Attributes:
        begin: Segment and offset up to which the collector has read the journal of each process.
        tasks: First span of a Ray task -> the task.
        calls: Ray task -> the span that submitted it.
    """

    def __init__(self) -> None:
        self.members: dict[Identity, _Member] = {}
        self.begin: dict[Identity, tuple[int, int]] = {}
        self.tasks: dict[bytes, bytes] = {}
        self.calls: dict[bytes, bytes] = {}

    def recall(self, reading: dict[str, Any]) -> None:
        """Take what a checkpoint says: what the collector has read, and what of that it still holds."""
        for who, position, scalars, opened, _ in reading.get('members', ()):
            member = self.members[tuple(who)] = _Member(tuple(who))
            member.told, member.shift, member.last = dict(scalars['told']), scalars['shift'], scalars['last']
            # (trace_id, parent_id, t0, name, key, attributes, links)
            member.opened = {span: (one[3], one[1], one[2], one[5]) for span, one in opened.items()}
            self.begin[member.who] = tuple(position)
        _, firsts, held = reading.get('tasks') or ((), (), ())
        for span, task, _, _, _, parent, *_ in firsts:
            self.tasks[span] = task
            if parent:
                self.calls[task] = parent
        for _, some in held:
            for who, record in some:
                self.members.setdefault(tuple(who), _Member(tuple(who))).take(record, self.tasks, self.calls)

    def read(self, path: str, who: Identity, number: int) -> int:
        """Take the records of a segment that the collector has not read; how many of them could not be used."""
        first, offset = self.begin.get(who, (-1, 0))
        if number < first:
            return 0
        member = self.members.setdefault(who, _Member(who))
        wrong = 0
        for record, _ in read(path, offset if number == first else 0):
            if len(record) != FIELDS.get(record[0]):
                continue
            try:
                member.take(record, self.tasks, self.calls)
            except _WRONG:
                wrong += 1
        return wrong


def read_spool(path: str, run_key: str, store: Store, now: int) -> bool:
    """Read the journals of one spool into the store.

    Args:
        path: The spool.
        run_key: The run's: the collector makes the id of a process from it.
        store: Takes spans, those that are open with the flag OPEN, and metric points.
        now: Wall-clock nanoseconds; where a span ends that is open in a living process.

    Returns:
        Whether any process that is alive has journals here.
    """
    spool = _Spool()
    try:
        spool.recall((checkpoint.load(path) or {}).get('reading', {}))
    except (checkpoint.Unreadable, *_WRONG):
        store.skip('checkpoints of another version')
        spool = _Spool()
    for segment in segments(path):
        known = identity(os.path.basename(segment))
        if known is None:
            continue
        try:
            wrong = spool.read(segment, *known)
            if wrong:
                store.skip('records of wrong types in journals', wrong)
        except FileNotFoundError:
            continue  # the collector has read it and removed it meanwhile
        except (ForeignSegment, OSError):
            store.skip('journals of another version or user')
        except _WRONG:
            store.skip('damaged journals')
    for member in spool.members.values():
        _enter(member, run_key, store, now, spool.tasks, spool.calls)
    return any(member.alive for member in spool.members.values())


def _enter(
    member: _Member, run_key: str, store: Store, now: int, tasks: dict[bytes, bytes], calls: dict[bytes, bytes]
) -> None:
    if not (member.ended or member.opened or member.points):
        return
    host, pid, started = member.who
    instance = digest(f'{run_key}/{host}/{pid}/{started}', 16)
    # The name of a journal holds what is left of a host's name in a file name.
    node = os.uname().nodename if host == liveness.hostname() else host
    resource = {'host.name': node, **member.told, 'process.pid': pid, 'service.instance.id': instance}
    process = store.process(resource)
    shift = member.shift or 0
    alive = store.processes[process].alive = member.alive
    end = max(now, member.last + shift) if alive else member.last + shift
    for span, what, ended, flags in member.ended:
        _span(span, what, ended + shift, flags, shift, process, store, tasks, calls)
    for span, what in member.opened.items():
        _span(span, what, max(end, what[2] + shift), OPEN, shift, process, store, tasks, calls)
    for _, at, name, instrument, unit, value, labels, _, _, _ in member.points:
        try:
            store.point(str(name), process, at + shift, float(value), str(unit), str(instrument))
            if instrument == 'histogram':
                known = store.distribution(str(name), process, labels_of(labels or {}), str(unit))
                if known is not None:
                    known.observe(at + shift, float(value))
        except _WRONG:
            store.skip('metrics of wrong types')


def _span(
    span: bytes,
    what: Opened,
    end: int,
    flags: int,
    shift: int,
    process: int,
    store: Store,
    tasks: dict[bytes, bytes],
    calls: dict[bytes, bytes],
) -> None:
    row = len(store)
    try:
        name, parent, start, items = what
        told: dict[str, Any] = items or {}
        task = tasks.get(span)
        if not parent and task is not None and task in calls:
            parent = calls[task]
        iteration, version = told.get('rl.iteration', told.get('rl.step', -1)), told.get('rl.weight_version')
        taken = store.add(
            int.from_bytes(span, 'big'),
            int.from_bytes(parent, 'big'),
            start + shift,
            end,
            store.name(name),
            process,
            store.group(str(told.get('lens.group') or '')),
            _BUCKET.get(told.get('rl.bucket', ''), 0),
            flags,
            iteration if iteration.__class__ is int and 0 <= iteration < 1 << 31 else -1,
        )
    except _WRONG:
        taken, version = False, None
    if not taken:
        store.skip('spans of wrong types')
        return
    if isinstance(version, int):
        store.versions[row] = version
