# SPDX-License-Identifier: Apache-2.0
"""The keys of rules that find their places in the source: `target`, `match`, `expect`."""

from __future__ import annotations

import re

from .document import Node, Scalar
from .model import SOURCE_KINDS, PlaceRule
from .reader import Reader, shown

_EXPECT = re.compile(r'(\d{1,6})(?:(\+)|-(\d{1,6}))?')
_HINT = 'write a number, or quoted text: "1-3" for one to three, "1+" for one or more'
_ONE = (1, 1)


def captures(reader: Reader, values: dict[str, Node], kind: str) -> tuple[str, ...]:
    """The names that a rule's pattern captures; a fault where the pattern is none.

    Args:
        reader: Takes the fault.
        values: The rule's values.
        kind: Its kind; one without a pattern captures nothing.
    """
    node = values.get('match')
    if kind not in SOURCE_KINDS or node is None:
        return ()
    text = reader.as_text(node, '`match`')
    if text is None:
        return ()
    # Files without such rules need no pattern language.
    from lens_auto.rewrite.pattern import PatternError, parse

    try:
        return parse(kind, text).captures
    except PatternError as error:
        assert isinstance(node, Scalar)
        reader.inside(node, error.column, error.message, _EXAMPLES[kind])
        return ()


_EXAMPLES = {
    'loop': 'a loop is matched by its header: `for $i in range($$$):`, `while $$$:`',
    'block': 'a block is matched by its header: `with timer.time("generation"):`',
    'call': 'a call is matched by an expression: `ray.get($refs)`',
}


def read(reader: Reader, values: dict[str, Node]) -> PlaceRule:
    """A rule's own keys.

    Args:
        reader: Takes the faults.
        values: The rule's values.
    """
    match = values.get('match')
    pattern = match.value if isinstance(match, Scalar) and isinstance(match.value, str) else ''
    force = reader.flag(values, 'force', False)
    return PlaceRule(reader.places(values, 'target'), pattern, _expect(reader, values.get('expect')), force)


def _expect(reader: Reader, node: Node | None) -> tuple[int, int | None]:
    if node is None:
        return _ONE
    text = node.text.strip() if isinstance(node, Scalar) and not isinstance(node.value, (bool, float)) else ''
    found = _EXPECT.fullmatch(text)
    if found is None:
        reader.fault(node, f'`expect` must be a number of places, not {shown(node)}', _HINT)
        return _ONE
    least = int(found[1])
    most = None if found[2] else int(found[3] or least)
    if most is not None and (most < least or not most):
        reader.fault(node, f'`expect: {text}` is met by no place at all', _HINT)
        return _ONE
    return least, most
