# SPDX-License-Identifier: Apache-2.0
"""Which requests are kept once a budget is spent: those that failed, the slowest, and the longest."""

from __future__ import annotations

from time import monotonic_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Ended = tuple[Any, int, int]  # span, end, status

SLOWEST = 8
FAILED = 1000
_EVERY_NS = 10_000_000_000


class Tail:
    """Holds the few requests of a batch that are worth a span, until the batch is over or some seconds have passed."""

    __slots__ = ('_failed', '_keep', '_longest', '_slowest', '_written_at')

    def __init__(self, keep: Callable[[Any, int, int], None]):
        """See the class.

        Args:
            keep: Stores a span; given the span, its end and its status.
        """
        self._keep = keep
        self._failed = 0
        self._slowest: list[tuple[int, int, Ended]] = []
        self._longest: tuple[int, Ended] | None = None
        self._written_at = monotonic_ns()

    def offer(self, ended: Ended, tokens: int, failed: bool, drained: bool) -> int:
        """A request has ended for which the budget had nothing left.

        Args:
            ended: Its span, end and status.
            tokens: How many it generated.
            failed: It did not end well; kept at once, up to a limit.
            drained: It was the last one at work.

        Returns:
            How many requests were given up for good.
        """
        _span, end, _status = ended
        lost = 0
        if failed and self._failed < FAILED:
            self._failed += 1
            self._keep(*ended)
        elif self._longest is None or tokens > self._longest[0]:
            former, self._longest = self._longest, (tokens, ended)
            lost = 0 if former is None else self._compete(former[1])
        else:
            lost = self._compete(ended)
        if drained or end - self._written_at > _EVERY_NS:
            self.flush()
        return lost

    def _compete(self, ended: Ended) -> int:
        span, end, _status = ended
        # The number of the span tells two with one duration apart: spans themselves cannot be compared.
        self._slowest.append((end - span.start, span.start, ended))
        if len(self._slowest) <= SLOWEST:
            return 0
        self._slowest.remove(min(self._slowest, key=lambda each: each[:2]))
        return 1

    def flush(self) -> None:
        """Store what is held."""
        self._written_at = monotonic_ns()
        held = [each[2] for each in self._slowest]
        if self._longest is not None:
            held.append(self._longest[1])
        self._slowest, self._longest = [], None
        for ended in held:
            self._keep(*ended)
