# SPDX-License-Identifier: Apache-2.0
"""Puts spans that overlap side by side: threads and coroutines of a process, none of which a span names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lens_auto.report.arrays import np

if TYPE_CHECKING:
    from lens_auto.report.arrays import Ints
    from lens_auto.report.tree import Tree

MOST_LANES = 64
"""Of one process. With more rollouts at a time, the rest share the last one."""


def lanes(tree: Tree) -> tuple[Ints, Ints]:
    """The lane of each span in its process, and how deep it lies in that lane.

    In a lane spans follow each other, or lie in one that encloses them. A span lies in its parent's lane where there is
    room, else in the first lane that has some.

    Args:
        tree: The run's tree.
    """
    rows = tree.rows
    # Outer before inner where both start at once.
    order: list[int] = np.lexsort((-tree.duration, rows['start'], rows['process'])).tolist()
    process: list[int] = rows['process'].tolist()
    start: list[int] = rows['start'].tolist()
    end: list[int] = rows['end'].tolist()
    parent: list[int] = tree.parent.tolist()
    lane, depth = [0] * len(order), [0] * len(order)
    current = -1
    open_: list[list[int]] = []  # of each lane the spans that are open in it, outermost first
    for row in order:
        if process[row] != current:
            current, open_ = process[row], []
        begin, until = start[row], end[row]
        above = parent[row]
        wanted = lane[above] if above >= 0 and process[above] == current else 0
        chosen = -1
        for number in (wanted, *range(len(open_))):
            if number < len(open_):
                inside = open_[number]
                while inside and end[inside[-1]] <= begin:
                    inside.pop()
                if not inside or (end[inside[-1]] >= until and _encloses(inside[-1], above, parent)):
                    chosen = number
                    break
        if chosen < 0:
            if len(open_) < MOST_LANES:
                open_.append([])
            chosen = len(open_) - 1
        lane[row], depth[row] = chosen, len(open_[chosen])
        open_[chosen].append(row)
    return np.array(lane, dtype=np.int64), np.array(depth, dtype=np.int64)


def _encloses(outer: int, above: int, parent: list[int]) -> bool:
    """Whether a span is the parent of another, or that one's parent, and so on."""
    for _ in range(64):
        if above == outer:
            return True
        if above < 0:
            return False
        above = parent[above]
    return False
