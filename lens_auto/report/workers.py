# SPDX-License-Identifier: Apache-2.0
"""Who did what: every process by every phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lens_auto.report.arrays import np

if TYPE_CHECKING:
    from lens_auto.report.store import Store
    from lens_auto.report.tree import Tree


@dataclass
class Cell:
    """All spans of one name in one process; times in nanoseconds."""

    name: str
    process: int
    count: int
    total: int

    @property
    def mean(self) -> float:
        """Nanoseconds a span."""
        return self.total / self.count


def workers(store: Store, tree: Tree) -> list[Cell]:
    """Every pair of a process and a span name it has, by process.

    Args:
        store: The run.
        tree: Its tree.
    """
    rows = tree.rows
    keys, inverse = np.unique(
        rows['process'].astype(np.int64) << 32 | rows['name'].astype(np.int64), return_inverse=True
    )
    inverse = inverse.reshape(-1)
    counts = np.bincount(inverse, minlength=len(keys))
    totals = np.zeros(len(keys), dtype=np.int64)
    np.add.at(totals, inverse, tree.duration)
    return [
        Cell(store.names[int(key) & 0xFFFFFFFF], int(key) >> 32, int(count), int(total))
        for key, count, total in zip(keys, counts, totals, strict=True)
    ]
