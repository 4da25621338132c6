# SPDX-License-Identifier: Apache-2.0
"""Span and trace ids: no system call a span, and `random` is not touched (a seeded run must draw what it drew)."""

from __future__ import annotations

import os
from itertools import count, repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MASK = (1 << 64) - 1


class Spans:
    """The span ids of one process: a number of 62 random bits, and those that follow it.

    Two of a thousand processes with ten million spans each have an id in common once in 500,000 runs.

    Attributes:
        next: Gives the next id.
    """

    __slots__ = ('_count', 'next')

    def __init__(self) -> None:
        # Not above 2^62, where a count takes to slow numbers, and never 0. A map: one call into C instead of two.
        self._count = count(int.from_bytes(os.urandom(8), 'little') >> 2 | 1)
        order: Any = repeat('little')
        ids: Iterator[bytes] = map(int.to_bytes, self._count, repeat(8), order)
        self.next = ids.__next__

    def last(self) -> bytes:
        """The id given last."""
        # What the counter gives next, without taking it: repr, as pickling a count warns from 3.12 on.
        return (int(repr(self._count)[len('count(') : -1]) - 1).to_bytes(8, 'little')


def mix(value: int) -> int:
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64-bit numbers that spreads every bit."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def root_trace(run_trace: bytes, span_id: bytes) -> bytes:
    """The trace id of a span that starts a trace of its own, made from the run's trace id and its own id.

    Args:
        run_trace: The run's trace id.
        span_id: The span's id.
    """
    run = int.from_bytes(run_trace, 'big')
    high = mix((run >> 64) ^ int.from_bytes(span_id, 'little'))
    return ((high << 64 | mix((run & _MASK) ^ high)) or 1).to_bytes(16, 'big')
