# SPDX-License-Identifier: Apache-2.0
"""Two runs, phase by phase: what became slower, and whether that is more than steps differ among themselves."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from lens_auto.report.phases import phases

if TYPE_CHECKING:
    from lens_auto.report.folder import Run
    from lens_auto.report.phases import Phase

SURE = 2.0  # standard errors of the difference
_LEAST = 0.01  # a hundredth: less is of no use to know


@dataclass
class Change:
    """One phase in two runs; nanoseconds a step.

    Attributes:
        noise: Half the width of the band in which a difference says nothing, None where a run has fewer than 3 steps.
        word: slower, faster, same, gone, new, or unsure.
    """

    path: tuple[str, ...]
    before: float
    after: float
    noise: float | None
    word: str

    @property
    def change(self) -> float:
        """Nanoseconds a step that it takes more."""
        return self.after - self.before

    @property
    def ratio(self) -> float:
        """The change as part of what it was."""
        return self.change / self.before if self.before else float('inf')


def diff(one: Run, other: Run) -> list[Change]:
    """Every phase of the steps, in the order of the tree.

    Args:
        one: The run before.
        other: The run after.
    """
    before = {each.path: each for each in phases(one.store, one.tree) if each.share is not None}
    after = {each.path: each for each in phases(other.store, other.tree) if each.share is not None}
    found: list[Change] = []
    for path in sorted({**before, **after}, key=lambda path: _order(path, before, after)):
        found.append(_change(path, before.get(path), after.get(path)))
    return found


def _order(
    path: tuple[str, ...], before: dict[tuple[str, ...], Phase], after: dict[tuple[str, ...], Phase]
) -> list[tuple[float, str]]:
    """Parents before children, siblings by their time."""
    keys: list[tuple[float, str]] = []
    for depth in range(1, len(path) + 1):
        part = path[:depth]
        spent = [each[part].per_step for each in (before, after) if part in each]
        keys.append((-max(spent, default=0.0), part[-1]))
    return keys


def _change(path: tuple[str, ...], one: Phase | None, other: Phase | None) -> Change:
    was = one.per_step if one else 0.0
    now = other.per_step if other else 0.0
    if one is None or other is None:
        return Change(path, was, now, None, 'new' if one is None else 'gone')
    if min(one.steps, other.steps) < 3:
        return Change(path, was, now, None, 'unsure')
    noise = SURE * sqrt(one.spread**2 / one.steps + other.spread**2 / other.steps)
    if abs(now - was) <= max(noise, _LEAST * was):
        word = 'same'
    else:
        word = 'slower' if now > was else 'faster'
    return Change(path, was, now, noise, word)
