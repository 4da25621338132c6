# SPDX-License-Identifier: Apache-2.0
"""Small questions to syntax trees; `_ast` is what is behind the module `ast`, and built in."""

from __future__ import annotations

from _ast import AST, Attribute, Name, PyCF_ONLY_AST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import Expression, Module, expr
    from collections.abc import Iterator
    from typing import Any

# What does not make two expressions different: whether they are read or assigned, a u in front of a string.
_IDLE = ('ctx', 'kind', 'type_comment')


def module_of(source: bytes | str, filename: str) -> Module:
    """The syntax tree of a module.

    Args:
        source: Its source; bytes as in the file.
        filename: For messages.

    Raises:
        SyntaxError, ValueError, RecursionError: It has none.
    """
    return compile(source, filename, 'exec', PyCF_ONLY_AST, dont_inherit=True)  # type: ignore[return-value]


def expression_of(source: str) -> Expression:
    """The syntax tree of an expression.

    Args:
        source: The expression.

    Raises:
        SyntaxError, ValueError, RecursionError: It has none.
    """
    return compile(source, '<pattern>', 'eval', PyCF_ONLY_AST, dont_inherit=True)  # type: ignore[return-value]


def parts(node: AST) -> Iterator[tuple[str, Any]]:
    """The fields of a node that make a difference, by name; a field it does not have is None.

    Args:
        node: A node.
    """
    for name in node._fields:
        if name not in _IDLE:
            yield name, getattr(node, name, None)


def children(node: AST) -> Iterator[AST]:
    """The nodes right below a node, in the order of its fields.

    Args:
        node: A node.
    """
    for name in node._fields:
        value: Any = getattr(node, name, None)
        if isinstance(value, AST):
            yield value
        elif type(value) is list:
            for each in value:  # pyright: ignore[reportUnknownVariableType]
                if isinstance(each, AST):
                    yield each


def walk(node: AST) -> Iterator[AST]:
    """A node and all below it.

    Args:
        node: A node.
    """
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += children(here)


def same(one: Any, other: Any) -> bool:
    """True when two trees stand for equal source, formatting apart.

    Args:
        one: A node, a list of nodes, or a value in a node.
        other: Another.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, AST):
        return all(same(value, getattr(other, name, None)) for name, value in parts(one))
    if type(one) is list:
        mine: list[Any] = one  # pyright: ignore[reportUnknownVariableType]
        theirs: list[Any] = other
        return len(mine) == len(theirs) and all(same(*pair) for pair in zip(mine, theirs, strict=True))
    if isinstance(one, (float, complex)):
        return repr(one) == repr(other)
    return one == other


def dotted(node: AST | None) -> str:
    """The dotted name that an expression is, or ''.

    Args:
        node: An expression.
    """
    names: list[str] = []
    while isinstance(node, Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, Name):
        return ''
    return '.'.join([node.id, *reversed(names)])


def text_of(node: expr | AST, lines: list[str]) -> str:
    """The source text of a node, on one line.

    Args:
        node: A node with a position.
        lines: The lines of its module.
    """
    first, last = getattr(node, 'lineno', 0), getattr(node, 'end_lineno', None) or 0
    if not 0 < first <= last <= len(lines):
        return ''
    start, end = getattr(node, 'col_offset', 0), getattr(node, 'end_col_offset', 0)
    found = [line.encode('utf-8', 'surrogatepass') for line in lines[first - 1 : last]]
    found[-1] = found[-1][:end]
    found[0] = found[0][start:]
    return ' '.join(b' '.join(found).decode('utf-8', 'surrogatepass').split())
