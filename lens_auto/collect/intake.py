# SPDX-License-Identifier: Apache-2.0
"""What each record of a journal means: the state of the run moves on, and what is to be written waits for the flush."""

from __future__ import annotations

from lens_auto.collect import encoding, resources, store
from lens_auto.collect.ledger import Ledger
from lens_auto.collect.tally import Tally
from lens_auto.collect.tasks import Tasks
from lens_auto.record import line, process
from lens_auto.record.format import (
    ANCHOR,
    CALLED,
    ENDED,
    EXEC,
    HEADER,
    LOG,
    OPENED,
    POINT,
    REPORT,
    RESOURCE,
    SETTINGS,
    STATUS_ERROR,
    STATUS_UNSET,
    TASK,
)
from lens_auto.settings import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from lens_auto.collect.member import Member, Opened
    from lens_auto.collect.run import Run
    from lens_auto.collect.store import Store
    from lens_auto.collect.system.measurement import Measurement
    from lens_auto.record.reader import Identity, Record

_MOST_OPEN = 100_000

OPEN_FOR_LONG = 60_000_000_000
"""Nanoseconds after which a span that is still open is worth a log record."""
_INFO = 9  # a severity of OpenTelemetry
_LONGEST_STEP = 1_000_000_000
_INT64 = 1 << 63


def _measured(item: Any) -> float | None:
    """A point's value as all behind here can add it: an int of 64 bits or a float; None when it is neither."""
    kind: object = item.__class__
    if kind is float:
        return item
    if kind is int or kind is bool:
        try:
            return int(item) if -_INT64 <= item < _INT64 else float(item)
        except OverflowError:
            pass
    return None


