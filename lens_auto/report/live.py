# SPDX-License-Identifier: Apache-2.0
"""What every process has open, or had when it died: who is stuck, in what, and who merely waits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lens_auto.collect import runfile
from lens_auto.report.arrays import np
from lens_auto.report.facts import is_work
from lens_auto.report.store import ESTIMATED, OPEN, TRUNCATED

if TYPE_CHECKING:
    from lens_auto.report.folder import Run

_SHORT = 1_000_000_000
_LONGER = 3.0  # times the longest of its name


@dataclass
class Stack:
    """The open spans of one process, down to one innermost.

    Attributes:
        names: Outermost first.
        row: The innermost.
        age: Nanoseconds that it is, or was, open; at most, where nobody saw its process die: up to the last sign of
            life of the run.
        longest: The longest of its name that ended, 0 for none.
        waits: The innermost is a wait for others.
        suspect: It works, and for longer than any of its name: what the others wait for, if anything is.
        alive: Its process was alive when the run was read.
    """

    process: str
    names: tuple[str, ...]
    row: int
    age: int
    longest: int
    waits: bool
    suspect: bool = False
    alive: bool = True
    estimated: bool = False


def stacks(run: Run, died: bool = False) -> list[Stack]:
    """The open spans of every process, suspects first, then those that work, then those that wait.

    Args:
        run: The run.
        died: Rather those that the end of their process cut short.
    """
    tree, rows, store = run.tree, run.tree.rows, run.store
    wanted = OPEN | TRUNCATED if died else OPEN
    still = np.flatnonzero(rows['flags'] & wanted)
    if not len(still):
        return []
    longest = np.zeros(len(store.names), dtype=np.int64)
    ended = np.flatnonzero(rows['flags'] & (OPEN | TRUNCATED) == 0)
    np.maximum.at(longest, rows['name'][ended], tree.duration[ended])
    opened = {int(row) for row in still}
    outer = {
        int(tree.parent[row])
        for row in opened
        if int(tree.parent[row]) in opened and rows['process'][row] == rows['process'][tree.parent[row]]
    }
    found: list[Stack] = []
    last = _last_sign(run)
    for row in opened - outer:
        names: list[str] = []
        here = row
        while here >= 0:
            if rows['process'][here] == rows['process'][row] and here in opened:
                names.append(store.names[int(rows['name'][here])])
            here = int(tree.parent[here])
        process = store.processes[int(rows['process'][row])]
        if process.role == 'launcher':
            continue
        flags = int(rows['flags'][row])
        estimated = bool(flags & ESTIMATED) or (bool(flags & OPEN) and not process.alive)
        age = last - int(rows['start'][row]) if estimated else int(tree.duration[row])
        found.append(
            Stack(
                process.label,
                tuple(reversed(names)),
                row,
                age,
                int(longest[rows['name'][row]]),
                bool(tree.waits[row]),
                alive=process.alive,
                estimated=estimated,
            )
        )
    _suspect(run, found)
    return sorted(found, key=lambda one: (not one.suspect, one.waits, -one.age, one.process))


def _last_sign(run: Run) -> int:
    """When anything of the run was last seen alive, wall-clock nanoseconds."""
    last = int(run.tree.rows['end'].max())
    if not run.live and not run.finished:
        try:
            # A collector renews it every half a minute, also when nothing happens; a replay would have merged journals.
            last = max(last, os.stat(os.path.join(run.path, runfile.NAME)).st_mtime_ns)
        except OSError:
            pass
    return last


def _suspect(run: Run, found: list[Stack]) -> None:
    """Mark what works for longer than it ever took; if nothing is that long, but others wait, the oldest that works."""
    working = [one for one in found if is_work(run.tree, one.row)]
    for one in working:
        one.suspect = one.longest > 0 and one.age > _LONGER * max(one.longest, _SHORT)
    if any(one.suspect for one in working):
        return
    fresh = [one for one in working if not one.longest]
    waiting = [one for one in found if one.waits and one.age > _SHORT * 10]
    # Nothing of that name ever ended. Whoever is waited for began no later than the wait did.
    if waiting and fresh:
        oldest = max(fresh, key=lambda one: one.age)
        oldest.suspect = oldest.age > _SHORT * 10
