# SPDX-License-Identifier: Apache-2.0
"""Spans of Ray tasks find their caller: two processes each tell one half, and the journals are read in any order.

The worker says which task a span is the first of (TASK), the caller under which span it submitted that task (CALLED).
What carries the first span's id in its trace field waits until both are known, or for a second; then it is taken in the
order it came, with the caller's trace, and the first span with the caller's span as its parent.
"""

from __future__ import annotations

from time import monotonic

from lens_auto.record.format import ENDED, LOG, OPENED, POINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Iterator, Mapping
    from typing import Any

    from lens_auto.collect.member import Member
    from lens_auto.record.reader import Identity, Record

    Held = tuple[Member, Record]
    Link = tuple[bytes, bytes, dict[str, Any]]
else:
    from _collections import OrderedDict  # without the package around it, which takes a millisecond

PATIENCE = 1.0  # seconds
ATTEMPT = 'ray.task.attempt'
_MOST_HELD = 200_000  # records
_MOST_KNOWN = 20_000  # tasks, and first spans
_MOST_FIRSTS = 64  # of one task, before those that have ended are left out
_CHECKPOINTED = 1000  # of those that are settled
_TRACE = 16
# Where a record's trace field is.
_FIELD = {OPENED: 2, ENDED: 2, POINT: 8, LOG: 5}


class Task:
    """What is known of one Ray task.

    Attributes:
        trace: The caller's trace field, b'' until its CALLED was read.
        span: The caller's span, b'' for a caller without one.
        called: The CALLED was read.
        firsts: Its first spans that wait for the caller or may still get a link to it.
    """

    __slots__ = ('called', 'firsts', 'span', 'trace')

    def __init__(self) -> None:
        self.trace = self.span = b''
        self.called = False
        self.firsts: list[bytes] = []


class First:
    """A task's first span.

    Attributes:
        task: The task's id, b'' until its TASK was read.
        who: The process it runs in.
        attempt: Which attempt at the task this is, from 0.
        since: When the first record of it was held, by `monotonic`.
        trace: The trace of all that carries its id, b'' while that is open.
        parent: The caller's span, b'' for none.
        link: A caller that was heard of too late to be the parent.
        ended: Its end was taken.
    """

    __slots__ = ('attempt', 'ended', 'link', 'parent', 'since', 'task', 'trace', 'who')

    def __init__(self, since: float) -> None:
        self.task = self.trace = self.parent = b''
        self.who: Identity | None = None
        self.attempt = 0
        self.since = since
        self.link: Link | None = None
        self.ended = False


