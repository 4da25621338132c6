# SPDX-License-Identifier: Apache-2.0
"""The spans of one step as they nest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lens_auto.report.critical import Segment
    from lens_auto.report.folder import Run


@dataclass
class Nested:
    """One span of a step; times in nanoseconds.

    Attributes:
        row: The span.
        depth: 0 for the step itself.
        process: The label of its process.
        at: From the step's start to its own.
        own: What no span below it covers.
        on_path: Its part of the critical path, None where it is not on it.
    """

    row: int
    depth: int
    name: str
    process: str
    at: int
    duration: int
    own: int
    on_path: int | None


def nested(run: Run, row: int, path: Sequence[Segment]) -> list[Nested]:
    """The step and everything in it, what encloses before what is enclosed, siblings by their start.

    Args:
        run: The run.
        row: The step.
        path: Its critical path.
    """
    tree, store = run.tree, run.store
    rows = tree.rows
    held: dict[int, int] = {}
    for one in path:
        held[one.row] = held.get(one.row, 0) + one.end - one.start
    children: dict[int, list[int]] = {}
    for child in (int(n) for n in (tree.step == row).nonzero()[0]):
        if child != row:
            children.setdefault(int(tree.parent[child]), []).append(child)
    begin = int(rows['start'][row])
    found: list[Nested] = []
    work = [(row, 0)]
    while work:
        span, depth = work.pop()
        found.append(
            Nested(
                span,
                depth,
                store.names[int(rows['name'][span])],
                store.processes[int(rows['process'][span])].label,
                int(rows['start'][span]) - begin,
                int(tree.duration[span]),
                int(tree.own[span]),
                held.get(span),
            )
        )
        work += [(child, depth + 1) for child in reversed(children.get(span, ()))]
    return found
