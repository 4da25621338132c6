# SPDX-License-Identifier: Apache-2.0
"""What an expression tree of the plan looks at, without reading it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.wrap.expression import Tree


def uses(tree: Tree, root: str) -> bool:
    """True when a tree reads from a root ('result', 'frame', 'arg', 'self', 'caller').

    Args:
        tree: An expression tree.
        root: A root's name.
    """
    if tree[0] == 'c':
        return False
    if tree[0] == root:
        return True
    return any(_uses(part, root) for part in tree[1:])


def _uses(part: Any, root: str) -> bool:
    if type(part) is not tuple or not part:
        return False
    inner: Tree = part  # pyright: ignore[reportUnknownVariableType]
    if type(inner[0]) is tuple:
        return any(_uses(each, root) for each in inner)
    return uses(inner, root)


def reads_from(tree: Tree, root: str, variables: dict[str, dict[str, Any]]) -> bool:
    """As `uses`, looking through the variables a tree names.

    Args:
        tree: An expression tree.
        root: A root's name.
        variables: The rule file's `vars`.
    """
    if uses(tree, root):
        return True
    # A variable may name others, and none leads to itself.
    return any(
        reads_from(variable['value'], root, variables) for name, variable in variables.items() if _names(tree, name)
    )


def names_argument(tree: Tree, argument: str, variables: dict[str, dict[str, Any]]) -> bool:
    """True when a tree, or a variable it names, reads a certain argument.

    Args:
        tree: An expression tree.
        argument: The parameter's name.
        variables: The rule file's `vars`.
    """
    if _holds(tree, ('arg', argument)):
        return True
    return any(
        names_argument(variable['value'], argument, variables)
        for name, variable in variables.items()
        if _names(tree, name)
    )


def _names(tree: Any, variable: str) -> bool:
    return _holds(tree, ('var', variable))


def _holds(tree: Any, node: Tree) -> bool:
    if type(tree) is not tuple or not tree or tree[0] == 'c':
        return False
    parts: Tree = tree  # pyright: ignore[reportUnknownVariableType]
    return parts == node or any(_holds(part, node) for part in parts)


def constant(tree: Tree) -> bool:
    """True when a tree's value cannot change between calls.

    Args:
        tree: An expression tree.
    """
    return tree[0] == 'c' or (tree[0] == 'fmt' and all(constant(part) for part in tree[1]))
