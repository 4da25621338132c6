# SPDX-License-Identifier: Apache-2.0
"""Where the wall clock goes, by label."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class Timer:
    """Collects durations under labels.

    `with timer.time('generation'):` where a block is at hand; `start` and `stop` where the two ends lie apart.
    """

    def __init__(self) -> None:
        self._running: dict[str, float] = {}
        self._durations: dict[str, list[float]] = {}

    def start(self, label: str) -> None:
        """Start the clock of `label`; each label has one."""
        if label in self._running:
            raise ValueError(f'timer {label!r} is already running')
        self._running[label] = time.perf_counter()

    def stop(self, label: str) -> float:
        """Stop the clock of `label`; returns the seconds since its start."""
        if label not in self._running:
            raise ValueError(f'timer {label!r} is not running')
        elapsed = time.perf_counter() - self._running.pop(label)
        self._durations.setdefault(label, []).append(elapsed)
        return elapsed

    @contextlib.contextmanager
    def time(self, label: str) -> Iterator[None]:
        """Time a block, also when it raises."""
        self.start(label)
        try:
            yield
        finally:
            self.stop(label)

    def durations(self, label: str) -> list[float]:
        """All durations of `label` so far, in seconds."""
        return list(self._durations.get(label, ()))

    def summary(self) -> str:
        """One line: total seconds of each label, longest first."""
        totals = sorted(((sum(values), label) for label, values in self._durations.items()), reverse=True)
        return 'seconds: ' + ', '.join(f'{label} {total:.1f}' for total, label in totals)
