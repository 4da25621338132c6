# SPDX-License-Identifier: Apache-2.0
"""How a run that is on gets along, in one line: step, rate, where its time goes, how long it will take."""

from __future__ import annotations

from time import monotonic_ns

from lens_auto.collect.figures import number, time
from lens_auto.collect.tally import STEP_GROUP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from lens_auto.collect.member import Member
    from lens_auto.collect.tally import Node

    # When it was seen, steps by then, their nanoseconds, those of each phase.
    Mark = tuple[int, int, int, dict[str, int]]

PLANNED = 'nv.dl.training.target.train_iters'
"""The resource attribute that says how many steps there are to be."""

_STEPS = 10  # what rate and phases are of: the last ones
_PHASES = 4
_LEAST = 0.02  # of a step, for a phase to be named
_LATE = 2.0  # times what a step takes: from then on it is said for how long it goes on


class Pace:
    """What was seen of a run's steps so far."""

    __slots__ = ('_marks', '_planned')

    def __init__(self, planned: int = 0) -> None:
        """Nothing was seen.

        Args:
            planned: Steps there are to be; 0: as the program says, if it does.
        """
        self._planned = planned
        self._marks: list[Mark] = []

    def line(self, root: Node, members: Iterable[Member], now: int | None = None) -> str:
        """The line, '' while there is nothing to tell.

        Args:
            root: The tree of span names.
            members: The processes that live.
            now: Monotonic nanoseconds.
        """
        now = monotonic_ns() if now is None else now
        members = list(members)
        planned = self._planned or max((_planned(member) for member in members), default=0)
        node = _step_node(root)
        if node is None:
            return _before(members, now)
        label, (count, spent) = max(node.processes.items(), key=lambda one: (one[1], one[0]))
        if not self._marks or self._marks[-1][1] != count:
            phases = {child.name: child.processes.get(label, (0, 0))[1] for child in node.children.values()}
            self._marks.append((now, count, spent, phases))
            del self._marks[: -_STEPS - 1]
        parts = [f'step {number(count)}' + (f'/{number(planned)}' if planned else '')]
        each = self._each()
        if each:
            parts += [f'{time(each)} a step', *self._split(node.name)]
        age = _age(members, node.name, now)
        if age > _LATE * each:
            parts.append(f'this one for {time(age)}')
        if planned > count and each:
            parts.append(f'{time((planned - count) * each)} left')
        return '  '.join(parts)

    def _each(self) -> float:
        """Nanoseconds from one step's end to the next; of a first one how long it took."""
        first, last = self._marks[0], self._marks[-1]
        steps = last[1] - first[1]
        return (last[0] - first[0]) / steps if steps else last[2] / max(1, last[1])

    def _split(self, step: str) -> list[str]:
        first, last = self._marks[0], self._marks[-1]
        if len(self._marks) == 1:
            first = (0, 0, 0, dict[str, int]())
        spent = last[2] - first[2]
        if spent <= 0:
            return []
        shares = [((ns - first[3].get(name, 0)) / spent, name) for name, ns in last[3].items()]
        shares = sorted((one for one in shares if one[0] >= _LEAST), reverse=True)[:_PHASES]
        return [f'{_short(name, step)} {100 * share:.0f} %' for share, name in shares]


def _short(name: str, step: str) -> str:
    """A phase's name without what it has in common with its step's: rl.grpo.step, rl.grpo.generate -> generate."""
    prefix = step.rpartition('.')[0] + '.'
    return name.removeprefix(prefix).removeprefix('rl.')


def _planned(member: Member) -> int:
    try:
        return max(0, int(member.told.get(PLANNED) or 0))
    except (TypeError, ValueError):
        return 0


def _step_node(root: Node) -> Node | None:
    """The outermost steps; of several kinds those with the most time."""
    found: list[Node] = []
    work = list(root.children.values())
    while work:
        node = work.pop()
        if node.group == STEP_GROUP and node.processes:
            found.append(node)
        else:
            work += node.children.values()
    return max(found, key=lambda node: node.durations.total, default=None)


def _age(members: Iterable[Member], name: str, now: int) -> int:
    """For how long the oldest span of a name is open."""
    starts = [opened[2] for member in members for opened in member.opened.values() if opened[3] == name]
    return max(0, now - min(starts)) if starts else 0


def _before(members: Iterable[Member], now: int) -> str:
    """While no step has ended: the innermost span that is open, of the process that began first."""
    for member in sorted(members, key=lambda one: one.first):
        if member.opened:
            opened = next(reversed(member.opened.values()))
            return f'no step yet  {opened[3]} for {time(max(0, now - opened[2]))}'
    return ''
