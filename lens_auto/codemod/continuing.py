# SPDX-License-Identifier: Apache-2.0
"""Blocks of a label with `continues_over` that end their span all the same: the source shows what else they time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from lens_auto.codemod.index import Index, Placed

Timed = Callable[[cst.Call], 'tuple[str, str] | None']
"""Gives the timer that a call times with, and the label, where that is written there."""


def always_ends(placed: Placed, timer: str, label: str, over: Sequence[str], index: Index, timed: Timed) -> bool:
    """Whether no block of a label, on the timer of this one, can leave its span to the next.

    It cannot if what it does not continue over is timed in it before anything but an exception may leave it.

    Args:
        placed: One such block.
        timer: The expression that gives its timer.
        label: The label.
        over: What it continues over.
        index: What is in the file.
        timed: Gives what a call times.
    """
    alone = _is_local(timer, placed)
    for other in index.withs:
        assert isinstance(other.node, cst.With)
        for item in other.node.items:
            found = timed(item.item) if isinstance(item.item, cst.Call) else None
            if found is None or found[1] != label:
                continue
            if alone and (other.scope is not placed.scope or found[0] != timer):
                continue
            if not _times_more(other.node.body, found[0], over, timed):
                return False
    return True


def _times_more(body: cst.BaseSuite, timer: str, over: Sequence[str], timed: Timed) -> bool:
    """Whether a block's own statements time something else, with nothing before that leaves the block."""
    for statement in body.body:
        call = _first_call(statement)
        found = None if call is None else timed(call)
        if found is not None and found[0] == timer and found[1] not in over:
            return True
        if _leaves(statement):
            return False
    return False


def _first_call(statement: cst.CSTNode) -> cst.Call | None:
    """The call that a statement begins with, whatever happens then."""
    first: cst.CSTNode | None = None
    if isinstance(statement, cst.With):
        first = statement.items[0].item
    elif isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Expr):
        first = statement.body[0].value
    return first if isinstance(first, cst.Call) else None


def _is_local(timer: str, placed: Placed) -> bool:
    """Whether a timer is a variable that the function sets itself: none that it is given, or shares."""
    function = placed.scope.function
    if function is None or '.' in timer:
        return False
    sets = _Sets(timer)
    function.body.visit(sets)
    return sets.found


class _Sets(cst.CSTVisitor):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.found = False

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.found |= isinstance(node.target, cst.Name) and node.target.value == self._name

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self.found |= isinstance(node.target, cst.Name) and node.target.value == self._name


class _Leaves(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def visit_Return(self, node: cst.Return) -> None:
        self.found = True

    def visit_Break(self, node: cst.Break) -> None:
        self.found = True

    def visit_Continue(self, node: cst.Continue) -> None:
        self.found = True

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False


def _leaves(statement: cst.CSTNode) -> bool:
    """Whether a statement may leave the block it is in, functions inside it left out."""
    visitor = _Leaves()
    statement.visit(visitor)
    return visitor.found
