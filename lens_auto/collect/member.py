# SPDX-License-Identifier: Apache-2.0
"""One traced process as the collector knows it: who it is, what it has open, what waits to be written."""

from __future__ import annotations

from lens_auto.collect import encoding
from lens_auto.collect.series import Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lens_auto.collect.tail import Tail
    from lens_auto.record.reader import Identity

    # (trace_id, parent_id, t0, name, key, attributes, links): an OPENED record less its id.
    Opened = tuple[bytes, bytes, int, str, str, Mapping[str, Any] | None, Any]

_PLAIN = (
    'boot',
    'told',
    'flags',
    'shift',
    'first',
    'last',
    'spans',
    'points',
    'logs',
    'stats',
    'counted',
    'matched',
    'dropped',
    'dead',
    'became',
    'announced',
)


class Member:
    """A process of the run.

    Attributes:
        who: Host, pid, start ticks.
        tail: Its journal.
        boot: Boot id of its node; '' before its header was read.
        told: Resource attributes it gave.
        flags: Header flags.
        shift: Wall clock less monotonic clock of its node.
        first: Monotonic time of its first record.
        last: Monotonic time of its last record.
        opened: Spans open in it.
        series: Its metrics.
        spans: Spans it finished or was cut short in.
        points: Metric points it recorded.
        logs: Log records it wrote.
        stats: Rule key -> cumulative [calls, spans, errors, ns, over_budget, unread, filtered].
        counted: Rule key -> [calls, spans, errors, ns] of what it recorded; one that is killed cannot tell its last.
        matched: Keys of the rules that patched something in it.
        dropped: Reason -> records it lost.
        broken: Its journal cannot be read on.
        dead: It has ended.
        dead_at: Monotonic time when it was seen dead, 0 when nobody saw it.
        announced: Start of the last span that a log record has told to be open for long.
        became: Monotonic time of the `exec` by which it has gone on as another program, 0 for none.
        resource: Its Resource, as JSON.
        attributes: The same as a dict.
        waiting_spans: Resource -> spans that wait to be written.
        waiting_logs: Resource -> log records that wait to be written.
    """

    def __init__(self, who: Identity, tail: Tail, delta: bool) -> None:
        self.who = who
        self.tail = tail
        self.boot = ''
        self.told: dict[str, Any] = {}
        self.flags: dict[str, Any] = {}
        self.shift = 0
        self.first = 0
        self.last = 0
        self.opened: dict[bytes, Opened] = {}
        self.series = Series(delta)
        self.spans = 0
        self.points = 0
        self.logs = 0
        self.stats: dict[str, list[int]] = {}
        self.counted: dict[str, list[int]] = {}
        self.matched: set[str] = set()
        self.dropped: dict[str, int] = {}
        self.broken = False
        self.dead = False
        self.dead_at = 0
        self.became = 0
        self.announced = 0
        self.resource = ''
        self.attributes: dict[str, Any] = {}
        self.waiting_spans: dict[str, list[str]] = {}
        self.waiting_logs: dict[str, list[str]] = {}

    @property
    def label(self) -> str:
        """What a person calls it: its actor's name, its rank, else its role and pid."""
        rank = self.told.get('dl.rank')
        role = str(self.told.get('lens.role') or 'process')
        actor, name = self.told.get('ray.actor.class'), self.told.get('ray.actor.name')
        if name:
            return f'{actor}/{name}' if actor else str(name)
        # An actor outside a group is rank 0 of 1, as all the others are.
        grouped = rank is not None and int(self.told.get('dl.world_size') or 1) > 1
        if actor or role == 'worker':
            return f'{actor or role} rank {rank}' if grouped else f'{actor or role} {self.who[1]}'
        if rank is not None:
            return f'rank {rank}'
        return role if role == 'driver' else f'{role} {self.who[1]}'

    def describe(self, attributes: dict[str, Any]) -> None:
        """Set its resource; what waits under the old one stays under it.

        Args:
            attributes: All of its resource.
        """
        self.attributes = attributes
        self.resource = encoding.resource(attributes)

    def dump(self) -> list[Any]:
        """Plain data for the checkpoint, taken when nothing waits."""
        return [
            self.who,
            (self.tail.number, self.tail.offset),
            {name: getattr(self, name) for name in _PLAIN},
            self.opened,
            self.series.dump(),
        ]

    def load(self, offset: int, scalars: dict[str, Any], opened: dict[bytes, Opened], series: list[Any]) -> None:
        """Take back what `dump` gave after who it is and in which segment; the resource is to be described anew.

        Args:
            offset: Where its next record starts.
            scalars: Its plain fields.
            opened: Its open spans.
            series: Its metrics.
        """
        self.tail.offset = offset
        for name, item in scalars.items():
            setattr(self, name, item)
        self.opened = opened
        self.series.load(series)
