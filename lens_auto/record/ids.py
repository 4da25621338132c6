# SPDX-License-Identifier: Apache-2.0
"""Span and trace ids: no system call a span, and `random` is not touched (a seeded run must draw what it drew)."""

from __future__ import annotations

import os
from itertools import count

MASK = (1 << 64) - 1
# 2^64 / golden ratio, odd: adding it again and again meets every 64-bit number before it repeats one (splitmix64).
GOLDEN = 0x9E3779B97F4A7C15


def spans() -> count[int]:
    """The span ids of one process, to be cut to 64 bits; a forked child takes a sequence of its own."""
    return count(int.from_bytes(os.urandom(8), 'little'), GOLDEN)


def mix(value: int) -> int:
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64-bit numbers that spreads every bit."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def root_trace(run_trace: int, span_id: int) -> int:
    """The 128-bit trace id of a span that starts a trace of its own, made from the run's trace id and its own id.

    Args:
        run_trace: The run's trace id.
        span_id: The span's id.
    """
    high = mix((run_trace >> 64) ^ span_id)
    return (high << 64 | mix((run_trace & MASK) ^ high)) or 1
