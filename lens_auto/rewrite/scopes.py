# SPDX-License-Identifier: Apache-2.0
"""The scopes of a module, and what is evaluated in each.

A lambda and a comprehension belong to the scope they stand in. Decorators, defaults and base classes belong to the
scope around the def or class. Annotations belong to none: they may never be evaluated, or only shown as text.
"""

from __future__ import annotations

from _ast import AST, AnnAssign, AsyncFunctionDef, Await, Call, ClassDef, FunctionDef, Lambda, arguments

from lens_auto.rewrite.nodes import children

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import Module
    from collections.abc import Iterator, Sequence

    Definition = FunctionDef | AsyncFunctionDef | ClassDef

_DEFINITIONS = (FunctionDef, AsyncFunctionDef, ClassDef)


class Scope:
    """A module, class or function.

    Attributes:
        qualname: Its dotted name, '' for the module, without `<locals>`.
        node: The module, class or def.
        path: The classes and functions around it and itself, outermost first.
    """

    __slots__ = ('node', 'path', 'qualname')

    def __init__(self, qualname: str, node: Module | Definition, path: tuple[Definition, ...]):
        """See the class.

        Args:
            qualname: See the class.
            node: See the class.
            path: See the class.
        """
        self.qualname = qualname
        self.node = node
        self.path = path


def scopes(tree: Module) -> Iterator[Scope]:
    """All scopes of a module, each before those inside it.

    Args:
        tree: The module.
    """
    waiting = [Scope('', tree, ())]
    while waiting:
        scope = waiting.pop()
        yield scope
        inside = [
            Scope(f'{scope.qualname}.{node.name}' if scope.qualname else node.name, node, (*scope.path, node))
            for node in own(scope.node.body)
            if isinstance(node, _DEFINITIONS)
        ]
        waiting += reversed(inside)


def matches_name(wanted: str, qualname: str) -> bool:
    """True when a scope's name is the one wanted.

    Args:
        wanted: See `Wanted.qualname`, without `<locals>`.
        qualname: The scope's.
    """
    first, star, last = wanted.rpartition('.')[2].partition('*')
    if not star:
        return wanted == qualname
    above, _, name = qualname.rpartition('.')
    if above != wanted.rpartition('.')[0] or len(name) < max(1, len(first) + len(last)):
        return False
    return name.startswith(first) and name.endswith(last)


def own(statements: Sequence[AST], lambdas: bool = True) -> Iterator[AST]:
    """The nodes evaluated in one scope, in the order of the source; definitions in it are among them, not their bodies.

    Args:
        statements: The scope's body.
        lambdas: Take the bodies of lambdas for part of the scope.
    """
    waiting: list[AST] = list(reversed(statements))
    while waiting:
        node = waiting.pop()
        yield node
        if lambdas or not isinstance(node, Lambda):
            waiting += reversed(list(evaluated(node)))
        else:
            waiting += reversed(list(_defaults(node.args)))


def evaluated(node: AST) -> Iterator[AST]:
    """The nodes right below a node that are evaluated in the same scope.

    Args:
        node: A node.
    """
    if isinstance(node, ClassDef):
        yield from node.decorator_list
        yield from node.bases
        yield from node.keywords
    elif isinstance(node, (FunctionDef, AsyncFunctionDef)):
        yield from node.decorator_list
        yield from _defaults(node.args)
    elif isinstance(node, Lambda):
        yield from _defaults(node.args)
        yield node.body
    elif isinstance(node, AnnAssign):
        yield node.target
        if node.value is not None:
            yield node.value
    elif type(node).__name__ != 'TypeAlias':
        yield from children(node)


def _defaults(given: arguments) -> Iterator[AST]:
    yield from given.defaults
    yield from (each for each in given.kw_defaults if each is not None)


def awaited(nodes: list[AST]) -> set[int]:
    """The ids of the calls among some nodes that an `await` waits for.

    Args:
        nodes: Nodes of a scope.
    """
    return {id(node.value) for node in nodes if isinstance(node, Await) and isinstance(node.value, Call)}