class Tasks:
    """Callers, first spans, and the records that wait for them to meet."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[bytes, Task] = OrderedDict()
        self._firsts: OrderedDict[bytes, First] = OrderedDict()
        self._held: dict[bytes, list[Held]] = {}
        self._count = 0
        self._waiting: dict[Identity, int] = {}  # process -> its records that are held

    def gone(self, who: Identity) -> None:
        """Forget sooner what was kept for a process: its books are closed.

        Args:
            who: The process.
        """
        for first in self._firsts.values():
            if first.who == who:
                first.ended = True

    def holds(self, who: Identity) -> bool:
        """True while records of a process wait here.

        Args:
            who: The process.
        """
        return who in self._waiting

    def called(self, record: Record) -> list[Held]:
        """Take a CALLED; the answer is what need not wait any longer.

        Args:
            record: The record.
        """
        _, _, number, trace, span, _ = record
        task = self._task(number)
        if task.called:
            return []
        task.called, task.trace, task.span = True, trace, span
        freed: list[Held] = []
        for span_id in task.firsts:
            first = self._firsts.get(span_id)
            if first is None:
                continue
            if not first.trace:
                freed += self._try(span_id, first)
            elif not first.ended and span:
                first.link = (trace, span, {'lens.link': 'caller'})
        return freed

    def task(self, member: Member, record: Record) -> list[Held]:
        """Take a TASK; the answer is what need not wait any longer.

        Args:
            member: The worker.
            record: The record.
        """
        _, _, span_id, number, attempt = record
        first = self._first(span_id)
        first.task, first.who = number, member.who
        task = self._task(number)
        first.attempt = attempt
        if len(task.firsts) >= _MOST_FIRSTS:
            task.firsts = [other for other in task.firsts if self._open(other)]
        task.firsts.append(span_id)
        return self._try(span_id, first)

    def pass_on(self, member: Member, record: Record) -> Record | None:
        """A record with what is known of its task put in; None when it is held for now.

        Args:
            member: The process it comes from.
            record: An OPENED, ENDED, POINT or LOG.
        """
        kind = record[0]
        field = _FIELD[kind]
        trace: bytes = record[field]
        if len(trace) <= _TRACE:
            return self._with_links(record) if kind == ENDED and record[10] else record
        span_id = trace[_TRACE:]
        first = self._first(span_id)
        if not first.trace:
            self._held.setdefault(span_id, []).append((member, record))
            first.who = first.who or member.who
            self._waiting[member.who] = self._waiting.get(member.who, 0) + 1
            self._count += 1
            return None
        if kind in (OPENED, ENDED):
            return self._placed(record, span_id, first)
        return (*record[:field], first.trace, *record[field + 1 :])

    def _placed(self, record: Record, span_id: bytes, first: First) -> Record:
        kind, parent = record[0], record[3]
        items_at, links_at = (7, 8) if kind == OPENED else (9, 10)
        fields = list(record)
        fields[2] = first.trace
        if record[1] == span_id:
            fields[3] = first.parent or parent
            if first.attempt:
                fields[items_at] = {**(record[items_at] or {}), ATTEMPT: first.attempt}
            if kind == ENDED:
                first.ended = True
                if first.link is not None:
                    fields[links_at] = (*(record[links_at] or ()), first.link)
        placed = tuple(fields)
        return self._with_links(placed) if placed[links_at] else placed

    def _with_links(self, record: Record) -> Record:
        at = 8 if record[0] == OPENED else 10
        links = record[at]
        if all(len(link[0]) <= _TRACE for link in links):
            return record
        known = tuple((self._known(trace), span, items) for trace, span, items in links)
        return (*record[:at], known, *record[at + 1 :])

    def _known(self, trace: bytes) -> bytes:
        """A trace field as a trace id, as far as that is known by now."""
        first = self._firsts.get(trace[_TRACE:]) if len(trace) > _TRACE else None
        return first.trace if first is not None and first.trace else trace[:_TRACE]

    def links(self, span_id: bytes, links: Any) -> Any:
        """The links of a span that was cut short.

        Args:
            span_id: The span.
            links: Those it has.
        """
        first = self._firsts.get(span_id)
        if first is not None:
            first.ended = True
            if first.link is not None:
                links = (*(links or ()), first.link)
        return links and tuple((self._known(trace), span, items) for trace, span, items in links)

    def _task(self, number: bytes) -> Task:
        task = self._tasks.get(number)
        if task is None:
            task = self._tasks[number] = Task()
            if len(self._tasks) > _MOST_KNOWN:
                self._tasks.popitem(last=False)
        return task

    def _first(self, span_id: bytes) -> First:
        first = self._firsts.get(span_id)
        if first is None:
            first = self._firsts[span_id] = First(monotonic())
            if len(self._firsts) > _MOST_KNOWN:
                self._forget_one()
        return first

    def _open(self, span_id: bytes) -> bool:
        first = self._firsts.get(span_id)
        return first is not None and not first.ended

    def _forget_one(self) -> None:
        oldest, first = self._firsts.popitem(last=False)
        if not first.ended or oldest in self._held:
            self._firsts[oldest] = first  # what descends from it is still to come

    def _try(self, span_id: bytes, first: First) -> list[Held]:
        """Settle a first span if its caller is known, and all that waited for it in turn."""
        freed: list[Held] = []
        work = [(span_id, first)]
        while work:
            span_id, first = work.pop()
            task = self._tasks.get(first.task) if first.task else None
            if first.trace or task is None or not task.called:
                continue
            above = self._firsts.get(task.trace[_TRACE:]) if len(task.trace) > _TRACE else None
            if len(task.trace) > _TRACE and (above is None or not above.trace):
                continue  # the caller is a task itself, and its own caller is not known yet
            first.trace = above.trace if above is not None else task.trace
            first.parent = task.span
            if not first.trace:  # called with no span current: by nobody
                first.trace, first.parent = self._own_trace(span_id), b''
            if not first.trace:
                continue
            freed += self._free(span_id)
            work += self._called_from(span_id)
        return freed

    def _own_trace(self, span_id: bytes) -> bytes:
        """The run's trace, as the records that are held have it."""
        for _, record in self._held.get(span_id, ()):
            return record[_FIELD[record[0]]][:_TRACE]
        return b''

    def _called_from(self, span_id: bytes) -> Iterator[tuple[bytes, First]]:
        """First spans that wait, of tasks that were called below another first span."""
        for other in list(self._held):
            first = self._firsts[other]
            task = self._tasks.get(first.task)
            if not first.trace and task is not None and task.trace[_TRACE:] == span_id:
                yield other, first

    def _free(self, span_id: bytes) -> list[Held]:
        freed = self._held.pop(span_id, [])
        self._count -= len(freed)
        for member, _ in freed:
            self._waiting[member.who] -= 1
            if not self._waiting[member.who]:
                del self._waiting[member.who]
        return freed

    def overdue(self, all_of_them: bool) -> list[Held]:
        """What has waited long enough: those tasks keep the run's trace and root.

        Args:
            all_of_them: Nothing more is to come: no use in waiting.
        """
        if not self._held:
            return []
        before = monotonic() - PATIENCE
        freed: list[Held] = []
        late = [s for s in self._held if all_of_them or self._firsts[s].since <= before]
        # The one that waited longest first; it may be what others wait for.
        for span_id in sorted(late, key=lambda s: self._depth(s)):
            if span_id in self._held:
                freed += self._give_up(span_id)
        while self._count > _MOST_HELD:
            freed += self._give_up(next(iter(self._held)))
        return freed

    def _depth(self, span_id: bytes) -> int:
        """How many first spans that wait stand between this one and a caller that is no task, or unknown."""
        for depth in range(64):
            first = self._firsts.get(span_id)
            task = self._tasks.get(first.task) if first is not None else None
            if task is None or not task.called:
                return depth
            span_id = task.trace[_TRACE:]
        return 64

    def _give_up(self, span_id: bytes) -> list[Held]:
        first = self._firsts[span_id]
        task = self._tasks.get(first.task) if first.task else None
        freed: list[Held] = []
        if task is not None and task.called:
            # Its caller is known, but not the caller's own: that one has to go first.
            above = task.trace[_TRACE:]
            first.trace, first.parent = task.trace[:_TRACE], task.span
            if above in self._held and not self._firsts[above].trace:
                freed += self._give_up(above)
            first.trace = self._known(task.trace) or self._own_trace(span_id)
        else:
            first.trace = self._own_trace(span_id)
        freed += self._free(span_id)
        for other, waiting in list(self._called_from(span_id)):
            freed += self._try(other, waiting)
        return freed

    def dump(self) -> list[Any]:
        """Plain data for the checkpoint."""
        young = len(self._tasks) - _CHECKPOINTED
        tasks = [
            (number, task.called, task.trace, task.span, task.firsts)
            for n, (number, task) in enumerate(self._tasks.items())
            if n >= young or not task.firsts or any(map(self._open, task.firsts))
        ]
        young = len(self._firsts) - _CHECKPOINTED
        firsts = [
            (span_id, first.task, first.who, first.attempt, first.trace, first.parent, first.link, first.ended)
            for n, (span_id, first) in enumerate(self._firsts.items())
            if n >= young or not first.ended
        ]
        held = [(span_id, [(member.who, record) for member, record in some]) for span_id, some in self._held.items()]
        return [tasks, firsts, held]

    def load(self, plain: list[Any], members: Mapping[Identity, Member]) -> None:
        """Take back what `dump` gave; what was held waits anew.

        Args:
            plain: Its answer.
            members: The processes, by who they are.
        """
        for number, called, trace, span, firsts in plain[0]:
            task = self._tasks[number] = Task()
            task.called, task.trace, task.span = called, trace, span
            task.firsts = list(firsts)
        for span_id, number, who, attempt, trace, parent, link, ended in plain[1]:
            first = self._firsts[span_id] = First(monotonic())
            first.task, first.who, first.attempt = number, who, attempt
            first.trace, first.parent, first.link, first.ended = trace, parent, link, ended
        for span_id, held in plain[2]:
            # Whoever sent spans without a journal of its own is not known any more.
            known = [(members[who], record) for who, record in held if who in members]
            self._held[span_id] = known
            self._count += len(known)
            for member, _ in known:
                self._waiting[member.who] = self._waiting.get(member.who, 0) + 1
