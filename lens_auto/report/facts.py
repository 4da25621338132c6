# SPDX-License-Identifier: Apache-2.0
"""The figures that verdicts are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lens_auto.collect.figures import time as figures
from lens_auto.report.arrays import Ints, np
from lens_auto.report.goodput import Goodput, goodput
from lens_auto.report.kinds import JOB, KINDS, STEP, WAIT
from lens_auto.report.steps import Step, by_kind, named_kinds, steps
from lens_auto.report.store import OPEN, TRUNCATED
from lens_auto.report.stragglers import Straggler, stragglers

if TYPE_CHECKING:
    from lens_auto.report.store import Store
    from lens_auto.report.tree import Tree

_GENERATION = KINDS.index('generation')
_UMBRELLAS = (STEP, JOB, KINDS.index('setup'))
_FEW = 8  # rollouts of a batch: with fewer there is no tail to speak of
_WARM_UP = 4  # from this many steps on the first one is left out: it compiles, fills caches, waits for workers
_SHORT = 1_000_000_000  # nanoseconds: a span that is usually shorter is not suspect for a moment more
_PAUSES = ('limit_pause', 'buffer_full', 'backoff')


@dataclass
class Facts:
    """What is known of a run, as shares of the steps' time unless said otherwise.

    Attributes:
        steps: How many were looked at.
        skipped_first: The first step was left out.
        shares: Kind -> share; 'other' is what no phase covers, 'wait' what is idle time.
        waits: Name of each wait directly in the steps -> share.
        beside: Time in which generation went on outside of the steps, as part of the time they span.
        pause: Part of that span of time in which a generating process paused for the trainer.
        pausing: Who did, and in what.
        wasted: Share of bucket `wasted`.
        tail: Part of the generation time in which nine tenths of the rollouts had ended already.
        slow: Processes that are slow by themselves.
        worst_checkpoint: (step number, share of that step).
        stuck: Open spans that are no waits: (row, nanoseconds open, the longest of its name that ended or 0).
        says_stuck: The worst of them, in words.
    """

    steps: int = 0
    skipped_first: bool = False
    mean_step: float = 0.0
    shares: dict[str, float] = field(default_factory=dict[str, float])
    waits: dict[str, float] = field(default_factory=dict[str, float])
    beside: float = 0.0
    pause: float = 0.0
    pausing: tuple[str, str] = ('', '')
    wasted: float = 0.0
    tail: float = 0.0
    slow: list[Straggler] = field(default_factory=list[Straggler])
    worst_checkpoint: tuple[int, float] = (0, 0.0)
    stuck: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    says_stuck: str = ''
    goodput: Goodput | None = None
    listed: list[Step] = field(default_factory=list[Step])
    labels: list[str] = field(default_factory=list[str])


def facts(store: Store, tree: Tree) -> Facts:
    """Everything that the rules ask for.

    Args:
        store: The run.
        tree: Its tree.
    """
    found = Facts(labels=[one.label for one in store.processes])
    found.stuck = [one for one in open_spans(store, tree) if is_work(tree, one[0])]
    if found.stuck:
        row, age, longest = suspects(found.stuck)[0]
        usual = f', {figures(longest)} at most before' if longest else ''
        name = store.names[int(tree.rows['name'][row])]
        found.says_stuck = (
            f'{found.labels[int(tree.rows["process"][row])]} has been in {name} for {figures(age)}{usual}'
        )
    found.listed = steps(store, tree)
    tops, table = by_kind(tree)
    rows = tree.rows
    done = rows['flags'][tops] & (OPEN | TRUNCATED) == 0
    tops, table = tops[done], table[done]
    if not len(tops):
        return found
    # The first of each process.
    if len(tops) >= _WARM_UP * len(np.unique(rows['process'][tops])):
        order = np.lexsort((rows['start'][tops], rows['process'][tops]))
        process = rows['process'][tops][order]
        later = np.concatenate([[False], process[1:] == process[:-1]])
        kept = np.sort(order[later])
        tops, table = tops[kept], table[kept]
        found.skipped_first = True
    ended = [one for one in found.listed if not one.cut_short]
    found.steps = len(ended) - int(found.skipped_first)
    time = float(table.sum())
    found.mean_step = time / len(tops)
    found.shares = {name: spent / time for name, spent in named_kinds(table.sum(axis=0)).items()}
    found.goodput = goodput(tree)
    found.wasted = found.goodput.share('wasted')
    found.slow = stragglers(store, tree)
    _waits(store, tree, tops, found, time)
    _beside(store, tree, tops, found)
    found.tail = _tail(tree)
    for one in ended:
        share = one.kinds.get('checkpoint', 0) / max(1, one.duration)
        if share > found.worst_checkpoint[1]:
            found.worst_checkpoint = (one.number, share)
    return found


def _waits(store: Store, tree: Tree, tops: Ints, found: Facts, time: float) -> None:
    chosen = np.zeros(len(tree.rows) + 1, dtype=bool)
    chosen[tops] = True
    waits = np.flatnonzero((tree.kind == WAIT) & chosen[tree.parent])
    for row in waits:
        name = store.names[int(tree.rows['name'][row])]
        found.waits[name] = found.waits.get(name, 0.0) + float(tree.duration[row]) / time


def _beside(store: Store, tree: Tree, tops: Ints, found: Facts) -> None:
    """Generation outside of the steps, and its pauses: what an asynchronous run does."""
    rows = tree.rows
    begin, end = int(rows['start'][tops].min()), int(rows['end'][tops].max())
    window = max(1, end - begin)
    outside = (tree.step < 0) & (rows['end'] > begin) & (rows['start'] < end)
    # Its outermost spans are enough.
    above = tree.parent
    outer = (above < 0) | (tree.kind[np.maximum(above, 0)] != _GENERATION)
    busy = outside & outer & (tree.kind == _GENERATION) & ~tree.waits
    found.beside = _union(rows['start'][busy], rows['end'][busy], begin, end) / window
    pauses = np.array([any(word in name for word in _PAUSES) for name in store.names] or [False])
    for name in np.flatnonzero(pauses):
        here = outside & (rows['name'] == name)
        for process in np.unique(rows['process'][here]):
            mine = here & (rows['process'] == process)
            part = _union(rows['start'][mine], rows['end'][mine], begin, end) / window
            if part > found.pause:
                found.pause, found.pausing = part, (store.processes[int(process)].label, store.names[int(name)])


def _union(starts: Ints, ends: Ints, low: int, high: int) -> int:
    """Nanoseconds that at least one of the intervals covers; they are sorted by start."""
    if not len(starts):
        return 0
    starts, ends = np.clip(starts, low, high), np.clip(ends, low, high)
    reach = np.maximum.accumulate(ends)
    before = np.concatenate([[low], reach[:-1]])
    return int(np.maximum(0, ends - np.maximum(starts, before)).sum())


def _tail(tree: Tree) -> float:
    """See `Facts.tail`; 0 where no batch has as many rollouts as make a tail."""
    rows, parent = tree.rows, tree.parent
    busy = (tree.kind == _GENERATION) & ~tree.waits & (rows['flags'] & (OPEN | TRUNCATED) == 0)
    top = np.full(len(rows), -1, dtype=np.int64)
    holds = np.zeros(len(rows), dtype=bool)
    for level in tree.levels:
        above = parent[level]
        inside = (above >= 0) & (top[np.maximum(above, 0)] >= 0) & (tree.kind[np.maximum(above, 0)] != STEP)
        top[level] = np.where(inside, top[np.maximum(above, 0)], np.where(busy[level], level, -1))
        real = level[busy[level] & inside]
        holds[parent[real]] = True
    leaves = np.flatnonzero(busy & ~holds & (top >= 0) & (top != np.arange(len(rows))))
    if not len(leaves):
        return 0.0
    batch = top[leaves]
    order = np.lexsort((rows['end'][leaves], batch))
    leaves, batch = leaves[order], batch[order]
    first = np.flatnonzero(np.concatenate([[True], batch[1:] != batch[:-1]]))
    count = np.diff(np.concatenate([first, [len(batch)]]))
    many = count >= _FEW
    if not many.any():
        return 0.0
    first, count = first[many], count[many]
    nine_tenths = leaves[first + np.ceil(count * 0.9).astype(np.int64) - 1]
    last = leaves[first + count - 1]
    spent = tree.duration[batch[first]]
    tail = np.minimum(rows['end'][last] - rows['end'][nine_tenths], spent)
    return float(tail.sum() / max(1, spent.sum()))


def open_spans(store: Store, tree: Tree) -> list[tuple[int, int, int]]:
    """Innermost spans that are open: (row, nanoseconds, the longest that ended of that name); the oldest first.

    Args:
        store: The run.
        tree: Its tree.
    """
    rows, parent = tree.rows, tree.parent
    still = np.flatnonzero(rows['flags'] & OPEN)
    if not len(still):
        return []
    holds = np.zeros(len(rows) + 1, dtype=bool)
    inner = still[parent[still] >= 0]
    same = rows['process'][inner] == rows['process'][parent[inner]]
    holds[parent[inner[same]]] = True
    longest = np.zeros(len(store.names), dtype=np.int64)
    ended = np.flatnonzero(rows['flags'] & (OPEN | TRUNCATED) == 0)
    np.maximum.at(longest, rows['name'][ended], tree.duration[ended])
    found = [(int(row), int(tree.duration[row]), int(longest[rows['name'][row]])) for row in still if not holds[row]]
    return sorted(found, key=lambda one: -one[1])


def is_work(tree: Tree, row: int) -> bool:
    """Whether an open span is one that can be stuck: no wait for others, and no umbrella that is open all the time.

    Args:
        tree: The run's tree.
        row: The span.
    """
    return not tree.waits[row] and int(tree.kind[row]) not in _UMBRELLAS


def suspects(listed: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The same, those first that are open for longest compared with others of their name.

    Args:
        listed: As `open_spans` gives them.
    """
    return sorted(listed, key=lambda one: -one[1] / max(one[2], _SHORT))
