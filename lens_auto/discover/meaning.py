# SPDX-License-Identifier: Apache-2.0
"""What calls and functions do for a training, told by their names and by what they lead to."""

from __future__ import annotations

import ast

from . import words
from .calls import CallGraph
from .reading import Call, Function, Unit

_DEPTH = 4


class Meaning:
    """The groups of calls and functions of a code base.

    Attributes:
        graph: Who calls whom.
        timed: The calls that enter a labelled timer, each with its label; filled in once the timers are known.
    """

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.timed: dict[Call, str] = {}
        self._own: dict[Call, str | None] = {}
        self._reached: dict[tuple[Function, int], frozenset[str]] = {}

    def own(self, call: Call) -> str | None:
        """The group a call has by itself."""
        if call not in self._own:
            label = self.timed.get(call)
            self._own[call] = words.of_label(label) if label is not None else _of_call(call)
        return self._own[call]

    def groups(self, call: Call, unit: Unit) -> frozenset[str]:
        """The groups a call has, with those of what it leads to."""
        own = self.own(call)
        found = {own} if own else set[str]()
        for callee in self.graph.callees(call, unit):
            found |= self.reached(callee)
        return frozenset(found)

    def work(self, call: Call, unit: Unit) -> frozenset[str]:
        """Its groups as a part of a step: what a validation or a checkpoint leads to is not the step's own work."""
        own = self.own(call)
        return frozenset((own,)) if own in words.WEAK else self.groups(call, unit)

    def reached(self, function: Function, depth: int = _DEPTH) -> frozenset[str]:
        """The groups of what a function calls, and of what that calls."""
        key = (function, depth)
        if key not in self._reached:
            self._reached[key] = frozenset()
            found: set[str] = set()
            for call in function.calls:
                own = self.own(call)
                if own:
                    found.add(own)
                if depth > 1:
                    for callee in self.graph.callees(call, function.unit):
                        found |= self.reached(callee, depth - 1)
            self._reached[key] = frozenset(found)
        return self._reached[key]


def _of_call(call: Call) -> str | None:
    arguments = [*call.arguments, *(keyword.value for keyword in call.keywords)]
    constant = all(isinstance(argument, ast.Constant) for argument in arguments)
    return words.of_call(call.name, call.receiver, len(arguments), constant)


def kinds(groups: frozenset[str]) -> set[str]:
    """The groups as phases of a step that differ: all training is one, and so is whatever scores."""
    merged = {
        'policy_update': 'train',
        'forward_backward': 'train',
        'optimizer': 'train',
        'generation': 'rollout',
        'reference_policy': 'logprob',
    }
    return {merged.get(group, group) for group in groups}
