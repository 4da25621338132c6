# SPDX-License-Identifier: Apache-2.0
"""Who encloses whom, which step each span belongs to, and how long it was busy itself: whole columns at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lens_auto.report import kinds
from lens_auto.report.arrays import Flags, Floats, Ints, Rows, np
from lens_auto.report.store import ROW, SKEWED

if TYPE_CHECKING:
    from lens_auto.report.store import Store

_DEEPEST = 64


@dataclass
class Tree:
    """Columns that belong to `rows`, one value a span.

    Attributes:
        rows: The spans, less those that occurred twice; sorted by start.
        parent: Row of the parent, -1 for none.
        depth: 0 for a span without a parent.
        step: Row of the step that a span is, or lies in; -1 for none.
        own: Nanoseconds that no child covers.
        local: Nanoseconds that no child in the same process covers.
        waits: Whether it is a wait.
        kind: Index into `kinds.KINDS`: what it is about; a span that does not say takes its parent's.
        levels: Rows of each depth, from the top.
        skew: Process -> nanoseconds that its clock was put forward.
        duplicates: Spans that occurred twice.
        orphans: Spans whose parent is not there.
    """

    rows: Rows
    parent: Ints
    depth: Ints
    step: Ints
    own: Ints
    local: Ints
    waits: Flags
    kind: Ints
    levels: list[Ints]
    skew: dict[int, int]
    duplicates: int = 0
    orphans: int = 0

    @property
    def duration(self) -> Ints:
        """Nanoseconds of each span."""
        return self.rows['end'] - self.rows['start']


def build(store: Store) -> Tree:
    """The tree of all spans of a store; `store.versions` is renumbered to its rows.

    Args:
        store: What was read.
    """
    raw = store.rows()
    rows, places = _once(raw)
    duplicates = len(raw) - len(rows)
    moved = {int(old): new for new, old in enumerate(places)} if store.versions else {}
    store.versions = {moved[row]: version for row, version in store.versions.items() if row in moved}
    parent = _parents(rows)
    orphans = int(((rows['parent'] != 0) & (parent < 0)).sum())
    levels, depth = _levels(parent)
    skew = _corrected(rows, parent, levels, store)
    named = np.array([kinds.of_name(name) for name in store.names] or [0], dtype=np.int64)
    grouped = np.array([kinds.of_group(group) for group in store.groups], dtype=np.int64)
    waiting = np.array([kinds.is_wait(name) for name in store.names] or [False], dtype=bool)
    idle = rows['bucket'] == kinds.IDLE_BUCKET
    group = rows['group'].astype(np.int64)
    waits = waiting[rows['name']] | idle
    if 'wait' in store.groups:
        waits = waits | (group == store.groups.index('wait'))
    kind = grouped[group]
    kind = np.where(kind == kinds.UNSAID, named[rows['name']], kind)
    kind = np.where(idle & (kind == kinds.UNSAID), kinds.WAIT, kind)
    says = kind.copy()
    is_step = _steps(store, rows, kind)
    kind[is_step] = kinds.STEP
    step = np.where(is_step, np.arange(len(rows)), -1)
    for level in levels[1:]:
        above = parent[level]
        inherited = step[above]
        step[level] = np.where(inherited >= 0, inherited, step[level])
        # A wait is about what encloses it, if that says what it is about; only directly in a step its name decides.
        from_above = kind[above]
        take = (
            (from_above != kinds.UNSAID) & (from_above != kinds.STEP) & ((says[level] == kinds.UNSAID) | waits[level])
        )
        kind[level] = np.where(take, from_above, kind[level])
    own = rows['end'] - rows['start'] - covered(rows, parent, parent >= 0)
    same = (parent >= 0) & (rows['process'] == rows['process'][np.maximum(parent, 0)])
    local = rows['end'] - rows['start'] - covered(rows, parent, same)
    return Tree(rows, parent, depth, step, own, local, waits, kind, levels, skew, duplicates, orphans)


def _once(raw: Rows) -> tuple[Rows, Ints]:
    """The spans sorted by start, each id once, and where each was: of two the one that is not cut short, or longer."""
    if not len(raw):
        return np.empty(0, dtype=ROW), np.empty(0, dtype=np.int64)
    order = np.argsort(raw['id'], kind='stable')
    ids = raw['id'][order]
    again = np.flatnonzero(ids[1:] == ids[:-1]) + 1
    if len(again):
        # Few: those that occur twice are sorted once more, the best of each id first.
        flags, length = raw['flags'][order], raw['end'][order] - raw['start'][order]
        order = order[np.lexsort((-length, flags & 14, ids))]
        first = np.ones(len(order), dtype=bool)
        first[1:] = ids[1:] != ids[:-1]
        order = order[first]
    order = order[np.argsort(raw['start'][order], kind='stable')]
    return raw[order], order


def _parents(rows: Rows) -> Ints:
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    by_id = np.argsort(rows['id'], kind='stable')
    ids = rows['id'][by_id]
    places = np.minimum(np.searchsorted(ids, rows['parent']), len(ids) - 1)
    parent = np.where(ids[places] == rows['parent'], by_id[places], -1)
    parent[rows['parent'] == 0] = -1
    parent[parent == np.arange(len(rows))] = -1
    return parent


def _levels(parent: Ints) -> tuple[list[Ints], Ints]:
    """Rows of each depth. What is deeper than any program, or encloses itself, becomes a root: `parent` is changed."""
    depth = np.where(parent < 0, 0, -1)
    above = np.flatnonzero(parent < 0)
    levels = [above]
    left = np.flatnonzero(parent >= 0)
    while len(left):
        known = depth[parent[left]] >= 0
        here = left[known]
        if not len(here) or len(levels) > _DEEPEST:
            parent[left] = -1
            depth[left] = 0
            levels[0] = np.concatenate([levels[0], left])
            break
        depth[here] = len(levels)
        levels.append(here)
        left = left[~known]
    return levels, depth


def _corrected(rows: Rows, parent: Ints, levels: list[Ints], store: Store) -> dict[int, int]:
    """Put clocks right: a child on another host that lies outside its parent shows how far that host's clock is off.

    All spans of a host are moved by the least that brings most of such children inside; `rows` is changed.
    """
    hosts = [process.host for process in store.processes]
    if len(set(hosts)) < 2:
        return {}
    named = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    host = np.array([named[name] for name in hosts], dtype=np.int64)[rows['process']]
    child = np.flatnonzero(parent >= 0)
    child = child[host[child] != host[parent[child]]]
    if not len(child):
        return {}
    # Two clocks differ by one amount: each pair of hosts has a window of shifts that fits, the narrowest of its spans.
    above = parent[child]
    fits = (rows['end'][child] - rows['start'][child]) <= (rows['end'][above] - rows['start'][above])
    child, above = child[fits], above[fits]
    shifts: dict[int, int] = {int(host[levels[0][0]]): 0} if len(levels[0]) else {}
    pairs = sorted({(int(a), int(b)) for a, b in zip(host[above], host[child], strict=True)})
    for _ in range(len(named)):
        for top, low in pairs:
            if low in shifts or top not in shifts:
                if top in shifts or low not in shifts:
                    continue
                shifts[top] = shifts[low]  # nothing tells: taken to agree
                continue
            those = (host[above] == top) & (host[child] == low)
            least = rows['start'][above[those]] + shifts[top] - rows['start'][child[those]]
            most = rows['end'][above[those]] + shifts[top] - rows['end'][child[those]]
            low_end, high_end = int(np.percentile(least, 95)), int(np.percentile(most, 5))
            # Nothing fits all of them: they lie outside for another reason, such as tasks that nobody waits for.
            if low_end <= 0 <= high_end or low_end > high_end:
                shifts[low] = 0
            else:
                shifts[low] = low_end if low_end > 0 else high_end
    moved: dict[int, int] = {}
    amounts = np.zeros(len(named), dtype=np.int64)
    for number, shift in shifts.items():
        amounts[number] = shift
    if amounts.any():
        rows['start'] += amounts[host]
        rows['end'] += amounts[host]
        rows['flags'] |= np.where(amounts[host] != 0, SKEWED, 0).astype('u1')
        moved = {n: int(amounts[named[name]]) for n, name in enumerate(hosts) if amounts[named[name]]}
    return moved


def _steps(store: Store, rows: Rows, kind: Ints) -> Flags:
    """Which spans are steps: those of group `step`; else, of another producer, those whose name ends so."""
    found = kind == kinds.STEP
    if not found.any():
        named = np.array([kinds.names_step(name) for name in store.names] or [False], dtype=bool)
        found = named[rows['name']] if len(rows) else found
    return found


def covered(rows: Rows, parent: Ints, chosen: Flags) -> Ints:
    """Nanoseconds of each span that chosen children cover; where they overlap they count once.

    Args:
        rows: The spans.
        parent: Row of each one's parent.
        chosen: Spans to count, all with a parent.
    """
    total = np.zeros(len(rows), dtype=np.int64)
    child = np.flatnonzero(chosen)
    if not len(child):
        return total
    # Rows are sorted by start, so a stable sort by parent leaves the children of each in that order.
    child = child[np.argsort(parent[child], kind='stable')]
    above = parent[child]
    length = rows['end'][above] - rows['start'][above]
    begin = np.clip(rows['start'][child] - rows['start'][above], 0, length)
    end = np.clip(rows['end'][child] - rows['start'][above], begin, length)
    # All parents are laid out on one line, one after the other: a running maximum over it never mixes two of them.
    first = np.ones(len(child), dtype=bool)
    first[1:] = above[1:] != above[:-1]
    lengths = length[first].astype(float)
    offsets = np.concatenate([[0.0], np.cumsum(lengths + 1)[:-1]])
    if lengths.sum() < float(1 << 61):
        exact: Ints = np.concatenate([[0], np.cumsum(length[first] + 1)[:-1]])
        offset = exact[np.cumsum(first) - 1]
        reach = np.maximum.accumulate(end + offset)
        before = np.empty_like(reach)
        before[0] = 0
        before[1:] = reach[:-1]
        gained = np.maximum(0, end + offset - np.maximum(begin + offset, before))
    else:  # nonsense lengths, as only a damaged file has them
        offset_f: Floats = offsets[np.cumsum(first) - 1]
        reach_f = np.maximum.accumulate(end + offset_f)
        before_f = np.concatenate([[0.0], reach_f[:-1]])
        gained = np.maximum(0.0, end + offset_f - np.maximum(begin + offset_f, before_f)).astype(np.int64)
    np.add.at(total, above, gained)
    return np.minimum(total, rows['end'] - rows['start'])
