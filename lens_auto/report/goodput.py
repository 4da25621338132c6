# SPDX-License-Identifier: Apache-2.0
"""How much of the steps was productive: the account by `rl.bucket`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lens_auto.report.arrays import Floats, Ints, np
from lens_auto.report.steps import step_rows
from lens_auto.report.store import BUCKETS

if TYPE_CHECKING:
    from lens_auto.report.tree import Tree

UNACCOUNTED = 'unaccounted'
_ORDER = ('idle', 'wasted', 'productive', 'overhead')
"""Where spans of several buckets overlap, the first decides. A wait is what nothing useful is done behind; work by
several workers counts once; what is done beside productive work costs nothing."""


@dataclass
class Goodput:
    """The account of all steps, in nanoseconds; of a step that several processes share, of each.

    Attributes:
        seconds: Bucket -> nanoseconds; UNACCOUNTED is what no span with a bucket covers. Together they are `total`.
        per_step: The same for each step, one row a step in the order of time, columns as in `columns`.
    """

    total: int
    seconds: dict[str, int]
    columns: tuple[str, ...]
    rows: Ints
    per_step: Floats

    def share(self, bucket: str) -> float:
        """Part of the steps' time.

        Args:
            bucket: Its name.
        """
        return self.seconds.get(bucket, 0) / self.total if self.total else 0.0


def goodput(tree: Tree) -> Goodput:
    """The account over all steps. Work that goes on beside the steps (a collector that generates ahead) has no place.

    Args:
        tree: The run's tree.
    """
    rows = tree.rows
    tops = step_rows(tree)
    columns = (*_ORDER, UNACCOUNTED)
    if not len(tops):
        return Goodput(0, {}, columns, tops, np.zeros((0, len(columns))))
    length = tree.duration[tops].astype(float)
    place = np.full(len(rows), -1, dtype=np.int64)
    place[tops] = np.arange(len(tops))
    line = np.concatenate([[0.0], np.cumsum(length + 1)[:-1]])
    spans = np.flatnonzero((tree.step >= 0) & (rows['bucket'] > 0))
    of = place[tree.step[spans]]
    spans, of = spans[of >= 0], of[of >= 0]
    base = rows['start'][tops[of]]
    begin = np.clip((rows['start'][spans] - base).astype(float), 0, length[of]) + line[of]
    end = np.clip((rows['end'][spans] - base).astype(float), 0, length[of]) + line[of]
    column = np.array([_ORDER.index(name) if name in _ORDER else -1 for name in BUCKETS])[rows['bucket'][spans]]
    # A sweep over all steps laid out one after the other: how many spans of each bucket are open between two events.
    at = np.concatenate([begin, end])
    which = np.concatenate([column, column])
    change = np.concatenate([np.ones(len(spans)), -np.ones(len(spans))])
    step = np.concatenate([of, of])
    order = np.argsort(at, kind='stable')
    at, which, change, step = at[order], which[order], change[order], step[order]
    table = np.zeros((len(tops), len(columns)))
    gap = np.diff(at, append=at[-1:] if len(at) else 0.0)
    taken = np.zeros(len(at), dtype=bool)
    for number in range(len(_ORDER)):
        here = (np.cumsum(np.where(which == number, change, 0.0)) > 0.5) & ~taken
        taken |= here
        table[:, number] = np.bincount(step[here], weights=gap[here], minlength=len(tops))
    table[:, -1] = np.maximum(0.0, length - table[:, :-1].sum(axis=1))
    seconds = {name: round(float(spent)) for name, spent in zip(columns, table.sum(axis=0), strict=True)}
    return Goodput(round(float(length.sum())), seconds, columns, tops, table)
