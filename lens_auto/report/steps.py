# SPDX-License-Identifier: Apache-2.0
"""The steps of a run, and what each was spent on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lens_auto.report.arrays import Floats, Ints, np
from lens_auto.report.kinds import KINDS, STEP
from lens_auto.report.store import OPEN, TRUNCATED

if TYPE_CHECKING:
    from lens_auto.report.store import Store
    from lens_auto.report.tree import Tree

OTHER = 'other'


@dataclass
class Step:
    """One step of the process that leads the run; times in nanoseconds.

    Attributes:
        number: `rl.iteration`, else its place in the run from 1 on.
        row: Its span.
        start: Wall-clock nanoseconds.
        kinds: What it was about -> nanoseconds; together they are its duration. 'other' is what no phase covers.
        phases: Name of each span directly below it -> nanoseconds.
    """

    number: int
    row: int
    start: int
    duration: int
    cut_short: bool = False
    kinds: dict[str, int] = field(default_factory=dict[str, int])
    phases: dict[str, int] = field(default_factory=dict[str, int])


def step_rows(tree: Tree) -> Ints:
    """Rows of all steps of all processes; a step inside a step is a part of it."""
    found = np.flatnonzero(tree.kind == STEP)
    above = tree.parent[found]
    inside = (above >= 0) & (tree.step[np.maximum(above, 0)] >= 0)
    return found[~inside]


def lead(store: Store, tree: Tree) -> int:
    """The process whose steps are the run's: the driver, or the lowest rank of those with most steps; -1 for none.

    Args:
        store: The run.
        tree: Its tree.
    """
    rows = step_rows(tree)
    if not len(rows):
        return -1
    counts = np.bincount(tree.rows['process'][rows], minlength=len(store.processes))
    most = counts.max()

    def order(number: int) -> tuple[bool, bool, int, int]:
        process = store.processes[number]
        # A rank that died a step early leads no less than the others.
        few = counts[number] < 0.8 * most
        return few, process.role != 'driver', process.rank if process.rank is not None else 1 << 30, number

    return min((int(n) for n in np.flatnonzero(counts)), key=order)


def attributed(tree: Tree) -> Floats:
    """Nanoseconds of its step's time that each span stands for: a step's spans add up to the step.

    Only spans in the step's own process count. Spans that overlap (rollouts that are awaited together) share the time
    they cover, in proportion to their lengths.

    Args:
        tree: The run's tree.
    """
    rows, parent = tree.rows, tree.parent
    length = tree.duration.astype(float)
    budget = np.zeros(len(rows))
    tops = step_rows(tree)
    budget[tops] = length[tops]
    same = (parent >= 0) & (rows['process'] == rows['process'][np.maximum(parent, 0)])
    inside = np.zeros(len(rows))
    child = np.flatnonzero(same)
    np.add.at(inside, parent[child], length[child])
    spread = np.where(inside > 0, (length - tree.local) / np.maximum(inside, 1), 0.0)
    with np.errstate(divide='ignore', invalid='ignore'):
        scale = np.zeros(len(rows))
        scale[tops] = 1.0
        for level in tree.levels[1:]:
            here = level[same[level]]
            here = here[budget[here] == 0]
            above = parent[here]
            scale[here] = scale[above] * spread[above]
            budget[here] = length[here] * scale[here]
    return tree.local * scale


def by_kind(tree: Tree) -> tuple[Ints, Floats]:
    """Rows of all steps, and for each the nanoseconds spent on each of KINDS.

    Args:
        tree: The run's tree.
    """
    tops = step_rows(tree)
    place = np.full(len(tree.rows) + 1, -1, dtype=np.int64)
    place[tops] = np.arange(len(tops))
    time = attributed(tree)
    top = _outermost(tree, tops)
    used = np.flatnonzero((time > 0) & (top >= 0))
    table = np.zeros((len(tops), len(KINDS)))
    np.add.at(table, (place[top[used]], tree.kind[used]), time[used])
    return tops, table


def _outermost(tree: Tree, tops: Ints) -> Ints:
    """The outermost step of each span, -1 outside of any."""
    top = np.full(len(tree.rows), -1, dtype=np.int64)
    top[tops] = tops
    for level in tree.levels[1:]:
        above = top[tree.parent[level]]
        top[level] = np.where(above >= 0, above, top[level])
    return top


def steps(store: Store, tree: Tree) -> list[Step]:
    """The steps of the process that leads the run, by time.

    Args:
        store: The run.
        tree: Its tree.
    """
    leader = lead(store, tree)
    if leader < 0:
        return []
    tops, table = by_kind(tree)
    rows = tree.rows
    mine = np.flatnonzero(rows['process'][tops] == leader)
    found: list[Step] = []
    for number, place in enumerate(mine, 1):
        row = int(tops[place])
        iteration = int(rows['iteration'][row])
        one = Step(
            iteration if iteration >= 0 else number,
            row,
            int(rows['start'][row]),
            int(rows['end'][row] - rows['start'][row]),
            bool(rows['flags'][row] & (TRUNCATED | OPEN)),
        )
        one.kinds = named_kinds(table[place])
        found.append(one)
    of_row = {one.row: one for one in found}
    children = np.flatnonzero((tree.parent >= 0) & np.isin(tree.parent, np.array(list(of_row), dtype=np.int64)))
    for child in children:
        phases = of_row[int(tree.parent[child])].phases
        name = store.names[int(rows['name'][child])]
        phases[name] = phases.get(name, 0) + int(rows['end'][child] - rows['start'][child])
    return found


def named_kinds(line: Floats) -> dict[str, int]:
    """Nanoseconds by kind, the longest first; what no phase covers is 'other'.

    Args:
        line: A row of `by_kind`.
    """
    named: dict[str, int] = {}
    for kind, spent in zip(KINDS, line, strict=True):
        if spent:
            name = OTHER if kind in ('', 'step') else kind
            named[name] = named.get(name, 0) + round(float(spent))
    return dict(sorted(named.items(), key=lambda item: -item[1]))