class Intake:
    """Takes records, holds the state they make.

    Attributes:
        tally: The tree of span names.
        ledger: Rules, metrics, processes.
        tasks: Finds the callers of Ray tasks.
        counts: What was seen, by name.
        dropped: Reason -> records that ended processes lost.
        printed: Console lines that wait to be printed.
        waiting: Characters of spans and logs that wait to be written.
        last_ns: Wall-clock time of the last sign of life of processes that have ended.
        shifts: Boot id -> wall clock less monotonic clock.
    """

    def __init__(self, run: Run, values: Mapping[str, Any], environ: Mapping[str, str], prints: bool) -> None:
        """Begin with nothing.

        Args:
            run: The run.
            values: Resolved settings.
            environ: The launcher's environment.
            prints: Whether finished spans become console lines.
        """
        self._run = run
        self._service = str(values.get('service_name') or 'unknown_service')
        self._traces = values.get('traces_enabled', True) is not False
        self._metrics = values.get('metrics_enabled', True) is not False
        self._logs = values.get('logs_enabled') is True
        self._prints = prints
        self._shared = resources.of_run(environ, run)
        self._environment = resources.from_environment(environ)
        self.tally = Tally(run.root_span_id)
        self.ledger = Ledger()
        self.tasks = Tasks()
        self.counts: dict[str, int] = {}
        self.dropped: dict[str, int] = {}
        self.printed: list[str] = []
        self.waiting = 0
        self.last_ns = 0
        # One shift for all processes of a node, taken once: an NTP step while the run is on cannot put a child outside
        # its parent, and the order within a node is that of its monotonic clock.
        self.shifts: dict[str, int] = {}
        if run.started_mono_ns:
            self.shifts[process.boot_id()] = run.started_wall_ns - run.started_mono_ns

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count.

        Args:
            name: Its name.
            number: How many.
        """
        self.counts[name] = self.counts.get(name, 0) + number

    def take(self, member: Member, record: Record) -> Sequence[tuple[Member, Record]]:
        """Take one record; the answer is what was held back and is to be taken now.

        Args:
            member: The process it comes from.
            record: A tuple of `record.format`.
        """
        kind = record[0]
        if kind in _JOINED:
            passed = self.tasks.pass_on(member, record)
            if passed is not None:
                _JOINED[kind](self, member, passed)
        elif kind == HEADER:
            self._header(member, record)
        elif kind == RESOURCE:
            member.last = max(member.last, record[1])
            member.told.update(record[2])
            self.describe(member)
        elif kind == REPORT:
            member.last = max(member.last, record[1])
            self.ledger.report(member, record[2], record[3])
            if record[2] == EXEC:
                member.became = 0 if record[3].get('failed') else record[1]
            elif record[2] == SETTINGS and record[3].get('service_name'):
                # The program's own config named the service: so are this process and those that start after it.
                self._service = member.told['service.name'] = str(record[3]['service_name'])
                self.describe(member)
        elif kind == ANCHOR:
            step = abs(record[1] - record[2] - member.shift)
            if step > _LONGEST_STEP:
                self.counts['clock_step_ns'] = max(self.counts.get('clock_step_ns', 0), step)
        elif kind == CALLED:
            member.last = max(member.last, record[1])
            return self.tasks.called(record)
        elif kind == TASK:
            member.last = max(member.last, record[1])
            return self.tasks.task(member, record)
        else:
            self.count('unknown')
        return ()

    def _header(self, member: Member, record: Record) -> None:
        _, _, told, wall, mono, boot, _, _, _, flags = record
        if member.flags.get('image', 0) != flags.get('image', 0) and member.boot:
            self._became(member, mono)
        if not member.boot:
            member.boot = boot
            member.shift = self.shifts.setdefault(boot, wall - mono)
            member.first = mono
        member.last = max(member.last, mono)
        member.flags = flags
        # A later segment's header repeats the process's first words; what a rule added since stays.
        member.told = {**told, **member.told}
        self.describe(member)

    def adopt(self, member: Member, boot: str, told: Mapping[str, Any]) -> None:
        """Know a process that has no journal.

        Args:
            member: The process.
            boot: Boot id of its node.
            told: What is known of it.
        """
        member.boot = boot
        member.shift = self.shifts.get(boot, 0)
        member.told = dict(told)
        member.first = self._run.started_mono_ns
        self.describe(member)

    def describe(self, member: Member) -> None:
        """Put a process's resource together, after it said something new of itself.

        Args:
            member: The process.
        """
        member.describe(
            resources.of_process(self._shared, member.told, self._environment, self._service, self._run, *member.who)
        )

    def of_launcher(self, who: Identity) -> dict[str, Any]:
        """The resource of the launcher itself, for the run's root span.

        Args:
            who: The launcher.
        """
        told = {'lens.role': 'launcher', 'process.command': 'lens-instrument'}
        return resources.of_process(self._shared, told, self._environment, self._service, self._run, *who)

    def _became(self, member: Member, now: int) -> None:
        """The process has gone on as another program, by `exec`, and begins its counts anew."""
        member.became = member.became or now
        self._exec(member)
        self._lost(member)
        self.ledger.settle(member)
        member.told, member.dropped, member.became = {}, {}, 0

    def _exec(self, member: Member) -> None:
        """What a process has open at an `exec` ends there: no code of that program runs any more."""
        for span_id, opened in reversed(list(member.opened.items())):
            trace_id, parent_id, start, name, key, items, links = opened
            if start > member.became:
                continue
            del member.opened[span_id]
            items = {**(items or {}), 'lens.exec': True}
            links = self.tasks.links(span_id, links)
            duration = member.became - start
            self.count('execs')
            self.ledger.recorded(member, key, name, 1, 1, False, duration)
            self._span(
                *(member, span_id, trace_id, parent_id, start, duration),
                *(name, STATUS_UNSET, '', items, links, None, False),
            )

    def _lost(self, member: Member) -> None:
        for reason, records in member.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + records

    def _opened(self, member: Member, record: Record) -> None:
        _, span_id, trace_id, parent_id, start, name, key, items, links = record
        member.last = max(member.last, start)
        if not self._traces:
            return
        if len(member.opened) < _MOST_OPEN:
            member.opened[span_id] = (trace_id, parent_id, start, name, key, items, links)
        self.tally.opened(span_id, parent_id, name, items, links, start)

    def _ended(self, member: Member, record: Record) -> None:
        _, span_id, trace_id, parent_id, start, duration, name, key, status, items, links, events = record
        member.last = max(member.last, start + duration)
        if not self._traces:
            return
        opened = member.opened.pop(span_id, None)
        if opened is not None and opened[5]:
            items = {**opened[5], **items} if items else opened[5]
        self.ledger.recorded(member, key, name, 1, 1, status == STATUS_ERROR, duration)
        self._span(member, span_id, trace_id, parent_id, start, duration, name, status, '', items, links, events, False)

    def _span(
        self,
        member: Member,
        span_id: bytes,
        trace_id: bytes,
        parent_id: bytes,
        start: int,
        duration: int,
        name: str,
        status: int,
        message: str,
        items: Mapping[str, Any] | None,
        links: Any,
        events: Any,
        truncated: bool,
    ) -> None:
        begin = start + member.shift
        text = encoding.span(
            span_id,
            trace_id,
            parent_id,
            name,
            begin,
            begin + duration,
            items,
            status,
            message,
            links,
            events,
            member.shift,
        )
        self.tally.ended(
            span_id,
            parent_id,
            name,
            items,
            links,
            start,
            duration,
            member.label,
            status == STATUS_ERROR and not truncated,
            truncated,
        )
        member.waiting_spans.setdefault(member.resource, []).append(text)
        member.spans += 1
        self.waiting += len(text)
        self.count('spans')
        if self._prints and not member.flags.get('prints'):
            self.printed.append(
                line.span_line(
                    span_id, trace_id, parent_id, name, begin, begin + duration, status, items, member.attributes
                )
            )

    def _point(self, member: Member, record: Record) -> None:
        _, at, name, instrument, unit, value, labels, key, trace_id, span_id = record
        member.last = max(member.last, at)
        if not self._metrics:
            return
        value = _measured(value)
        # One that is not finite would spoil a sum for good; a gauge may well be one.
        if value is None or name.__class__ is not str or (instrument != 'gauge' and value - value != 0):
            self.count('not_numbers')
            return
        wall = at + member.shift
        member.series.add(name, instrument, unit, value, labels, wall, member.first + member.shift, trace_id, span_id)
        self.ledger.point(name, instrument, unit, value, wall)
        # One call of a logger makes several points: how many calls it was, only the process can tell.
        self.ledger.recorded(member, key, name, key not in member.counted, 1, False, 0)
        member.points += 1
        self.waiting += 200
        self.count('points')
        if self._prints and not member.flags.get('prints'):
            self.printed.append(line.point_line(name, instrument, unit, value, wall, labels, member.attributes))

    def measured(self, member: Member, at: int, figures: Iterable[Measurement]) -> None:
        """Take what the system says of a process; of the run's own metrics it is none.

        Args:
            member: The process.
            at: When it was asked, in monotonic nanoseconds.
            figures: The answers.
        """
        wall, since = at + member.shift, member.first + member.shift
        for name, instrument, unit, value, labels in figures:
            member.series.add(name, instrument, unit, value, labels, wall, since, b'', b'')
            self.waiting += 200
            self.count('measured')

    def _log(self, member: Member, record: Record) -> None:
        _, at, severity, body, items, trace_id, span_id = record
        member.last = max(member.last, at)
        body = redact.text(str(body)) if body else ''
        self._write_log(member, at, severity, body, items, trace_id, span_id)

    def _write_log(
        self,
        member: Member,
        at: int,
        severity: int,
        body: str,
        items: Mapping[str, Any] | None,
        trace_id: bytes,
        span_id: bytes,
    ) -> None:
        text = encoding.log(at + member.shift, severity, body, items, trace_id, span_id)
        member.waiting_logs.setdefault(member.resource, []).append(text)
        member.logs += 1
        self.waiting += len(text)
        self.count('logs')

    def tell_open(self, member: Member, now: int) -> None:
        """Write a log record for each span that has been open for a minute: a backend sees a span when it has ended.

        Args:
            member: A process of this node.
            now: Monotonic time.
        """
        if not self._traces or not self.ledger.settings.get('logs_enabled', self._logs):
            return
        before = member.announced
        for span_id, (trace_id, _, start, name, _, items, _) in member.opened.items():
            if start > now - OPEN_FOR_LONG:
                break  # they began in this order, nearly
            if start > before:
                member.announced = max(member.announced, start)
                told = {**(items or {}), 'lens.span.name': name, 'lens.span.open': True}
                self._write_log(member, now, _INFO, f'open for over a minute: {name}', told, trace_id, span_id)

    def cut_short(self, member: Member) -> None:
        """The process has ended: what it had open ends with it.

        Args:
            member: The process; its journal has been read to the end.
        """
        end = member.dead_at or member.last
        self.last_ns = max(self.last_ns, max(end, member.last) + member.shift)
        if member.became:
            self._exec(member)  # as a program that records nothing
        # Innermost first: a step counts what its children covered when it ends itself.
        for span_id, opened in reversed(list(member.opened.items())):
            self._truncate(member, span_id, opened, max(end, opened[2]))
        member.opened.clear()
        self.tasks.gone(member.who)
        self._lost(member)
        if member.series.overflowed:
            self.count('overflowed', member.series.overflowed)

    def _truncate(self, member: Member, span_id: bytes, opened: Opened, end: int) -> None:
        trace_id, parent_id, start, name, key, items, links = opened
        links = self.tasks.links(span_id, links)
        items = {**(items or {}), 'lens.truncated': True}
        if not member.dead_at:
            items['lens.end_estimated'] = True
        self.count('truncated')
        self.ledger.recorded(member, key, name, 1, 0, False, 0)
        self._span(
            member,
            span_id,
            trace_id,
            parent_id,
            start,
            end - start,
            name,
            STATUS_ERROR,
            'the process ended before the span did',
            items,
            links,
            None,
            True,
        )

    def hand_over(self, member: Member, out: Store) -> None:
        """Give what waits of a process to the store.

        Args:
            member: The process.
            out: The store.
        """
        for resource, spans in member.waiting_spans.items():
            # A line must not grow beyond what a request can hold: some hundred spans each.
            for start in range(0, len(spans), 256):
                some = spans[start : start + 256]
                out.put(store.TRACES, encoding.resource_spans(resource, some), len(some))
        member.waiting_spans.clear()
        for resource, logs in member.waiting_logs.items():
            out.put(store.LOGS, encoding.resource_logs(resource, logs), len(logs))
        member.waiting_logs.clear()
        metrics, points = member.series.flush()
        if metrics:
            out.put(store.METRICS, encoding.resource_metrics(member.resource, metrics), points)

    def dump(self) -> dict[str, Any]:
        """Plain data for the checkpoint."""
        return {
            'counts': self.counts,
            'dropped': self.dropped,
            'shifts': self.shifts,
            'last': self.last_ns,
            'resource': [self._shared, self._environment, self._service],
            'tally': self.tally.dump(),
            'ledger': self.ledger.dump(),
        }

    def load(self, plain: dict[str, Any]) -> None:
        """Take back what `dump` gave.

        Args:
            plain: Its answer.
        """
        self.counts = plain['counts']
        self.dropped = plain['dropped']
        self.shifts = plain['shifts']
        self.last_ns = plain['last']
        self._shared, self._environment, self._service = plain['resource']
        self.tally.load(plain['tally'])
        self.ledger.load(plain['ledger'])


_JOINED = {
    ENDED: Intake._ended,  # pyright: ignore[reportPrivateUsage]
    OPENED: Intake._opened,  # pyright: ignore[reportPrivateUsage]
    POINT: Intake._point,  # pyright: ignore[reportPrivateUsage]
    LOG: Intake._log,  # pyright: ignore[reportPrivateUsage]
}
