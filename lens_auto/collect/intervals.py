# SPDX-License-Identifier: Apache-2.0
"""How much of a step its children cover: overlapping ones count once, waiting ones do not count."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 1024

Interval = tuple[int, int]


class Cover:
    """The time inside one open span that spans below it took."""

    __slots__ = ('_busy', '_idle', 'start')

    def __init__(self, start: int) -> None:
        """Begin at the span's start.

        Args:
            start: Monotonic nanoseconds.
        """
        self.start = start
        self._busy: list[Interval] = []
        self._idle: list[Interval] = []

    def add(self, start: int, end: int, idle: bool, direct: bool) -> None:
        """Take a span that ended.

        Args:
            start: Its start.
            end: Its end.
            idle: It was waiting: at any depth, that time is idle.
            direct: It is a child, not a grandchild (those lie within one).
        """
        if idle:
            self._idle = _bounded(self._idle, start, end)
        elif direct:
            self._busy = _bounded(self._busy, start, end)

    def uncovered(self, end: int) -> int:
        """Nanoseconds of the span that no busy child covers.

        Args:
            end: The span's end.
        """
        busy = [(max(a, self.start), min(b, end)) for a, b in union(self._busy) if b > self.start and a < end]
        idle = union(self._idle)
        covered = sum(b - a for a, b in busy) - sum(_overlap(one, idle) for one in busy)
        return max(0, end - self.start - covered)

    def dump(self) -> list[Any]:
        """Plain data for the checkpoint."""
        return [self.start, union(self._busy), union(self._idle)]

    @staticmethod
    def load(plain: list[Any]) -> Cover:
        """Take back what `dump` gave.

        Args:
            plain: Its answer.
        """
        cover = Cover(plain[0])
        cover._busy, cover._idle = plain[1], plain[2]
        return cover


def union(intervals: list[Interval]) -> list[Interval]:
    """The same time in disjoint, sorted intervals.

    Args:
        intervals: Any.
    """
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _bounded(intervals: list[Interval], start: int, end: int) -> list[Interval]:
    intervals.append((start, end))
    if len(intervals) <= _MOST:
        return intervals
    merged = union(intervals)
    # Thousands of short gaps: close every other one rather than grow.
    while len(merged) > _MOST // 2:
        pairs = [(merged[n][0], merged[min(n + 1, len(merged) - 1)][1]) for n in range(0, len(merged), 2)]
        merged = pairs
    return merged


def _overlap(one: Interval, others: list[Interval]) -> int:
    return sum(max(0, min(one[1], end) - max(one[0], start)) for start, end in others)
