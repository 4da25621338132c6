# SPDX-License-Identifier: Apache-2.0
"""What of a statement runs first: a statement's first line may have no instruction of its own."""

from __future__ import annotations

import sys
from _ast import BinOp, Constant, Dict, For, List, Mod, Set, Starred, Tuple, UnaryOp, comprehension

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import AST
    from collections.abc import Iterable, Sequence
    from typing import Any

# The field of each kind of node that is evaluated first. A list's first element counts; an empty one is passed over.
_FIRST: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(('Expr', 'Assign', 'AnnAssign', 'Return', 'Await', 'YieldFrom', 'Starred', 'Yield'), ('value',)),
    **dict.fromkeys(('Attribute', 'Subscript', 'NamedExpr', 'FormattedValue'), ('value',)),
    **dict.fromkeys(('For', 'AsyncFor', 'comprehension'), ('iter',)),
    **dict.fromkeys(('While', 'If', 'IfExp', 'Assert'), ('test',)),
    **dict.fromkeys(('FunctionDef', 'AsyncFunctionDef', 'ClassDef'), ('decorator_list',)),
    **dict.fromkeys(('With', 'AsyncWith'), ('items',)),
    **dict.fromkeys(('List', 'Tuple', 'Set'), ('elts',)),
    **dict.fromkeys(('BoolOp', 'JoinedStr'), ('values',)),
    'AugAssign': ('target',),
    'BinOp': ('left',),
    'Call': ('func',),
    'Compare': ('left',),
    'Delete': ('targets',),
    'Match': ('subject',),
    'Raise': ('exc',),
    'UnaryOp': ('operand',),
    'withitem': ('context_expr',),
}
if sys.version_info >= (3, 12):
    # They are no longer functions of their own.
    _FIRST |= dict.fromkeys(('ListComp', 'SetComp', 'DictComp'), ('generators',))
_NO_LINE = object()
_FOLDED = 3  # a list or set of so many constants is made from one


def begins(node: AST) -> AST | None:
    """The innermost node with a position whose evaluation comes first when a node is run; None if that has no line.

    Args:
        node: A statement or expression.
    """
    here = node
    below: Any = node
    while below is not None:
        if hasattr(below, 'lineno'):
            here = below
        above, below = below, _below(below)
        if isinstance(above, (For, comprehension)) and isinstance(below, (List, Set)) and _are_constant(below.elts):
            return below  # of any length: what is looped over is one constant
        if below is _NO_LINE:
            return None
    return here


def _below(node: AST) -> Any:
    if isinstance(node, Dict):
        return _of_dict(node)
    if isinstance(node, BinOp):
        if _is_constant(node):
            return None
        text, values = _formatted(node)
        if values:
            return values[0] if text.startswith('%') and not text.startswith('%%') else _NO_LINE
    if isinstance(node, (List, Set, Tuple)) and _are_constant(node.elts):
        if isinstance(node, Tuple) or len(node.elts) >= _FOLDED:
            return None
    for name in _FIRST.get(type(node).__name__, ()):
        value: Any = getattr(node, name, None)
        if isinstance(value, list):
            return value[0] if value else None  # pyright: ignore[reportUnknownVariableType]
        return value
    return None


def _of_dict(node: Dict) -> Any:
    if not node.keys or node.keys[0] is None:
        return None
    # With constants for keys the values come first; the keys are one constant.
    constant = len(node.keys) > 1 and _are_constant(node.keys)
    return node.values[0] if constant and sys.version_info < (3, 14) else node.keys[0]


def _formatted(node: BinOp) -> tuple[str, Sequence[AST]]:
    """A text and what `'...' % (...)` puts in, where the compiler makes an f-string of it, the text on no line."""
    left, right = node.left, node.right
    if not isinstance(node.op, Mod) or sys.version_info < (3, 11):
        return '', ()
    if not isinstance(left, Constant) or not isinstance(left.value, str) or not isinstance(right, Tuple):
        return '', ()
    kinds = [part.lstrip('-+ #0123456789.')[:1] for part in left.value.replace('%%', '').split('%')[1:]]
    if len(kinds) != len(right.elts) or {*kinds} - {'s', 'r', 'a'} or any(isinstance(e, Starred) for e in right.elts):
        return '', ()
    return left.value, right.elts


def _are_constant(nodes: Iterable[AST | None]) -> bool:
    return all(_is_constant(each) for each in nodes)


def _is_constant(node: AST | None) -> bool:
    """True where the compiler makes one constant of an expression."""
    if isinstance(node, Tuple):
        return _are_constant(node.elts)
    if isinstance(node, UnaryOp):
        return _is_constant(node.operand)
    if isinstance(node, BinOp):
        return _is_constant(node.left) and _is_constant(node.right)
    return isinstance(node, Constant)
