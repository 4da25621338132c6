# SPDX-License-Identifier: Apache-2.0
"""Times what goes by a label, and adds the times up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Timer:
    def __init__(self, context: dict[str, object] | None = None) -> None:
        self.context = context or {}
        self._running: dict[str, float] = {}
        self._elapsed: dict[str, list[float]] = {}

    def start(self, label: str, should_log: bool = False) -> None:
        if label in self._running:
            raise ValueError(f'{label} is running')
        self._running[label] = time.perf_counter()

    def stop(self, label: str) -> float:
        if label not in self._running:
            raise ValueError(f'{label} is not running')
        elapsed = time.perf_counter() - self._running.pop(label)
        self.record(label, elapsed)
        return elapsed

    def record(self, label: str, elapsed: float) -> None:
        self._elapsed.setdefault(label, []).append(elapsed)

    @contextmanager
    def time(self, label: str) -> Iterator[None]:
        self.start(label)
        try:
            yield
        finally:
            self.stop(label)

    def get_timing_metrics(self, reduction_op: str = 'mean') -> dict[str, float]:
        assert reduction_op == 'sum'
        return {label: sum(times) for label, times in self._elapsed.items()}

    def reset(self) -> None:
        self._running.clear()
        self._elapsed.clear()


class ThreadSafeTimer(Timer):
    """The same for several threads."""

    def __init__(self, context: dict[str, object] | None = None) -> None:
        super().__init__(context)
        self._lock = threading.RLock()

    def start(self, label: str, should_log: bool = False) -> None:
        with self._lock:
            super().start(label, should_log)

    def stop(self, label: str) -> float:
        with self._lock:
            return super().stop(label)

    def record(self, label: str, elapsed: float) -> None:
        with self._lock:
            super().record(label, elapsed)

    @contextmanager
    def time(self, label: str) -> Iterator[None]:
        self.start(label)
        try:
            yield
        finally:
            self.stop(label)
