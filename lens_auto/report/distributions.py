# SPDX-License-Identifier: Apache-2.0
"""Histograms: what the observations of one came to, whichever way they were told.

Files hold sums that run on from the start of a process, or of what came since the one before; journals hold single
observations.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field

from lens_auto.collect.series import bounds_of


@dataclass(frozen=True)
class Sum:
    """Observations, added up.

    Attributes:
        bounds: Upper edges of the buckets but the last.
        counts: Observations of each bucket; empty where all that is known is how many there were and their mean.
    """

    count: int = 0
    total: float = 0.0
    least: float = float('inf')
    most: float = float('-inf')
    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()

    def plus(self, other: Sum) -> Sum:
        """Both together; with unlike buckets there are none.

        Args:
            other: Of the same unit.
        """
        if not self.count or not other.count:
            return self if self.count else other
        same = self.bounds == other.bounds and len(self.counts) == len(other.counts)
        return Sum(
            self.count + other.count,
            self.total + other.total,
            min(self.least, other.least),
            max(self.most, other.most),
            self.bounds if same else (),
            tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)) if same else (),
        )

    @property
    def mean(self) -> float:
        """Of all observations; 0 of none."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, part: float) -> float | None:
        """Where that part of the observations is below, evenly spread within its bucket; None without buckets.

        Args:
            part: 0.5 is the median.
        """
        below, wanted = 0, part * self.count
        for place, count in enumerate(self.counts):
            if count and below + count >= wanted:
                low = self.bounds[place - 1] if place else self.least
                high = self.bounds[place] if place < len(self.bounds) else self.most
                # The least and the most are known (of most producers): the outer buckets reach no further.
                low, high = max(low, min(self.least, high)), min(high, max(self.most, low))
                found = low + (high - low) * (wanted - below) / count
                return found if found - found == 0 else None
            below += count
        return None


@dataclass
class Distribution:
    """One histogram of one process and label set.

    Attributes:
        ended: Sums that do not run on.
        running: The one that does.
        since: When it began.
        last: When its newest observation was made.
        times: When those that are in no sum were made, wall-clock nanoseconds.
        values: They themselves.
    """

    name: str
    process: int
    labels: str = ''
    unit: str = ''
    ended: Sum = Sum()
    running: Sum = Sum()
    since: int = 0
    last: int = -1
    times: array[int] = field(default_factory=lambda: array('q'))
    values: array[float] = field(default_factory=lambda: array('d'))

    def take(self, point: Sum, since: int, at: int, delta: bool) -> None:
        """Take a data point of a file.

        Args:
            point: It.
            since: When it began.
            at: When its newest observation was made.
            delta: It has only what came since the one before.
        """
        if delta:
            self.ended = self.ended.plus(point)
        elif since == self.since:
            if point.count >= self.running.count:  # lines need not be in order
                self.running = point
        else:
            self.ended, self.running, self.since = self.ended.plus(self.running), point, since
        self.last = max(self.last, at)

    def observe(self, at: int, value: float) -> None:
        """Take a single observation; one that a sum has already, or that is no number, is left out.

        Args:
            at: Wall-clock nanoseconds.
            value: It.
        """
        if at > self.last and value - value == 0:
            self.times.append(at)
            self.values.append(value)

    @property
    def sum(self) -> Sum:
        """All of them."""
        found = self.ended.plus(self.running)
        if not self.values:
            return found
        bounds = found.bounds or bounds_of(self.unit)
        counts = [0] * (len(bounds) + 1)
        for value in self.values:
            counts[bisect_left(bounds, value)] += 1
        few = Sum(len(self.values), sum(self.values), min(self.values), max(self.values), bounds, tuple(counts))
        return found.plus(few)
