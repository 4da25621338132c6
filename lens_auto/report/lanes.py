# SPDX-License-Identifier: Apache-2.0
"""Puts spans that overlap side by side: threads and coroutines of a process, none of which a span names."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from lens_auto.report.arrays import np

if TYPE_CHECKING:
    from lens_auto.report.arrays import Ints
    from lens_auto.report.tree import Tree

_DEEPEST = 64  # spans that one lies in: the tree is no deeper
_NONE = -1


def order_of(tree: Tree) -> Ints:
    """All spans by process and start; where several start at once, what encloses before what is enclosed.

    Args:
        tree: The run's tree.
    """
    return np.lexsort((tree.depth, -tree.duration, tree.rows['start'], tree.rows['process']))


def lanes(tree: Tree, most: int | None = None) -> tuple[Ints, Ints]:
    """The lane of each span in its process, and how deep it lies in that lane.

    In a lane spans follow each other, or lie in one that encloses them. A span lies in its parent's lane where there is
    room, else in the first lane that has some.

    Args:
        tree: The run's tree.
        most: Lanes of a process; what finds no room in them lies in the last one, with what it overlaps. As many as it
            takes, if not given.
    """
    made = _Lanes(tree, most)
    process: list[int] = tree.rows['process'].tolist()
    order: list[int] = order_of(tree).tolist()
    for row in order:
        if process[row] != made.process:
            made.begin(process[row])
        made.put(row)
    return np.array(made.lane, dtype=np.int64), np.array(made.depth, dtype=np.int64)


class _Lanes:
    """The lanes of one process after the other, filled in the order of time.

    Attributes:
        lane: Of each span; -1 until it has one.
        depth: Of each span.
        process: Whose spans come now.
    """

    def __init__(self, tree: Tree, most: int | None) -> None:
        self._most = most
        self._of: list[int] = tree.rows['process'].tolist()
        self._start: list[int] = tree.rows['start'].tolist()
        self._end: list[int] = tree.rows['end'].tolist()
        self._parent: list[int] = tree.parent.tolist()
        self.lane = [_NONE] * len(self._of)
        self.depth = [0] * len(self._of)
        self.begin(_NONE)

    def begin(self, process: int) -> None:
        """Go on to another process.

        Args:
            process: Its number.
        """
        self.process = process
        self._open: list[list[int]] = []  # of each lane the spans that are open in it, outermost first
        self._busy: list[tuple[int, int]] = []  # when the outermost ends, lane; the next one first
        self._free: list[int] = []  # lanes in which nothing is open, and some in which something is again

    def put(self, row: int) -> None:
        """Give a span its lane.

        Args:
            row: It begins no earlier than the one before.
        """
        self._close(self._start[row])
        chosen = self._lane_for(row)
        inside = self._open[chosen]
        if not inside:
            heappush(self._busy, (self._end[row], chosen))
        self.lane[row], self.depth[row] = chosen, len(inside)
        inside.append(row)

    def _close(self, moment: int) -> None:
        while self._busy and self._busy[0][0] <= moment:
            _, lane = heappop(self._busy)
            left = self._open[lane] = [one for one in self._open[lane] if self._end[one] > moment]
            if left:  # it is shared
                heappush(self._busy, (min(self._end[one] for one in left), lane))
            else:
                heappush(self._free, lane)

    def _lane_for(self, row: int) -> int:
        above = self._parent[row]
        wanted = max(0, self.lane[above]) if above >= 0 and self._of[above] == self.process else 0
        around = self._around(row)
        if around == wanted or (wanted < len(self._open) and not self._open[wanted]):
            return wanted
        while self._free and self._open[self._free[0]]:
            heappop(self._free)
        if self._free and (around == _NONE or self._free[0] < around):
            return self._free[0]
        if around != _NONE:
            return around
        if self._most is None or len(self._open) < self._most:
            self._open.append([])
        return len(self._open) - 1

    def _around(self, row: int) -> int:
        """The lane whose innermost open span encloses this one: the parent's, else the first of several."""
        found, above = _NONE, self._parent[row]
        for nearest in range(_DEEPEST):
            if above < 0:
                break
            lane = self.lane[above]  # it has none if it begins later, whatever it encloses
            if lane != _NONE and self._of[above] == self.process and self._end[above] >= self._end[row]:
                inside = self._open[lane]
                while inside and self._end[inside[-1]] <= self._start[row]:
                    inside.pop()
                if inside and inside[-1] == above and (found == _NONE or lane < found):
                    found = lane
                    if not nearest:
                        break
            above = self._parent[above]
        return found
