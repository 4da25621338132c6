# SPDX-License-Identifier: Apache-2.0
"""Expressions as the source of a program spells them (`lens_auto.source`), to the trees that readers are made of.

The launcher's parser is built on `ast`, which costs a process milliseconds; this one reads the same language, character
by character, in the few processes whose source was instrumented. It refuses less: what it lets through and a reader
cannot make sense of is left out and counted, as ever.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.wrap.expression import Tree

_ROOTS = ('self', 'result', 'label', 'key', 'elapsed')
_NAMED = ('arg', 'frame', 'env', 'caller', 'match', 'version')
_CONSTANTS = {'True': True, 'False': False, 'None': None}
_FUNCTIONS = ('len', 'min', 'max', 'int', 'float', 'str', 'round', 'total', 'mean', 'count', 'each')
_COMPARE = ('<', '<=', '>', '>=', '==', '!=')
_SIGNS = ('<=', '>=', '==', '!=', '//', '<', '>', '+', '-', '*', '/', '%', '(', ')', '[', ']', '.', ',')
_ESCAPES = {'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', "'": "'", '"': '"', '\n': ''}
_HEX = {'x': 2, 'u': 4, 'U': 8}
DEEPEST = 40
END = ('', '')


class Misspelled(ValueError):
    """A text is no expression."""


def expression(text: Any) -> Tree:
    """The tree of an attribute's expression; a number or a boolean stands for itself.

    Args:
        text: For example `frame.total_steps + 1`.

    Raises:
        Misspelled: It is no expression.
    """
    if text is None or isinstance(text, (bool, int, float)):
        return ('c', text)
    if not isinstance(text, str):
        raise Misspelled(f'a {type(text).__name__}')
    reading = _Reading(text)
    tree = reading.either(0)
    if reading.token != END:
        raise Misspelled(f'{reading.token[1]!r} in {text!r}')
    return tree


def template(text: str) -> Tree:
    """The tree of a name: a constant, or a join of constants and expressions.

    Args:
        text: For example `rl.{label}`.

    Raises:
        Misspelled: Its braces do not match, or hold no expression.
    """
    parts: list[Tree] = []
    literal, at = '', 0
    while at < len(text):
        sign = text[at]
        if sign in '{}' and text[at : at + 2] == sign * 2:
            literal, at = literal + sign, at + 2
        elif sign == '{':
            end = _closing(text, at)
            if literal:
                parts.append(('c', literal))
            parts.append(expression(text[at + 1 : end]))
            literal, at = '', end + 1
        elif sign == '}':
            raise Misspelled(f'a brace in {text!r}')
        else:
            literal, at = literal + sign, at + 1
    if literal or not parts:
        parts.append(('c', literal))
    return parts[0] if len(parts) == 1 and parts[0][0] == 'c' else ('fmt', tuple(parts))


def _closing(text: str, start: int) -> int:
    quote = ''
    for at in range(start + 1, len(text)):
        sign = text[at]
        if quote:
            quote = '' if sign == quote else quote
        elif sign in '\'"':
            quote = sign
        elif sign == '}':
            return at
    raise Misspelled(f'a brace in {text!r}')


class _Reading:
    """A text, read token by token. A token is its kind ('name', 'text', 'number', a sign) and its value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.token: tuple[str, Any] = END
        self._next()

    def _next(self) -> tuple[str, Any]:
        """Go to the next token; gives the one that was current."""
        was, text = self.token, self._text
        while self._at < len(text) and text[self._at] in ' \t\r\n\f':
            self._at += 1
        if self._at == len(text):
            self.token = END
            return was
        first = text[self._at]
        if first in '\'"':
            self.token = ('text', self._quoted(first))
        elif first.isdigit() or (first == '.' and text[self._at + 1 : self._at + 2].isdigit()):
            self.token = ('number', self._number())
        elif first.isidentifier():
            end = self._at + 1
            while end < len(text) and text[self._at : end + 1].isidentifier():
                end += 1
            self.token, self._at = ('name', text[self._at : end]), end
        else:
            sign = next((sign for sign in _SIGNS if text.startswith(sign, self._at)), None)
            if sign is None:
                raise Misspelled(f'{first!r} in {text!r}')
            self.token, self._at = (sign, sign), self._at + len(sign)
        return was

    def _number(self) -> int | float:
        text, end = self._text, self._at
        while end < len(text) and (
            text[end].isalnum() or text[end] in '._' or (text[end] in '+-' and text[end - 1] in 'eE')
        ):
            end += 1
        written, self._at = text[self._at : end], end
        try:
            return int(written, 0)
        except ValueError:
            pass
        try:
            return float(written)
        except ValueError:
            raise Misspelled(f'{written!r} in {text!r}') from None

    def _quoted(self, quote: str) -> str:
        text, found = self._text, ''
        self._at += 1
        while self._at < len(text):
            sign = text[self._at]
            self._at += 1
            if sign == quote:
                return found
            if sign == '\\' and self._at < len(text):
                found += self._escape()
            else:
                found += sign
        raise Misspelled(f'a text without end in {text!r}')

    def _escape(self) -> str:
        sign = self._text[self._at]
        self._at += 1
        if sign in _ESCAPES:
            return _ESCAPES[sign]
        digits = self._text[self._at : self._at + _HEX.get(sign, 0)]
        if not digits:
            return '\\' + sign
        self._at += len(digits)
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise Misspelled(f'an escape in {self._text!r}') from None

    def _take(self, sign: str) -> None:
        if self.token[0] != sign:
            raise Misspelled(f'{sign!r} is missing in {self._text!r}')
        self._next()

    def _word(self, word: str) -> bool:
        if self.token == ('name', word):
            self._next()
            return True
        return False

    def either(self, depth: int) -> Tree:
        """`a or b`, and all that binds tighter.

        Args:
            depth: How deep in parentheses.
        """
        if depth > DEEPEST:
            raise Misspelled('parentheses too deep')
        tree = self._both(depth)
        while self._word('or'):
            tree = ('or', tree, self._both(depth))
        return tree

    def _both(self, depth: int) -> Tree:
        tree = self._negated(depth)
        while self._word('and'):
            tree = ('and', tree, self._negated(depth))
        return tree

    def _negated(self, depth: int) -> Tree:
        if self._word('not'):
            return ('not', self._negated(depth + 1))
        left = self._sum(depth)
        if self.token[0] not in _COMPARE:
            return left
        sign = self._next()[0]
        return (sign, left, self._sum(depth))

    def _sum(self, depth: int) -> Tree:
        tree = self._product(depth)
        while self.token[0] in ('+', '-'):
            sign = self._next()[0]
            tree = (sign, tree, self._product(depth))
        return tree

    def _product(self, depth: int) -> Tree:
        tree = self._signed(depth)
        while self.token[0] in ('*', '/', '//', '%'):
            sign = self._next()[0]
            tree = (sign, tree, self._signed(depth))
        return tree

    def _signed(self, depth: int) -> Tree:
        if depth > DEEPEST:
            raise Misspelled('signs too deep')
        if self.token[0] == '+':
            self._next()
            return self._signed(depth + 1)
        if self.token[0] == '-':
            self._next()
            inner = self._signed(depth + 1)
            return ('c', -inner[1]) if inner[0] == 'c' and type(inner[1]) in (int, float) else ('neg', inner)
        return self._whole(depth)

    def _whole(self, depth: int) -> Tree:
        tree = self._atom(depth)
        while self.token[0] in ('.', '['):
            if self._next()[0] == '.':
                kind, name = self._next()
                if kind != 'name':
                    raise Misspelled(f'a name is missing in {self._text!r}')
                tree = ('.', tree, name)
            else:
                tree = ('[]', tree, self.either(depth + 1))
                self._take(']')
        return tree

    def _atom(self, depth: int) -> Tree:
        kind, value = self._next()
        if kind in ('text', 'number'):
            return ('c', value)
        if kind == '(':
            tree = self.either(depth + 1)
            self._take(')')
            return tree
        if kind != 'name':
            raise Misspelled(f'{value!r} in {self._text!r}')
        if value in _CONSTANTS:
            return ('c', _CONSTANTS[value])
        if value in _NAMED:
            self._take('.')
            kind, name = self._next()
            if kind != 'name':
                raise Misspelled(f'a name is missing in {self._text!r}')
            return (value, name)
        if value in _FUNCTIONS:
            self._take('(')
            arguments = [self.either(depth + 1)]
            while self.token[0] == ',':
                self._next()
                arguments.append(self.either(depth + 1))
            self._take(')')
            return ('call', value, tuple(arguments))
        return (value,) if value in _ROOTS else ('var', value)
