# SPDX-License-Identifier: Apache-2.0
"""What rewritten source says of itself when it runs: rule, place and captures, as one constant; and what it calls.

The code may run in a process that has never seen the module's source (it was pickled by value), so this is all that the
process knows of the place besides its plan.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Value = str | int | float | bool
    # 'name': a variable to read where the place is; 'value': what was written there.
    Captured = tuple[str, Value]

# What rewritten source looks for among the builtins.
PLACE, CALL, AWAIT = '_lens_place', '_lens_call', '_lens_await'
HELD, REST, STEP, STEPS = '_lens_held', '_lens_rest', '_lens_step', '_lens_steps'
LONGEST = 256  # characters of one capture
# Between the parts; they have `%xx` for it and for whatever would not be itself in a literal inside an f-string.
_BETWEEN = b'|'
_ESCAPED = b'%|\'"\\'
_KINDS = {bool: 'b', int: 'i', float: 'f', str: 't'}


class Key:
    """One place of one rule.

    Attributes:
        rule: The rule's key.
        kind: 'loop', 'block', 'call' or 'function'.
        where: File, scope, line and column.
        captures: What the pattern captured there, by name.
    """

    __slots__ = ('captures', 'kind', 'rule', 'where')

    def __init__(self, rule: str, kind: str, where: str, captures: dict[str, Captured]):
        """See the class.

        Args:
            rule: See the class.
            kind: See the class.
            where: See the class.
            captures: See the class.
        """
        self.rule = rule
        self.kind = kind
        self.where = where
        self.captures = captures


def written(key: Key) -> bytes:
    """A key as the constant in the code.

    Args:
        key: The key.
    """
    parts = [key.rule, key.kind, key.where]
    for name, (what, value) in key.captures.items():
        tag = 'n' if what == 'name' else _KINDS[type(value)]
        parts.append(f'{name}={tag}{value}')
    return _BETWEEN.join(_escaped(part.encode('utf-8', 'surrogatepass')) for part in parts)


def read(constant: bytes) -> Key:
    """The key that a constant is.

    Args:
        constant: From rewritten code.

    Raises:
        ValueError: It is none.
    """
    rule, kind, where, *captured = [_plain(part) for part in constant.split(_BETWEEN)]
    return Key(rule, kind, where, dict(_captures(captured)))


def _escaped(part: bytes) -> bytes:
    return b''.join(
        bytes((byte,)) if 0x20 <= byte < 0x7F and byte not in _ESCAPED else b'%%%02x' % byte for byte in part
    )


def _plain(part: bytes) -> str:
    first, *rest = part.split(b'%')
    found = first + b''.join(bytes((int(each[:2], 16),)) + each[2:] for each in rest)
    return found.decode('utf-8', 'surrogatepass')


def _captures(parts: Iterable[str]) -> Iterable[tuple[str, Captured]]:
    for part in parts:
        name, _, rest = part.partition('=')
        tag, text = rest[:1], rest[1:]
        if tag == 'n':
            yield name, ('name', text)
        elif tag == 'i':
            yield name, ('value', int(text))
        elif tag == 'f':
            yield name, ('value', float(text))
        elif tag == 'b':
            yield name, ('value', text == 'True')
        else:
            yield name, ('value', text)
