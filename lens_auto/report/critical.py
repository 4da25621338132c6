# SPDX-License-Identifier: Apache-2.0
"""The critical path of a span: what it waited for at each moment, from its end back to its start, across processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lens_auto.report.arrays import np

if TYPE_CHECKING:
    from lens_auto.report.store import Store
    from lens_auto.report.tree import Tree

_MOST_CHILDREN = 2000  # of one span; of more, the longest


@dataclass
class Segment:
    """A piece of the path: the time in which this span, and nothing below it, held the rest up.

    Attributes:
        row: The span.
        start: Wall-clock nanoseconds.
        end: Wall-clock nanoseconds.
    """

    row: int
    start: int
    end: int


def critical_path(store: Store, tree: Tree, row: int) -> list[Segment]:
    """The pieces of a span's critical path, by time; together they are the span.

    A wait is passed through: where something else below the same span ran meanwhile (the task whose result `ray.get`
    waits for), that is what held it up.

    Args:
        store: The run.
        tree: Its tree.
        row: The span.
    """
    inside = _below(tree, row)
    start, end = tree.rows['start'], tree.rows['end']
    segments: list[Segment] = []
    # (span, from, until): a stack rather than recursion; pieces come out backwards in time.
    work: list[tuple[int, int, int, bool]] = [(row, int(start[row]), int(end[row]), True)]
    while work:
        span, low, high, open_up = work.pop()
        if high <= low:
            continue
        children = inside.get(span, []) if open_up else []
        picked = _last(tree, children, low, high)
        if picked is None:
            segments.append(Segment(span, low, high))
            continue
        child, begin, until = picked
        # Backwards: first what lies after the child, then the child, then what lies before it.
        work.append((span, low, begin, True))
        work.append((child, begin, until, True))
        if until < high:
            held = _waiting(tree, children, until, high)
            work.append((span if held is None else held, until, high, False))
    segments.reverse()
    return _joined(segments)


def _below(tree: Tree, row: int) -> dict[int, list[int]]:
    """Children of each span below one, those that end last first."""
    children: dict[int, list[int]] = {}
    order = np.argsort(tree.parent, kind='stable')
    parents = tree.parent[order]
    work = [row]
    while work:
        span = work.pop()
        low, high = np.searchsorted(parents, span), np.searchsorted(parents, span, side='right')
        found = order[low:high]
        if not len(found):
            continue
        if len(found) > _MOST_CHILDREN:
            length = tree.duration[found]
            found = found[np.argsort(-length, kind='stable')[:_MOST_CHILDREN]]
        listed = [int(one) for one in found[np.argsort(-tree.rows['end'][found], kind='stable')]]
        children[span] = listed
        work += listed
    return children


def _last(tree: Tree, children: list[int], low: int, high: int) -> tuple[int, int, int] | None:
    """Of the children that do something between two moments the one that did so last; no wait, if another did too."""
    best: tuple[int, int, int] | None = None
    waiting: tuple[int, int, int] | None = None
    start, end = tree.rows['start'], tree.rows['end']
    for child in children:
        until, begin = min(int(end[child]), high), max(int(start[child]), low)
        if until <= begin:
            continue
        if tree.waits[child]:
            if waiting is None or (until, -begin) > (waiting[2], -waiting[1]):
                waiting = (child, begin, until)
        elif best is None or (until, -begin) > (best[2], -best[1]):
            best = (child, begin, until)
    # A wait that ends after all work ended, and began after it too, is a wait for something that is not seen.
    if waiting is not None and (best is None or best[2] <= waiting[1]):
        return waiting
    return best


def _waiting(tree: Tree, children: list[int], low: int, high: int) -> int | None:
    """A wait that covers all the time between two moments: the result was ready, and on its way."""
    start, end = tree.rows['start'], tree.rows['end']
    return next(
        (one for one in children if tree.waits[one] and start[one] <= low and end[one] > low and end[one] <= high), None
    )


def _joined(segments: list[Segment]) -> list[Segment]:
    joined: list[Segment] = []
    for one in segments:
        if joined and joined[-1].row == one.row and joined[-1].end == one.start:
            joined[-1].end = one.end
        else:
            joined.append(one)
    return joined


def by_name(store: Store, tree: Tree, segments: list[Segment]) -> list[tuple[str, str, int]]:
    """(span name, process label, nanoseconds on the path), the longest first.

    Args:
        store: The run.
        tree: Its tree.
        segments: A path.
    """
    spent: dict[tuple[str, str], int] = {}
    for one in segments:
        key = (store.names[int(tree.rows['name'][one.row])], store.processes[int(tree.rows['process'][one.row])].label)
        spent[key] = spent.get(key, 0) + one.end - one.start
    return sorted(((*key, time) for key, time in spent.items()), key=lambda item: -item[2])
