# SPDX-License-Identifier: Apache-2.0
"""What a style puts at a place: a call of one of its own names, and how that is laid out."""

from __future__ import annotations

from typing import NamedTuple

WIDTH = 120
OWN = '_lens_'
"""How every name that the codemod brings in begins: what a file says with such a name is ours."""


class Listed(NamedTuple):
    """A mapping as an argument, which may take a line for each entry.

    Attributes:
        before: What stands before its brace: `attributes=`.
        entries: Its entries, as source.
        after: What stands behind it.
    """

    before: str
    entries: tuple[str, ...]
    after: str = ''

    def __str__(self) -> str:
        return f'{self.before}{{{", ".join(self.entries)}}}{self.after}'


class Said(NamedTuple):
    """A call of a name of ours.

    Attributes:
        name: The name.
        arguments: Its arguments, as source.
    """

    name: str
    arguments: tuple[str | Listed, ...]

    @property
    def flat(self) -> str:
        """The arguments on one line."""
        return ', '.join(map(str, self.arguments))


class Piece(NamedTuple):
    """Something to put at a place.

    Attributes:
        how: 'decorator' (the one next to the definition), 'outer' (the one furthest from it), 'item' (of a `with`),
            'loop' (a block around its body), 'between' (a block around what stands between two statements), 'after' (a
            statement behind one), 'first' (a statement at the start of a function) or 'call' (around the function that
            is called).
        said: The call; by 'call' it is called with the function that was called.
    """

    how: str
    said: Said


def laid_out(said: Said, before: int, indentation: str, unit: str, after: int, newline: str) -> str:
    """A call as source: on one line where it fits, else an argument a line.

    Args:
        said: The call.
        before: How much of the line is taken already.
        indentation: That of the line.
        unit: One level more.
        after: How much follows on the line.
        newline: The file's line end.
    """
    flat = f'{said.name}({said.flat})'
    if before + len(flat) + after <= WIDTH or not said.arguments:
        return flat
    inner = f'{newline}{indentation}{unit}'
    taken = len(inner)
    if taken + len(said.flat) <= WIDTH:
        return f'{said.name}({inner}{said.flat}{newline}{indentation})'
    shown: list[str] = []
    for argument in said.arguments:
        if isinstance(argument, Listed) and taken + len(str(argument)) >= WIDTH:
            entries = ''.join(f'{inner}{unit}{entry},' for entry in argument.entries)
            shown.append(f'{argument.before}{{{entries}{inner}}}{argument.after}')
        else:
            shown.append(str(argument))
    return f'{said.name}({inner}{f",{inner}".join(shown)},{newline}{indentation})'


def keyword(name: str, value: object) -> str | Listed:
    """A keyword argument as source.

    Args:
        name: The keyword.
        value: See `literal`.
    """
    if isinstance(value, dict):
        return Listed(f'{name}=', tuple(f'{key!r}: {literal(item)}' for key, item in value.items()))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return f'{name}={literal(value)}'


def literal(value: object) -> str:
    """A value of a rule as source.

    Args:
        value: Text, a number, a boolean, None, or a list or mapping of these.
    """
    if isinstance(value, dict):
        return '{' + ', '.join(f'{key!r}: {literal(item)}' for key, item in value.items()) + '}'  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return '[' + ', '.join(literal(item) for item in value) + ']'  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, tuple):
        items = [literal(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return f'({", ".join(items)}{"," if len(items) == 1 else ""})'
    return repr(value)
