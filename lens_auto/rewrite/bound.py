# SPDX-License-Identifier: Apache-2.0
"""Has the code of a module tell when it has bound a name: of a program that runs nobody else is told.

A function of an imported module is patched when the module has executed. A program calls its functions while it
executes, so they have to be patched as soon as they are there.
"""

from __future__ import annotations

from _ast import AnnAssign, Assign, AsyncFunctionDef, ClassDef, Expr, FunctionDef, Import, ImportFrom, Name

from lens_auto.rewrite.nodes import expression_of, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import Module, stmt
    from collections.abc import Iterator
    from typing import Any

# As `build` looks things up: nothing happens where nobody listens.
_CALL = 'delattr.__self__.__dict__.get(%r, {}.get)(%r)'
_DEFINES = (FunctionDef, AsyncFunctionDef, ClassDef)
_BODIES = ('body', 'orelse', 'finalbody')


def mark(tree: Module, names: tuple[str, ...], told: str) -> tuple[str, ...]:
    """Add, after each statement that binds one of some names in the module itself, a call that says so.

    Args:
        tree: The module; changed.
        names: The names.
        told: What is called with the name: a name among the builtins, as all that `build` puts into a module.

    Returns:
        Those that the module binds anywhere.
    """
    found: dict[str, None] = {}
    _mark(tree.body, frozenset(names), told, found)
    return tuple(found)


def _mark(body: list[stmt], names: frozenset[str], told: str, found: dict[str, None]) -> None:
    at = 0
    while at < len(body):
        statement: Any = body[at]
        at += 1
        if not isinstance(statement, _DEFINES):
            inner = [getattr(statement, name, None) for name in _BODIES]
            inner += [each.body for each in (*getattr(statement, 'handlers', ()), *getattr(statement, 'cases', ()))]
            for statements in inner:
                if statements:
                    _mark(statements, names, told, found)
        for name in _binds(statement):
            if name in names:
                found[name] = None
                body.insert(at, _call(told, name, statement))
                at += 1


def _binds(statement: Any) -> Iterator[str]:
    if isinstance(statement, _DEFINES):
        yield statement.name
    elif isinstance(statement, (Import, ImportFrom)):
        if getattr(statement, 'module', None) != '__future__':
            for alias in statement.names:
                yield alias.asname or alias.name.partition('.')[0]
    elif isinstance(statement, Assign):
        for target in statement.targets:
            if isinstance(target, Name):
                yield target.id
    elif isinstance(statement, AnnAssign) and statement.value is not None and isinstance(statement.target, Name):
        yield statement.target.id


def _call(told: str, name: str, after: Any) -> Expr:
    decorators: list[Any] = getattr(after, 'decorator_list', None) or []
    line = (decorators[0] if decorators else after).lineno
    made: Any = Expr(value=expression_of(_CALL % (told, name)).body)
    # On the line the statement begins on: a debugger that steps by lines does not stop once more.
    nodes: list[Any] = [made, *walk(made)]
    for node in nodes:
        if 'lineno' in node._attributes:
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = after.col_offset
    return made
