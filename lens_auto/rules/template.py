# SPDX-License-Identifier: Apache-2.0
"""Name templates: `rl.{algorithm}.step`, an expression in each pair of braces, `{{` and `}}` for braces themselves."""

from __future__ import annotations

import re

from .expression import ExpressionError, Tree
from .expression import parse as parse_expression

MAX_LENGTH = 500


def parse(text: str) -> Tree:
    """The tree of a name: a constant, or a join of constants and expressions.

    Raises:
        ExpressionError: The braces do not match, or an expression in them is wrong. Its column counts from the start.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f'this name is longer than {MAX_LENGTH} characters', MAX_LENGTH, 'shorten it')
    if not text.strip():
        raise ExpressionError('this name is empty', 0, 'write for example "rl.{label}"')
    parts: list[Tree] = []
    literal = ''
    at = 0
    while at < len(text):
        character = text[at]
        if character in '{}' and text[at : at + 2] == character * 2:
            literal += character
            at += 2
        elif character == '}':
            raise ExpressionError('a `}` without its `{`', at, 'write `}}` for a brace in the name')
        elif character == '{':
            end = _end(text, at)
            if literal:
                parts.append(('c', literal))
                literal = ''
            parts.append(_inner(text[at + 1 : end], at + 1))
            at = end + 1
        else:
            literal += character
            at += 1
    if literal:
        parts.append(('c', literal))
    return parts[0] if len(parts) == 1 and parts[0][0] == 'c' else ('fmt', tuple(parts))


def _end(text: str, start: int) -> int:
    """The index of the `}` that closes the `{` at `start`; braces inside a quoted text do not count."""
    quote = ''
    for at in range(start + 1, len(text)):
        character = text[at]
        if quote:
            quote = '' if character == quote else quote
        elif character in '\'"':
            quote = character
        elif character == '}':
            return at
        elif character == '{':
            break
    raise ExpressionError('a `{` without its `}`', start, 'write `{{` for a brace in the name')


def _inner(text: str, start: int) -> Tree:
    if not text.strip():
        raise ExpressionError('nothing between the braces', start, 'write a name or an expression: "rl.{label}"')
    try:
        return parse_expression(text)
    except ExpressionError as error:
        format_at = re.search(r'[:!](?!=)', text)
        if format_at and error.message == 'this is not a complete expression':
            hint = 'use `round(x, 2)` or `str(x)`'
            raise ExpressionError('`:` and `!` formats are not supported', start + format_at.start(), hint) from None
        raise ExpressionError(error.message, start + error.column, error.hint) from None
