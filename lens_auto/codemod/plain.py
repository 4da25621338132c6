# SPDX-License-Identifier: Apache-2.0
"""Expressions of rules as plain Python, for the styles whose library takes values, not expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from lens_auto.codemod.wish import DECORATED, Refused, Wish
from lens_auto.rules.expression import Tree

_BUILT_IN = ('len', 'min', 'max', 'int', 'float', 'str', 'round')
BINARY = ('+', '-', '*', '/', '//', '%', '<', '<=', '>', '>=', '==', '!=', 'and', 'or')

_TIGHT = ('c', 'arg', 'frame', 'env', 'self', '.', '[]', 'call', 'var')


class Value:
    """An attribute's value as Python.

    Attributes:
        text: The source.
        safe: It cannot raise where it stands: a constant, or a name that is bound there.
    """

    __slots__ = ('safe', 'text')

    def __init__(self, text: str, safe: bool):
        """See the class."""
        self.text = text
        self.safe = safe

    @property
    def guarded(self) -> str:
        """As it stands in a mapping for the guarded reader: as it is, or to be called."""
        return self.text if self.safe else f'lambda: {self.text}'


def fixed_name(wish: Wish) -> str:
    """The span's name as source.

    Args:
        wish: The place.

    Raises:
        Refused: It is made at run time.
    """
    name = wish.name
    if name[0] != 'c':
        raise Refused("the span's name is known at run time only: style lens can say that")
    return repr(name[1])


def plain_function(wish: Wish, whole: bool) -> cst.FunctionDef:
    """The function of a wish, for a decorator that only wraps calls.

    Args:
        wish: The place.
        whole: Whether the decorator knows coroutine functions.

    Raises:
        Refused: A span around its calls would not be one around its work.
    """
    from lens_auto.codemod.index import yields

    node = wish.node
    if not isinstance(node, cst.FunctionDef):
        raise Refused('this is a class: only style lens can say it of one')
    if yields(node.body):
        raise Refused('this is a generator: a span held over its yields would be current in its consumer')
    if node.asynchronous is not None and not whole:
        raise Refused('this is a coroutine function: its span would end before its work begins')
    return node


def statements_between(wish: Wish) -> None:
    """See that a timer's start has its stop in the same block, so that a `with` block can stand around what is timed.

    Args:
        wish: The place.

    Raises:
        Refused: It has not.
    """
    if wish.until is None:
        raise Refused('the timer stops in another block than it starts in: style lens can say that')


def said_elsewhere(wish: Wish, note: Callable[[str], None], root: bool) -> None:
    """Say what a rule asks for and the library has no words for.

    Args:
        wish: The place.
        note: Told of each.
        root: Whether a trace of its own can be asked for.

    Raises:
        Refused: Without it there would be spans that the rule does not make.
    """
    rule = wish.rule
    for key in ('only_from', 'within', 'outside'):
        if rule.get(key) and wish.kind in DECORATED:
            raise Refused(f'which calls `{key}` means shows at run time only: style lens can say that')
    for key in ('budget', 'inside_bucket'):
        if (rule.get(key) and wish.kind in DECORATED) or (key == 'budget' and rule.get(key)):
            note(f'the span is written without its `{key}`: style lens can say that')
    if wish.span['root'] and not root:
        note('the span is written without its `root`: styles lens and otel can say that')


def values(wish: Wish, note: Callable[[str], None]) -> dict[str, Value]:
    """The attributes of a span, its bucket left out.

    Args:
        wish: The place.
        note: Told what is left out.
    """
    found: dict[str, Value] = {}
    for name, tree in wish.attributes.items():
        try:
            text = python(tree, wish)
        except Refused as refused:
            note(f'the span is written without {name}: {refused}')
            continue
        safe = tree[0] == 'c' or (tree[0] in ('frame', 'arg') and tree[1] in wish.bound)
        found[name] = Value(text, safe)
    return found


def python(tree: Tree, wish: Wish) -> str:
    """A tree as Python where the wish stands.

    Args:
        tree: The tree, folded.
        wish: The place.

    Raises:
        Refused: There is no plain Python for it.
    """

    def sub(inner: Tree) -> str:
        text = python(inner, wish)
        return text if inner[0] in _TIGHT and not text.startswith('-') else f'({text})'

    head = tree[0]
    if head == 'c':
        return repr(tree[1])
    if head == 'frame' and wish.kind not in DECORATED:
        return tree[1]
    if head == 'arg' and wish.kind in DECORATED:
        return tree[1]
    if head == 'self' and wish.kind in DECORATED:
        return _first_parameter(wish)
    if head == 'env':
        return f"__import__('os').environ[{tree[1]!r}]"
    if head == '.':
        return f'{sub(tree[1])}.{tree[2]}'
    if head == '[]':
        return f'{sub(tree[1])}[{python(tree[2], wish)}]'
    if head == 'neg':
        return f'-{sub(tree[1])}'
    if head == 'not':
        return f'not {sub(tree[1])}'
    if head == 'call' and tree[1] in _BUILT_IN:
        return f'{tree[1]}({", ".join(python(part, wish) for part in tree[2])})'
    if head == 'var':
        return _variable(wish.variables[tree[1]], wish)
    if head in BINARY:
        left, right = tree[1:]
        return f'{sub(left)} {head} {sub(right)}'
    shown = f'{head}()' if head != 'call' else f'{tree[1]}()'
    raise Refused(f'`{shown if head == "call" else head}` has no place in plain Python here; style lens can say it')


def _first_parameter(wish: Wish) -> str:
    node = wish.node
    if isinstance(node, cst.FunctionDef):
        parameters = [*node.params.posonly_params, *node.params.params]
        if parameters:
            return parameters[0].name.value
    raise Refused('there is no `self` here')


def _variable(variable: dict[str, Any], wish: Wish) -> str:
    value = python(variable['value'], wish)
    if variable['map'] is None:
        return f'({value})' if variable['default'] is None else f'({value} or {variable["default"]!r})'
    return f'{variable["map"]!r}.get(str({value}), {variable["default"]!r})'
