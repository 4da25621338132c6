# SPDX-License-Identifier: Apache-2.0
"""What the program logged: first, last and best of each metric, and its course."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lens_auto.report.arrays import Floats, Ints, np
from lens_auto.report.store import SYSTEM

if TYPE_CHECKING:
    from lens_auto.report.store import Store

_FIRST = ('reward', 'loss', 'accuracy', 'acc', 'kl', 'entropy', 'score')
_UP = ('reward', 'accuracy', 'acc', 'score', 'success', 'win', 'throughput')
_DOWN = ('loss', 'perplexity', 'ppl', 'error', 'errors')


@dataclass
class Metric:
    """One metric over all processes.

    Attributes:
        best: The highest of what should rise, the lowest of what should fall, None of anything else.
        times: Wall-clock nanoseconds.
    """

    name: str
    unit: str
    kind: str
    count: int
    first: float
    last: float
    lowest: float
    highest: float
    best: float | None
    times: Ints = field(repr=False)
    values: Floats = field(repr=False)


def metrics(store: Store) -> list[Metric]:
    """All metrics, those people look for first.

    Args:
        store: The run.
    """
    together: dict[str, list[int]] = {}
    listed = list(store.series.values())
    for number, series in enumerate(listed):
        if not series.name.startswith(SYSTEM):
            together.setdefault(series.name, []).append(number)
    found: list[Metric] = []
    for name, numbers in together.items():
        times = np.concatenate([np.frombuffer(listed[n].times, dtype=np.int64) for n in numbers])
        values = np.concatenate([np.frombuffer(listed[n].values, dtype=np.float64) for n in numbers])
        order = np.argsort(times, kind='stable')
        times, values = times[order], values[order]
        finite = values[np.isfinite(values)]
        if not len(values):
            continue
        low = float(finite.min()) if len(finite) else float('nan')
        high = float(finite.max()) if len(finite) else float('nan')
        words = _words(name)
        best = high if any(word in words for word in _UP) else low if any(word in words for word in _DOWN) else None
        one = listed[numbers[0]]
        found.append(
            Metric(
                name,
                one.unit,
                one.kind,
                len(values),
                float(values[0]),
                float(values[-1]),
                low,
                high,
                best,
                times,
                values,
            )
        )
    return sorted(found, key=lambda one: (_rank(one.name), one.times[0], one.name))


def _words(name: str) -> list[str]:
    return name.lower().replace('/', '.').replace('_', '.').split('.')


def _rank(name: str) -> int:
    words = _words(name)
    return next((place for place, word in enumerate(_FIRST) if word in words), len(_FIRST))
