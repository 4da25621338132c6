# SPDX-License-Identifier: Apache-2.0
"""One place of the source and what a rule wants there, before any style has put it into words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import libcst as cst

from lens_auto.codemod.index import Scope
from lens_auto.rules.expression import Tree, walk

DECORATED = ('function', 'interval', 'logger', 'metric', 'annotate', 'resource')
"""Kinds that are about a function, and stand above it."""


class Refused(Exception):
    """Something cannot be written, or not safely; the text says why."""


class Wish(NamedTuple):
    """What a rule wants at a place.

    Attributes:
        kind: One of `DECORATED`, or 'block' (one more item of a `with`), 'loop', 'begin', 'end' or 'call'.
        scope: The function, for a kind that decorates; else what holds the place.
        node: The definition, statement or call.
        rule: The rule, as the plan has it.
        span: Where its name, group and attributes are: the rule, or the label of a timer.
        part: For an interval, which end the function is.
        label: The timer's label.
        timer: The expression that gives the timer, as written.
        variables: The rule file's `vars`.
        folded: Trees that are known here and now, by the tree they stand for.
        target: What the rule calls the place.
        held: The function is the generator of a context manager.
        method: For a class that has the function from somewhere else (a base, `@dataclass`): its name.
        bound: Names that are bound at the place for sure.
        framework: That of the rule file.
        travels: The code may be sent to another process by value.
        until: For a timer's start, the statement in the same block that stops it.
    """

    kind: str
    scope: Scope
    node: cst.CSTNode
    rule: Mapping[str, Any]
    span: Mapping[str, Any]
    variables: Mapping[str, Any] = {}  # never changed
    part: str = ''
    label: str = ''
    timer: str = ''
    folded: Mapping[Tree, Tree] = {}
    target: str = ''
    held: bool = False
    method: str = ''
    bound: frozenset[str] = frozenset()
    framework: str = ''
    travels: bool = False
    until: cst.SimpleStatementLine | None = None

    @property
    def name(self) -> Tree:
        """The span's name."""
        return self.tree(self.span['name'])

    @property
    def attributes(self) -> dict[str, Tree]:
        """The span's attributes."""
        return {name: self.tree(tree) for name, tree in self.span['attributes'].items()}

    def tree(self, tree: Tree) -> Tree:
        """A tree with everything put in that is known here.

        Args:
            tree: A tree of the plan.
        """
        return fold(tree, self.folded, self.variables)

    def used(self, trees: list[Tree]) -> dict[str, Any]:
        """The `vars` that some trees name, themselves or through others.

        Args:
            trees: The trees.
        """
        found: dict[str, Any] = {}
        waiting = [each[1] for tree in trees for each in walk(tree) if each[0] == 'var']
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            variable = found[name] = self.variables[name]
            waiting += [each[1] for each in walk(variable['value']) if each[0] == 'var']
        return found


def fold(tree: Tree, known: Mapping[Tree, Tree], variables: Mapping[str, Any]) -> Tree:
    """A tree with the parts replaced that are known.

    Args:
        tree: The tree.
        known: What stands for which part.
        variables: The rule file's `vars`: one whose value comes out constant is looked up here.
    """
    if tree in known:
        return known[tree]
    head = tree[0]
    if head == 'c':
        return tree
    if head == 'var' and known and tree[1] in variables:
        variable = variables[tree[1]]
        value = fold(variable['value'], known, variables)
        if variable['map'] is None and variable['default'] is None:
            return value
        if value[0] == 'c':
            return ('c', _looked_up(value[1], variable))
        return tree
    if head == 'call':
        return (head, tree[1], tuple(fold(part, known, variables) for part in tree[2]))
    if head == 'fmt':
        return _joined([fold(part, known, variables) for part in tree[1]])
    parts: list[Any] = [fold(part, known, variables) if _is_tree(part) else part for part in tree[1:]]
    return (head, *parts)


def _is_tree(part: Any) -> bool:
    return isinstance(part, tuple)


def _looked_up(value: Any, variable: Mapping[str, Any]) -> Any:
    if value is None and variable['default'] is not None:
        return variable['default']
    if variable['map'] is None:
        return value
    return variable['map'].get(str(value), variable['default'])


def _joined(parts: list[Tree]) -> Tree:
    found: list[Tree] = []
    for part in parts:
        if part[0] == 'c':
            part = ('c', str(part[1]))
            if found and found[-1][0] == 'c':
                found[-1] = ('c', found[-1][1] + part[1])
                continue
        found.append(part)
    return found[0] if len(found) == 1 and found[0][0] == 'c' else ('fmt', tuple(found))
