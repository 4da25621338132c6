# SPDX-License-Identifier: Apache-2.0
"""Where the time went: the tree of span names, what each took, and how it varied from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lens_auto.report.arrays import Ints, np
from lens_auto.report.kinds import STEP
from lens_auto.report.steps import step_rows
from lens_auto.report.store import BUCKETS, ERROR, OPEN, TRUNCATED

if TYPE_CHECKING:
    from lens_auto.report.store import Store
    from lens_auto.report.tree import Tree


@dataclass
class Phase:
    """All spans of one name at one place of the tree; times in nanoseconds.

    Attributes:
        path: Names from the step, or from the root, down to this one.
        total: All of its time, over all processes.
        own: Time that no span below it covers.
        share: Part of the steps' time, of an average process where several share the work; None outside of steps.
        per_step: Mean per step.
        spread: Standard deviation of that from step to step.
        steps: Steps that the mean is over.
        bucket: `rl.bucket` of its spans.
        processes: Processes that have it.
        still_open: Spans that have not ended.
    """

    path: tuple[str, ...]
    count: int
    total: int
    own: int
    mean: float
    p50: float
    p95: float
    longest: int
    share: float | None = None
    per_step: float = 0.0
    spread: float = 0.0
    steps: int = 0
    group: str = ''
    bucket: str = ''
    processes: int = 0
    errors: int = 0
    cut_short: int = 0
    still_open: int = 0
    children: list[Phase] = field(default_factory=list['Phase'])

    @property
    def name(self) -> str:
        """The span's."""
        return self.path[-1]


def paths(tree: Tree) -> tuple[Ints, list[tuple[int, ...]]]:
    """Of each span the number of its place in the tree of names, and the names of each place. A step begins anew.

    Args:
        tree: The run's tree.
    """
    rows = tree.rows
    place = np.full(len(rows), -1, dtype=np.int64)
    known: dict[tuple[int, int], int] = {}
    listed: list[tuple[int, ...]] = []
    name = rows['name'].astype(np.int64)
    for depth, level in enumerate(tree.levels):
        if not len(level):
            continue
        above = place[tree.parent[level]] if depth else np.full(len(level), -1, dtype=np.int64)
        above = np.where((tree.kind[level] == STEP) & (tree.step[level] == level), -1, above)
        keys = (above + 1) << 32 | name[level]
        distinct, inverse = np.unique(keys, return_inverse=True)
        numbers = np.empty(len(distinct), dtype=np.int64)
        for n, key in enumerate(distinct):
            up, own = (int(key) >> 32) - 1, int(key) & 0xFFFFFFFF
            number = known.get((up, own))
            if number is None:
                number = known[(up, own)] = len(listed)
                listed.append((*(listed[up] if up >= 0 else ()), own))
            numbers[n] = number
        place[level] = numbers[inverse.reshape(-1)]
    return place, listed


def phases(store: Store, tree: Tree) -> list[Phase]:
    """All places of the tree, parents before children, siblings by their time.

    Args:
        store: The run.
        tree: Its tree.
    """
    rows = tree.rows
    if not len(rows):
        return []
    place, listed = paths(tree)
    size = len(listed)
    length = tree.duration
    order = np.lexsort((length, place))
    counts = np.bincount(place, minlength=size)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    ordered = length[order]
    flags = rows['flags']
    total, own = _sums(place, length, size), _sums(place, tree.own, size)
    errors = np.bincount(place[(flags & ERROR > 0) & (flags & TRUNCATED == 0)], minlength=size)
    cut = np.bincount(place[flags & TRUNCATED > 0], minlength=size)
    still = np.bincount(place[flags & OPEN > 0], minlength=size)
    tops = step_rows(tree)
    in_step = np.zeros(size, dtype=bool)
    in_step[place[tree.step >= 0]] = True
    step_time = float(length[tops].sum())
    step_processes = len(np.unique(rows['process'][tops])) or 1
    pairs = np.unique(place << 32 | rows['process'].astype(np.int64)) >> 32
    processes = np.bincount(pairs, minlength=size)
    mean, spread = _per_step(tree, place, tops, size)
    sample = np.zeros(size, dtype=np.int64)
    sample[place[::-1]] = np.arange(len(rows))[::-1]
    found: list[Phase] = []
    for number, path in enumerate(listed):
        many = int(counts[number])
        here = ordered[first[number] : first[number] + many]
        row = rows[sample[number]]
        one = Phase(
            tuple(store.names[name] for name in path),
            many,
            int(total[number]),
            int(own[number]),
            float(total[number]) / many,
            _quantile(here, 0.5),
            _quantile(here, 0.95),
            int(here[-1]),
        )
        if in_step[number] and step_time:
            one.share = float(total[number]) / max(1, int(processes[number])) / (step_time / step_processes)
            one.per_step, one.spread, one.steps = float(mean[number]), float(spread[number]), len(tops)
        one.group, one.bucket = store.groups[row['group']], BUCKETS[row['bucket']]
        one.processes, one.errors = int(processes[number]), int(errors[number])
        one.cut_short, one.still_open = int(cut[number]), int(still[number])
        found.append(one)
    return _in_order(found)


def _sums(place: Ints, values: Ints, size: int) -> Ints:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, place, values)
    return total


def _quantile(ordered: Ints, part: float) -> float:
    """Linear between the two nearest, as statistics books and numpy have it."""
    at = part * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low]) + (at - low) * float(ordered[high] - ordered[low])


def _per_step(tree: Tree, place: Ints, tops: Ints, size: int) -> tuple[Ints, Ints]:
    """Mean and standard deviation over all steps of the time that each place took in a step."""
    inside = np.flatnonzero(tree.step >= 0)
    if not len(inside) or not len(tops):
        return np.zeros(size), np.zeros(size)
    keys, inverse = np.unique(place[inside] << 32 | tree.step[inside], return_inverse=True)
    spent = np.bincount(inverse.reshape(-1), weights=tree.duration[inside].astype(float))
    of = (keys >> 32).astype(np.int64)
    mean = np.bincount(of, weights=spent, minlength=size) / len(tops)
    squares = np.bincount(of, weights=spent * spent, minlength=size) / len(tops)
    correction = len(tops) / max(1, len(tops) - 1)
    return mean, np.sqrt(np.maximum(0, squares - mean * mean) * correction)


def _in_order(found: list[Phase]) -> list[Phase]:
    by_path = {one.path: one for one in found}
    tops: list[Phase] = []
    for one in sorted(found, key=lambda each: -each.total):
        above = by_path.get(one.path[:-1])
        (above.children if above is not None else tops).append(one)
    ordered: list[Phase] = []
    work = tops[::-1]
    while work:
        one = work.pop()
        ordered.append(one)
        work += one.children[::-1]
    return ordered
