# SPDX-License-Identifier: Apache-2.0
"""Makes spans that a framework's own exporter sent part of the run: whose process, which trace, on which clock."""

from __future__ import annotations

from lens_auto.collect.member import Member
from lens_auto.collect.tail import Tail
from lens_auto.record import process
from lens_auto.record.format import ENDED, STATUS_ERROR, STATUS_UNSET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lens_auto.collect.intake import Intake
    from lens_auto.collect.received import Received
    from lens_auto.record.reader import Identity, Record

STATE = 'lens'
"""The key in `tracestate` whose value is the id of the Ray task's first span that a span is below, in hex."""

KEY = ''
"""What stands for the rule: none, as for what a program records by hand."""

_PIDS = ('vllm.process_id', 'process.pid')
_DROPPED = ('telemetry.', 'service.', 'process.pid', 'vllm.process_id')


class Senders:
    """The processes that received spans come from.

    Attributes:
        others: Those that have no journal of their own in this spool, by process id.
    """

    def __init__(self, spool: str, intake: Intake, delta: bool) -> None:
        """Begin with none.

        Args:
            spool: Where the journals lie.
            intake: Describes processes.
            delta: Temporality of sums.
        """
        self.others: dict[int, Member] = {}
        self._spool = spool
        self._intake = intake
        self._delta = delta
        self._boot = process.boot_id()

    def record(self, span: Received, members: Mapping[Identity, Member]) -> tuple[Member, Record]:
        """The record that the sender's journal would have had of a span, and the sender.

        Args:
            span: The span.
            members: The processes that have journals.
        """
        member = self._member(_pid(span.resource), members)
        attributes = {**_worth_keeping(span.resource), **span.attributes}
        trace = span.trace_id + _first_span(span.state)
        start = span.start - member.shift
        return member, (
            ENDED,
            span.span_id,
            trace,
            span.parent_id,
            start,
            max(0, span.end - span.start),
            span.name,
            KEY,
            STATUS_ERROR if span.status == STATUS_ERROR else STATUS_UNSET,
            attributes,
            tuple(span.links) or None,
            tuple((at - member.shift, name, items) for at, name, items in span.events) or None,
        )

    def _member(self, pid: int, members: Mapping[Identity, Member]) -> Member:
        host = process.hostname()
        # Of two with one number, the later: pids come round again.
        known = [member for who, member in members.items() if who[0] == host and who[1] == pid and member.boot]
        if known:
            return known[-1]
        member = self.others.get(pid)
        if member is None:
            member = self.others[pid] = Member((host, pid, 0), Tail(self._spool, (host, pid, 0), 0), self._delta)
            self._intake.adopt(member, self._boot, {})
        return member


def _pid(resource: Mapping[str, Any]) -> int:
    for name in _PIDS:
        text = str(resource.get(name, ''))
        if text.isdigit():
            return int(text)
    return 0


def _worth_keeping(resource: Mapping[str, Any]) -> dict[str, Any]:
    """What a sender says of itself and its process's own resource does not."""
    return {name: value for name, value in resource.items() if not name.startswith(_DROPPED)}


def _first_span(state: str) -> bytes:
    for item in state.split(','):
        key, _, value = item.strip().partition('=')
        if key == STATE:
            try:
                found = bytes.fromhex(value)
            except ValueError:
                return b''
            return found if len(found) == 8 else b''
    return b''
