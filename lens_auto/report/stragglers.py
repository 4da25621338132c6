# SPDX-License-Identifier: Apache-2.0
"""Who was slower than its peers by its own doing. A rank that waits for another is never blamed.

Three things keep waits apart from work. Spans that are waits (`ray.get`, a collective, a buffer) are taken off what
encloses them. Where peers enter a phase at different times and leave it together, the phase ends with a hidden wait
for the last one, as `backward` does after a slow loader on one rank: there each is charged from the moment the last
one came. And of a phase and one inside it, the inner one is named if that explains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lens_auto.report.arrays import Floats, Ints, np
from lens_auto.report.kinds import STEP
from lens_auto.report.steps import step_rows
from lens_auto.report.store import OPEN, TRUNCATED

if TYPE_CHECKING:
    from lens_auto.report.store import Store
    from lens_auto.report.tree import Tree

SLOWER = 0.05  # of the others' median: less is not worth a look
SURE = 3.0  # standard errors, and scatter of the others
LOST = 0.01  # of the steps' time


@dataclass
class Straggler:
    """One process in one phase; times in nanoseconds a span.

    Attributes:
        mean: Its own time, waits taken off.
        median: That of the others.
        lost: Its excess over all spans.
        share: That, of the steps' time.
        peers: Processes compared, this one included.
    """

    process: int
    name: str
    mean: float
    median: float
    count: int
    lost: float
    share: float
    peers: int

    @property
    def ratio(self) -> float:
        """How many times the others' median."""
        return self.mean / self.median if self.median else float('inf')


def stragglers(store: Store, tree: Tree) -> list[Straggler]:
    """All processes that are slow by themselves, the one that costs most first.

    Args:
        store: The run.
        tree: Its tree.
    """
    rows = tree.rows
    if not len(rows):
        return []
    local = local_time(store, tree)
    usable = (rows['flags'] & (OPEN | TRUNCATED) == 0) & ~tree.waits & (tree.kind != STEP)
    chosen = np.flatnonzero(usable)
    kinds = {kind: n for n, kind in enumerate(dict.fromkeys(one.kind for one in store.processes))}
    kind = np.array([kinds[one.kind] for one in store.processes], dtype=np.int64)[rows['process'][chosen]]
    # Name, kind of process, process: one number, so that one sort tells them apart.
    keys = (rows['name'][chosen].astype(np.int64) << 20 | kind) << 20 | rows['process'][chosen]
    pairs, inverse = np.unique(keys, return_inverse=True)
    inverse = inverse.reshape(-1)
    count = np.bincount(inverse)
    own = local[chosen].astype(float)
    mean = np.bincount(inverse, weights=own) / count
    spread = np.sqrt(np.maximum(0, np.bincount(inverse, weights=own * own) / count - mean * mean))
    tops = step_rows(tree)
    # Of an average process: ranks have a step each, and each is as long.
    total = float(tree.duration[tops].sum()) / max(1, len(np.unique(rows['process'][tops])))
    if not total:
        total = float(rows['end'].max() - rows['start'].min()) or 1.0
    found: list[Straggler] = []
    if len(pairs):
        peers = pairs >> 20
        first: list[int] = np.flatnonzero(np.concatenate([[True], peers[1:] != peers[:-1]])).tolist()
        for begin, end in zip(first, [*first[1:], len(pairs)], strict=True):
            if end - begin > 1:
                name = store.names[int(pairs[begin]) >> 40]
                numbers = pairs[begin:end] & 0xFFFFF
                found += _slow(name, numbers, mean[begin:end], spread[begin:end], count[begin:end], total)
    inner = _inside(store, tree)
    named = {(one.process, one.name): one for one in found}
    explained = {
        (process, outer)
        for (process, name), one in named.items()
        for outer in inner.get(name, ())
        if (process, outer) in named and one.lost >= 0.6 * named[(process, outer)].lost
    }
    return sorted(
        (one for key, one in named.items() if key not in explained and one.share >= LOST), key=lambda one: -one.lost
    )


def _slow(name: str, processes: Ints, mean: Floats, spread: Floats, count: Ints, total: float) -> list[Straggler]:
    found: list[Straggler] = []
    order = np.sort(mean)
    size = len(mean)
    for place in range(size):
        # The median of the others, without making a list of them for each.
        rank = int(np.searchsorted(order, mean[place]))
        others = np.delete(order, rank) if size <= 64 else order
        middle = float(np.median(others))
        excess = float(mean[place]) - middle
        if excess <= SLOWER * middle:
            continue
        error = float(spread[place]) / np.sqrt(count[place]) if count[place] > 1 else float(mean[place]) * 0.1
        scatter = 1.4826 * float(np.median(np.abs(others - middle))) if len(others) >= 3 else 0.0
        if excess <= SURE * max(error, scatter):
            continue
        lost = excess * int(count[place])
        found.append(
            Straggler(
                int(processes[place]), name, float(mean[place]), middle, int(count[place]), lost, lost / total, size
            )
        )
    return found


