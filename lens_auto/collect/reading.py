# SPDX-License-Identifier: Apache-2.0
"""Reads a spool: finds the processes of the run, follows their journals, and closes the books of those that ended."""

from __future__ import annotations

import os
from time import monotonic_ns

from lens_auto.collect.liveness import Watch
from lens_auto.collect.tail import Tail
from lens_auto.record import process
from lens_auto.record.reader import ForeignSegment, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lens_auto.collect.intake import Intake
    from lens_auto.collect.member import Member
    from lens_auto.collect.native import Senders
    from lens_auto.collect.receiver import Receiver
    from lens_auto.collect.store import Store
    from lens_auto.collect.system.sampler import Sampler
    from lens_auto.record.reader import Identity, Record

PROCESSES = 'processes.tsv'

_PIECES = 16  # read from one journal before the next has its turn
_MOST_WAITING = 4 << 20


class Reading:
    """The state of reading one spool.

    Attributes:
        spool: Where the journals lie.
        members: Processes whose books are open.
        news: Records were taken, or books closed, since the last checkpoint.
        consumed: Segments read to their end; to be deleted after the next checkpoint.
        ending: Nobody will read here any more: processes that nobody can watch end with the reading.
        watch: Tells living from dead processes.
    """

    def __init__(
        self, spool: str, intake: Intake, out: Store, live: bool, delta: bool, fault: Callable[[str, Exception], None]
    ) -> None:
        """Begin at the beginning.

        Args:
            spool: Where the journals lie.
            intake: Takes the records.
            out: Gets what waits of a process that has ended.
            live: Somebody watches the processes die; else nobody knows when it was.
            delta: Temporality of sums.
            fault: Told of a record that made no sense.
        """
        self.spool = spool
        self.members: dict[Identity, Member] = {}
        self.news = False
        self.consumed: list[str] = []
        self.ending = not live
        self.watch = Watch()
        self._intake = intake
        self._out = out
        self._live = live
        self._delta = delta
        self._fault = fault
        self._behind = False  # some journal holds more than the last round has read
        self._table = 0  # how much of processes.tsv was read
        self._receiver: Receiver | None = None
        self._senders: Senders | None = None
        self._sampler: Sampler | None = None
        self._node: Member | None = None

    @property
    def full(self) -> bool:
        """So much waits to be written that nothing more should be read."""
        return self._intake.waiting + self._out.waiting > _MOST_WAITING

    def receive(self, receiver: Receiver) -> None:
        """Take also what frameworks send by themselves.

        Args:
            receiver: Where that comes in.
        """
        from lens_auto.collect.native import Senders

        self._receiver, self._senders = receiver, Senders(self.spool, self._intake, self._delta)

    def measure(self, sampler: Sampler, node: Identity) -> None:
        """Take also what the system says of the processes.

        Args:
            sampler: Who asks it.
            node: The process under which figures of the node are kept: the launcher.
        """
        self._sampler = sampler
        self._node = self._member(node, 0)
        self._intake.adopt(self._node, self.watch.boot, {'lens.role': 'launcher'})

    def alive(self) -> list[Member]:
        """Processes that are still at work, as far as their journals can be read."""
        return [
            member
            for who, member in self.members.items()
            if not member.dead and not member.broken and self._alive(who, member)
        ]

    def left(self) -> bool:
        """Whether the spool holds journals that were not read to their end."""
        return any(identity(name) for name in os.listdir(self.spool))

    def round(self) -> bool:
        """Read what has come, bury who has died; True when there may be more at once."""
        self._discover()
        busy = self._read() | self._take_received()
        self._take_measured()
        # The caller of a task may be in a journal that is being read: only where none is behind, it was waited for.
        freed = [] if self._behind else self._intake.tasks.overdue(self.ending and not busy)
        for member, record in freed:
            self._take(member, [record])
        return busy or bool(freed) or self._bury()

    def _member(self, who: Identity, number: int) -> Member:
        from lens_auto.collect.member import Member  # in a run that records nothing there is none

        return Member(who, Tail(self.spool, who, number), self._delta)

    def _discover(self) -> None:
        for name in os.listdir(self.spool):
            found = identity(name)
            if found is None:
                continue
            who, number = found
            member = self.members.get(who)
            if member is None:
                if os.path.join(self.spool, name) in self.consumed:
                    continue
                member = self.members[who] = self._member(who, number)
            if number < member.tail.number and not member.first:
                member.tail.number = number  # the folder lists them in its own order
            if number >= member.tail.number:
                member.tail.numbers.add(number)
        self._read_table()

    def _read_table(self) -> None:
        try:
            with open(os.path.join(self.spool, PROCESSES), 'rb') as table:
                table.seek(self._table)
                data = table.read(1 << 20)
        except FileNotFoundError:
            return
        whole, newline, _ = data.rpartition(b'\n')
        if not newline:
            return
        self._table += len(whole) + 1
        for line in whole.decode('utf-8', 'replace').split('\n'):
            self._intake.ledger.listed(process.hostname(), line)

    def _read(self) -> bool:
        busy = self._behind = False
        for member in self.members.values():
            for _ in range(_PIECES):
                if member.broken:
                    break
                if self.full:
                    self._behind = True
                    return True
                try:
                    records = member.tail.read()
                except (ForeignSegment, OSError) as error:
                    member.broken = True
                    self._intake.count('foreign' if isinstance(error, ForeignSegment) else 'unreadable')
                    break
                if not records:
                    break
                busy = True
                self._take(member, records)
            else:
                self._behind = True
        return busy

    def _take_received(self) -> bool:
        """Take what came in from outside the journals, after them: by then they say whose process that is."""
        if self._receiver is None or self._senders is None or self.full:
            return False
        came = self._receiver.taken()
        for span in came:
            member, record = self._senders.record(span, self.members)
            self._take(member, [record])
        return bool(came)

    def _take_measured(self) -> None:
        if self._sampler is None or self.full:
            return
        self._sampler.processes = [
            who for who, member in self.members.items() if member.boot and not member.dead and self._in_sight(member)
        ]
        for who, at, figures in self._sampler.taken():
            member = self._node if who is None else self.members.get(who)
            if member is not None:  # else its books are closed
                self.news = True
                self._intake.measured(member, at, figures)
        if self._sampler.fault is not None:
            self._fault('system figures', self._sampler.fault)
            self._sampler = None

    def _take(self, member: Member, records: list[Record]) -> None:
        self.news = True
        for record in records:
            try:
                freed = self._intake.take(member, record)
            except Exception as error:
                # One record that makes no sense must not stop those behind it.
                self._intake.count('damaged')
                self._fault('record', error)
                continue
            for other, held in freed:
                self._take(other, [held])

    def tell_open(self) -> None:
        """Say which spans have been open for long; those of other nodes are not on our clock."""
        now = monotonic_ns()
        for member in self.members.values():
            if member.opened and not member.dead and self.watch.shows(member.boot, 0):
                self._intake.tell_open(member, now)
                self.news |= bool(member.waiting_logs)

    def _bury(self) -> bool:
        busy = False
        for who, member in list(self.members.items()):
            if member.broken:
                continue
            if member.dead:
                if self._intake.tasks.holds(who):
                    continue
                self._settle(member)
                busy = True
            elif not self._alive(who, member):
                # Its last words may have come between our last read and its death: once more around.
                member.dead = True
                member.dead_at = monotonic_ns() if self._live and self._in_sight(member) else 0
                busy = True
        return busy

    def _in_sight(self, member: Member) -> bool:
        """Whether /proc here shows the process: not one in a container of its own, nor one that said nothing yet."""
        return self.watch.shows(member.boot, int(member.flags.get('pidns') or 0))

    def _alive(self, who: Identity, member: Member) -> bool:
        return self.watch.alive(who) if self._in_sight(member) else not self.ending

    def _settle(self, member: Member) -> None:
        records = member.tail.read()
        if records:
            self._take(member, records)
            return
        self._intake.cut_short(member)
        self._intake.ledger.enter(member)
        self._intake.ledger.settle(member)
        self._intake.hand_over(member, self._out)
        member.tail.finish()
        self.consumed += member.tail.consumed
        self.watch.forget(member.who)
        del self.members[member.who]
        self.news = True

    def hand_over(self) -> None:
        """Give all that waits to the store."""
        others = self._senders.others.values() if self._senders is not None else ()
        node = (self._node,) if self._node is not None else ()
        for member in (*self.members.values(), *others, *node):
            self._intake.hand_over(member, self._out)
        self._intake.waiting = 0

    def delete_consumed(self) -> None:
        """A checkpoint knows what came from these segments: they are not needed any more."""
        for path in self.consumed:
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
        self.consumed.clear()

    def dump(self) -> dict[str, Any]:
        """Plain data for the checkpoint, taken when nothing waits."""
        for member in self.members.values():
            self.consumed += member.tail.consumed
            member.tail.consumed.clear()
        return {
            'table': self._table,
            'members': [member.dump() for member in self.members.values()],
            'tasks': self._intake.tasks.dump(),
            'consumed': [os.path.basename(path) for path in self.consumed],
        }

    def load(self, plain: dict[str, Any]) -> None:
        """Take back what `dump` gave.

        Args:
            plain: Its answer.
        """
        self._table = plain['table']
        self.consumed = [os.path.join(self.spool, name) for name in plain['consumed']]
        # Before the folder is listed: they would be taken for new journals.
        self.delete_consumed()
        for who, (number, offset), *rest in plain['members']:
            member = self._member(who, number)
            member.load(offset, *rest)
            self._intake.describe(member)
            member.dead = False
            self.members[member.who] = member
        self._intake.tasks.load(plain['tasks'], self.members)
