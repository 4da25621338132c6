# SPDX-License-Identifier: Apache-2.0
"""Durations in bounded memory: count, sum, extremes, and a sample for percentiles, exact up to some thousands."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Sequence
    from typing import Any

EXACT = 2048
# Order statistics kept in run.json for each span name: enough to merge percentiles of several launchers.
KEPT = 64
_MASK = (1 << 64) - 1
_LARGEST = (1 << 63) - 1


class Distribution:
    """Count, sum, least, most and a uniform sample of integers.

    Attributes:
        count: How many were added.
        total: Their sum.
        least: The smallest.
        most: The largest.
    """

    __slots__ = ('_seed', 'count', 'least', 'most', 'sample', 'total')

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.least = 0
        self.most = 0
        self.sample: array[int] | tuple[()] = ()
        self._seed = 0x9E3779B97F4A7C15

    def add(self, item: int) -> None:
        """Add one.

        Args:
            item: The number.
        """
        item = min(item, _LARGEST)
        self.least = item if not self.count else min(self.least, item)
        self.most = item if not self.count else max(self.most, item)
        self.count += 1
        self.total += item
        self._keep(item)

    def _keep(self, item: int) -> None:
        if not self.sample:
            self.sample = _numbers([item])
            return
        if len(self.sample) < EXACT:
            self.sample.append(item)
            return
        # Reservoir sampling with a generator of its own: a replayed run gives the same table.
        self._seed = (self._seed * 6364136223846793005 + 1442695040888963407) & _MASK
        place = (self._seed >> 33) % self.count
        if place < EXACT:
            self.sample[place] = item

    def merge(self, other: Distribution) -> None:
        """Add all of another one.

        Args:
            other: Left as it is.
        """
        if not other.count:
            return
        self.least = other.least if not self.count else min(self.least, other.least)
        self.most = other.most if not self.count else max(self.most, other.most)
        both = self.count + other.count
        if len(self.sample) + len(other.sample) <= EXACT and both <= EXACT:
            self.sample = _numbers([*self.sample, *other.sample])
        elif other.sample:
            # Each side keeps its share of the sample.
            mine = min(len(self.sample), round(EXACT * self.count / both))
            self.sample = _numbers(spread(self.sample, mine) + spread(other.sample, EXACT - mine))
        self.count = both
        self.total += other.total

    def dump(self) -> tuple[Any, ...]:
        """Plain data for the checkpoint."""
        return self.count, self.total, self.least, self.most, bytes(self.sample)

    def load(self, plain: tuple[Any, ...]) -> None:
        """Take back what `dump` gave.

        Args:
            plain: Its answer.
        """
        self.count, self.total, self.least, self.most, sample = plain
        self.sample = _numbers(sample) if sample else ()

    def quantile(self, part: float) -> float:
        """The value that `part` of all numbers do not exceed (linear between neighbours, as numpy's default).

        Args:
            part: 0..1.
        """
        return quantile(sorted(self.sample), part)


def _numbers(items: list[int] | bytes) -> array[int]:
    """8 bytes a number, where a list takes 40."""
    from array import array  # not before there is a span: it brings `collections` in

    return array('q', items)


def quantile(ordered: Sequence[float], part: float) -> float:
    """A quantile of sorted numbers, 0 of none.

    Args:
        ordered: Sorted numbers.
        part: 0..1.
    """
    if not ordered:
        return 0.0
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(items: Iterable[int], most: int) -> list[int]:
    """At most `most` of the numbers, evenly spread over their order, the extremes among them.

    Args:
        items: Numbers.
        most: How many.
    """
    ordered = sorted(items)
    if len(ordered) <= most:
        return ordered
    if most < 2:
        return ordered[:most]
    step = (len(ordered) - 1) / (most - 1)
    return [ordered[round(place * step)] for place in range(most)]