def local_time(store: Store, tree: Tree) -> Ints:
    """Nanoseconds of each span that its process spent by itself: less waits inside, and less the wait at its end.

    Args:
        store: The run.
        tree: Its tree.
    """
    rows, parent = tree.rows, tree.parent
    length = tree.duration
    waiting = np.where(tree.waits, length, 0)
    for level in reversed(tree.levels[1:]):
        above = parent[level]
        counted = rows['process'][level] == rows['process'][above]
        np.add.at(waiting, above[counted], waiting[level[counted]])
        waiting = np.minimum(waiting, length)
    local = length - waiting
    hidden = _left_together(store, tree)
    return np.where(hidden >= 0, np.minimum(local, hidden), local)


def _left_together(store: Store, tree: Tree) -> Ints:
    """Nanoseconds from the arrival of the last peer, where peers left a phase together; -1 elsewhere."""
    rows = tree.rows
    answer = np.full(len(rows), -1, dtype=np.int64)
    unit = _units(tree)
    chosen = np.flatnonzero(unit >= 0)
    if not len(chosen):
        return answer
    # Rows are sorted by start: a stable sort by name, step and rank leaves each rank's spans of a name in their order.
    _, here = np.unique(unit[chosen], return_inverse=True)
    phase = rows['name'][chosen].astype(np.int64) * (int(here.max()) + 1) + here.reshape(-1)
    key = phase * len(store.processes) + rows['process'][chosen]
    order = np.argsort(key, kind='stable')
    chosen, phase, key = chosen[order], phase[order], key[order]
    index = np.arange(len(chosen))
    # The n-th span of that name of each rank in that step belongs to the n-th of the others.
    turn = index - np.maximum.accumulate(np.where(np.concatenate([[True], key[1:] != key[:-1]]), index, 0))
    key = phase * (int(turn.max()) + 1) + turn
    order = np.argsort(key, kind='stable')
    chosen, key = chosen[order], key[order]
    first = np.concatenate([[True], key[1:] != key[:-1]])
    begins = np.flatnonzero(first)
    start, end = rows['start'][chosen], rows['end'][chosen]
    latest, earliest = np.maximum.reduceat(start, begins), np.minimum.reduceat(start, begins)
    apart = np.maximum.reduceat(end, begins) - np.minimum.reduceat(end, begins)
    longest = np.maximum.reduceat(end - start, begins)
    together = (apart * 2 < latest - earliest) & ((latest - earliest) * 20 > longest)
    group = np.cumsum(first) - 1
    answer[chosen] = np.where(together[group], np.maximum(0, end - latest[group]), -1)
    return answer


def _units(tree: Tree) -> Ints:
    """The number of the step of each span, the same in all ranks; -1 where ranks have no steps of their own."""
    rows = tree.rows
    tops = step_rows(tree)
    number = np.full(len(rows), -1, dtype=np.int64)
    process = rows['process'][tops]
    if len(np.unique(process)) < 2:
        return number
    iteration = rows['iteration'][tops].astype(np.int64)
    order = np.argsort(process, kind='stable')
    sorted_process = process[order]
    index = np.arange(len(tops))
    begin = np.maximum.accumulate(
        np.where(np.concatenate([[True], sorted_process[1:] != sorted_process[:-1]]), index, 0)
    )
    turn = np.empty(len(tops), dtype=np.int64)
    turn[order] = index - begin
    number[tops] = np.where(iteration >= 0, iteration, turn)
    inside = tree.step >= 0
    return np.where(inside, number[np.maximum(tree.step, 0)], -1)


def _inside(store: Store, tree: Tree) -> dict[str, set[str]]:
    """Name of a span -> names of those that enclose it in its process."""
    rows, parent = tree.rows, tree.parent
    child = np.flatnonzero(parent >= 0)
    child = child[rows['process'][child] == rows['process'][parent[child]]]
    pairs = np.unique(rows['name'][child].astype(np.int64) << 32 | rows['name'][parent[child]].astype(np.int64))
    direct: dict[str, set[str]] = {}
    for pair in pairs:
        direct.setdefault(store.names[int(pair) >> 32], set()).add(store.names[int(pair) & 0xFFFFFFFF])
    every: dict[str, set[str]] = {}
    for name, above in direct.items():
        seen: set[str] = set()
        work = list(above)
        while work:
            one = work.pop()
            if one not in seen and one != name:
                seen.add(one)
                work += direct.get(one, ())
        every[name] = seen
    return every
