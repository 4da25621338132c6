# SPDX-License-Identifier: Apache-2.0
"""Which of several spans around the same second has it in the goodput account: the buckets of a proposal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import words
from .reading import Call, Function, Loop

NEAR = 2
"""How many calls deep something surely runs inside."""


@dataclass(eq=False)
class Seam:
    """A proposed span, as far as it matters what is inside what.

    Attributes:
        name: What comments call it.
        functions: The functions it is around; for a timer label none.
        calls: The calls that enter its timer; for a function none.
        holders: The functions those calls stand in.
        below: The functions that run inside.
        near: Those of them that surely do: called by it, or by what it calls, in the same process.
        remote: Whether it runs in another process than what calls it.
        bucket: Instead of its group's: the outcome.
        why: Why, for the comment.
        loop: The loop that each iteration of is one of its spans, if it is one.
    """

    name: str
    group: str
    functions: frozenset[Function]
    calls: frozenset[Call]
    holders: frozenset[Function]
    below: frozenset[Function]
    near: frozenset[Function]
    remote: bool = False
    bucket: str | None = None
    why: str = ''
    loop: Loop | None = None

    def holds(self, other: Seam) -> bool:
        """Whether the other one's spans lie inside its own."""
        if other is self:
            return False
        return bool(other.functions & self.below or other.holders & (self.below | self.functions)) or self._written(
            other
        )

    def waits_for(self, other: Seam) -> bool:
        """Whether the other one runs meanwhile in another process, on Ray."""
        within = other.functions & self.near or other.holders & (self.near | self.functions)
        return other.remote or not (within or self._written(other))

    def _written(self, other: Seam) -> bool:
        """Whether the other one is written inside the same function, in its block or loop."""
        if self.loop is not None and any(self.loop in call.loops for call in other.calls):
            return True
        return any(block in self.calls for call in other.calls for block in call.blocks)


def settle(seams: Sequence[Seam], buckets: dict[str, str | None]) -> None:
    """Give buckets to seams, so that no second counts twice.

    Args:
        seams: What is proposed; their `bucket` and `why` are filled in.
        buckets: The bucket of each group.
    """
    for outer in seams:
        for inner in seams:
            if (
                not outer.holds(inner)
                or inner.holds(outer)
                or not _bucket(outer, buckets)
                or not _bucket(inner, buckets)
            ):
                continue
            if _outer_keeps(outer, inner):
                inner.bucket, inner.why = 'none', f'{outer.name} around it has it'
            else:
                outer.bucket, outer.why = 'none', f'{inner.name} inside has it'
    for outer in seams:
        inside = any(outer.holds(one) and _bucket(one, buckets) == 'productive' for one in seams)
        around = any(one.holds(outer) and _bucket(one, buckets) for one in seams)
        if outer.group == 'rollout' and not inside and not around:
            outer.bucket, outer.why = 'productive', 'nothing productive is hooked inside'


def _bucket(seam: Seam, buckets: dict[str, str | None]) -> str | None:
    own = seam.bucket or buckets.get(seam.group)
    return None if own == 'none' else own


def _outer_keeps(outer: Seam, inner: Seam) -> bool:
    """Whether, of two spans around the same second, the outer one has it."""
    if outer.calls and inner.functions and not inner.calls:
        # The program's own timer says where a phase begins and ends better than a name does.
        return True
    # An update that looks at log-probabilities again is all training; one with another update in it is a heading.
    part = outer.group in words.TRAINING and inner.group not in words.TRAINING
    return outer.waits_for(inner) or part
