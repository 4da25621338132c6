# SPDX-License-Identifier: Apache-2.0
"""Reads values by the expressions of a rule: trees made by the launcher, turned into closures here. There is no `eval`.

Operands are plain scalars, strings, lists, tuples, dicts, numpy arrays and CPU tensors. A tensor on a device is never
read (that would wait for the device): the reader raises `Unreadable`, the attribute is left out and counted.
"""

from __future__ import annotations

import os
import sys

from lens_auto.record.foreign import foreign
from lens_auto.record.installed import version
from lens_auto.wrap.frame import local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    Tree = tuple[Any, ...]
    Reader = Callable[['Scope'], Any]

LONGEST_TEXT = 256


class Unreadable(Exception):
    """The value is not there, lives on a device, or is of no kind an attribute can hold."""


class Scope:
    """What an expression can see at one call of a site.

    Attributes:
        args: The call's arguments in the order of the function's parameters (`*args` a tuple, `**kwargs` a dict).
        result: What the function returned; None before.
        frame: The caller's frame, or None when no reader needs it. Dropped right after reading.
        label: The label of a timer call.
        key: The metric key of a logger call.
        elapsed: Seconds the call took; None before its end.
    """

    __slots__ = ('args', 'elapsed', 'frame', 'key', 'label', 'result')

    def __init__(self, args: tuple[Any, ...], frame: FrameType | None = None, label: str | None = None):
        """See the class.

        Args:
            args: See the class.
            frame: See the class.
            label: See the class.
        """
        self.args = args
        self.frame = frame
        self.label = label
        self.result: Any = None
        self.key: str | None = None
        self.elapsed: float | None = None


def reader(
    tree: Tree,
    names: tuple[str, ...],
    variables: dict[str, dict[str, Any]],
    extra: str | None = None,
    captures: dict[str, tuple[str, Any]] | None = None,
) -> Reader:
    """The closure that reads a tree's value from a `Scope`; raises `Unreadable` or what the operands raise.

    Args:
        tree: An expression tree of the plan.
        names: The function's parameters, in the order of `Scope.args`.
        variables: The rule file's `vars`.
        extra: Name of the `**kwargs` parameter, if any: `arg.x` falls back to it.
        captures: Of a place in source, what the pattern captured: `match.x` (see `rewrite.key`).
    """

    def sub(inner: Tree) -> Reader:
        return reader(inner, names, variables, extra, captures)

    op = tree[0]
    if op == 'c':
        value = tree[1]
        return lambda scope: value
    if op == 'arg':
        return _argument(tree[1], names, extra)
    if op in _ROOTS:
        return _ROOTS[op]
    if op in ('frame', 'match'):
        return _local(tree[1]) if op == 'frame' else _capture(tree[1], captures or {})
    if op == 'env':
        name = tree[1]
        return lambda scope: os.environ[name]
    if op == 'caller':
        return _caller_module if tree[1] == 'module' else _caller_function
    if op == 'version':
        package = tree[1]
        return lambda scope: version(package)
    if op == 'var':
        return _variable(variables[tree[1]], sub)
    if op == '.':
        return _attribute(sub(tree[1]), tree[2])
    if op == '[]':
        whole, index = sub(tree[1]), sub(tree[2])
        return lambda scope: plain(whole(scope))[plain(index(scope))]
    if op == 'call':
        function, arguments = _FUNCTIONS[tree[1]], [sub(part) for part in tree[2]]
        return lambda scope: function(*[argument(scope) for argument in arguments])
    if op == 'fmt':
        parts = [sub(part) for part in tree[1]]
        return lambda scope: ''.join([text(part(scope)) for part in parts])
    return _operator(op, [sub(part) for part in tree[1:]])


def _operator(op: str, operands: list[Reader]) -> Reader:
    first = operands[0]
    if op == 'neg':
        return lambda scope: -number(first(scope))
    if op == 'not':
        return lambda scope: not _true(first(scope))
    second = operands[1]
    if op == 'and':
        return lambda scope: _true(first(scope)) and plain(second(scope))
    if op == 'or':
        return lambda scope: _true(first(scope)) or plain(second(scope))
    apply = _BINARY[op]
    return lambda scope: apply(plain(first(scope)), plain(second(scope)))


def _argument(name: str, names: tuple[str, ...], extra: str | None) -> Reader:
    if name in names:
        index = names.index(name)
        return lambda scope: scope.args[index]
    if extra is None:
        raise Unreadable(f'no parameter named {name}')
    rest = names.index(extra)
    return lambda scope: scope.args[rest][name]


def _capture(name: str, captures: dict[str, tuple[str, Any]]) -> Reader:
    if name not in captures:
        raise Unreadable(f'the pattern captures no {name}')
    what, value = captures[name]
    return _local(value) if what == 'name' else lambda scope: value


def _variable(variable: dict[str, Any], sub: Callable[[Tree], Reader]) -> Reader:
    value, table, default = sub(variable['value']), variable.get('map'), variable.get('default')
    if table is None and default is None:
        return value

    def read(scope: Scope) -> Any:
        try:
            found = value(scope)
        except (Unreadable, AttributeError, KeyError, IndexError, TypeError) as error:
            if default is None or foreign(error):
                raise
            return default
        if found is None and default is not None:
            return default
        return found if table is None else table.get(text(found), default)

    return read


def _local(name: str) -> Reader:
    def read(scope: Scope) -> Any:
        if scope.frame is None:
            raise Unreadable('no caller frame')
        return local(scope.frame, name)

    return read


def _caller_module(scope: Scope) -> Any:
    return '' if scope.frame is None else scope.frame.f_globals.get('__name__', '')


def _caller_function(scope: Scope) -> Any:
    return '' if scope.frame is None else scope.frame.f_code.co_name


def _attribute(whole: Reader, name: str) -> Reader:
    def read(scope: Scope) -> Any:
        value = whole(scope)
        kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
        # Configuration is as often a dict as an object: in a plain dict the key is meant, never a method of dict.
        return value[name] if kind is dict else getattr(value, name)

    return read


def text(value: Any) -> str:
    """A value inside a name or a table look-up: a scalar, an enum member, a dtype; never the content of a container.

    Args:
        value: Anything.

    Raises:
        Unreadable: It is a container or a tensor of several elements.
    """
    found = plain(value)
    if isinstance(found, str):
        return str.__str__(found)[:LONGEST_TEXT]  # of a str enum its value, on every version of Python
    kind: type[Any] = type(found)  # pyright: ignore[reportUnknownVariableType]
    if issubclass(kind, (list, tuple, dict, set, frozenset, bytes)) or hasattr(kind, '__array__'):
        raise Unreadable(kind.__name__)
    return str(found)[:LONGEST_TEXT]


def plain(value: Any) -> Any:
    """A value with tensors and numpy scalars turned into Python's own; containers and other objects as they are.

    Args:
        value: Anything an expression met.

    Raises:
        Unreadable: It may live on a device.
    """
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is int or kind is float or kind is str or kind is bool or value is None:
        return value
    if _is_tensor(value):
        tensor = _on_cpu(value)
        return tensor.item() if tensor.numel() == 1 else tensor
    if kind.__module__.partition('.')[0] == 'numpy':
        return value.item() if getattr(value, 'ndim', None) == 0 and hasattr(value, 'item') else value
    for protocol in ('__array__', '__dlpack__', '__cuda_array_interface__', '__torch_function__'):
        if hasattr(kind, protocol):  # jax, cupy, tensorflow: reading may wait for a device
            raise Unreadable(kind.__name__)
    return value


def _is_tensor(value: Any) -> bool:
    torch: Any = sys.modules.get('torch')
    tensor: Any = getattr(torch, 'Tensor', None)  # None while torch is being imported
    # issubclass: isinstance would ask the value for its class, and a stand-in for another object answers.
    return tensor is not None and issubclass(type(value), tensor)


def _on_cpu(tensor: Any) -> Any:
    """A tensor that can be read without waiting for a device; raises `Unreadable` for any other.

    Args:
        tensor: A torch tensor, perhaps a fake or wrapped one.
    """
    torch: Any = sys.modules['torch']
    if tensor.device.type != 'cpu' or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise Unreadable(f'{type(tensor).__name__} on {tensor.device.type}')
    return tensor.detach()


def _simple(value: Any) -> Any:
    """A number or text; other objects could do anything when converted (a tensor type of the program's own: wait)."""
    found = plain(value)
    if not isinstance(found, (int, float, str)):
        raise Unreadable(type(found).__name__)
    return found


def _true(value: Any) -> Any:
    """An operand of `and`, `or`, `not`, whose truth can be told without running code of the program's own."""
    found = plain(value)
    kind: type[Any] = type(found)  # pyright: ignore[reportUnknownVariableType]
    if not issubclass(kind, (int, float)) and hasattr(kind, '__bool__') and found is not None:
        raise Unreadable(kind.__name__)
    return found


def scalar(value: Any) -> str | int | float | bool:
    """A value an attribute can hold: bool, int of 64 bits, float, or text of at most 256 characters.

    Args:
        value: Anything.

    Raises:
        Unreadable: It is none of these.
    """
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT]
    if kind is float or kind is bool:
        return value
    if kind is not int:
        value = plain(value)
        # Subclasses (numpy.float64, str enums) become the plain type: marshal would write a numpy scalar as bytes.
        if isinstance(value, str):
            return str.__str__(value)[:LONGEST_TEXT]
        if isinstance(value, (bool, float)):
            return bool(value) if isinstance(value, bool) else float(value)
        if not isinstance(value, int):
            raise Unreadable(kind.__name__)
        value = int(value)
    if -(1 << 63) <= value < 1 << 63:
        return value
    if value.bit_length() > 8 * LONGEST_TEXT:
        raise Unreadable('int of too many digits')
    return str(value)[:LONGEST_TEXT]


def number(value: Any) -> int | float:
    """A number, from a scalar, a one-element tensor or a numpy scalar.

    Args:
        value: Anything.

    Raises:
        Unreadable: It is no number (a bool is none here).
    """
    found = plain(value)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise Unreadable(type(found).__name__)
    return found


def measure(value: Any) -> int | float:
    """The value of a metric point: an int of 64 bits as it is, any other number as a float.

    Args:
        value: Anything.

    Raises:
        Unreadable: It is no number, or larger than any float.
    """
    found = number(value)
    if isinstance(found, int) and -(1 << 63) <= found < 1 << 63:
        return int(found)
    try:
        return float(found)
    except OverflowError:
        raise Unreadable('int beyond any float') from None


def _total(value: Any) -> int | float:
    if _is_tensor(value):
        return number(_on_cpu(value).sum())
    if type(value).__module__.partition('.')[0] == 'numpy':
        return number(value.sum())
    return sum(_total(part) if isinstance(part, (list, tuple)) else number(part) for part in plain(value))


def _count(value: Any, *among: Any) -> int:
    if among:
        wanted = [_simple(each) for each in among]
        return sum(_simple(part) in wanted for part in plain(value) if part is not None)
    if _is_tensor(value):
        return int(value.numel())
    if type(value).__module__.partition('.')[0] == 'numpy':
        return int(value.size)
    return sum(_count(part) if isinstance(part, (list, tuple)) else 1 for part in plain(value))


def _each(value: Any, *names: str) -> list[Any]:
    """What is found under a path of names in every element; lists on the way are gone through as well."""
    found = _listed(value)
    for name in names:
        found = [
            inner
            for part in found
            for inner in _listed(part[name] if type(part) is dict else getattr(part, name), alone=True)
        ]
    return found


def _listed(value: Any, alone: bool = False) -> list[Any]:
    # An iterator of the program's own would be used up.
    if isinstance(value, (list, tuple)):
        return list(value)  # pyright: ignore[reportUnknownArgumentType]
    if not alone:
        raise Unreadable(type(value).__name__)
    return [value]


def _mean(value: Any) -> float:
    return _total(value) / _count(value)


def _simply(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: function(*[_simple(value) for value in values])


def _among(function: Callable[..., Any]) -> Callable[..., Any]:
    def choose(first: Any, *others: Any) -> Any:
        if others:
            return function([_simple(value) for value in (first, *others)])
        found = plain(first)
        if _is_tensor(found) or type(found).__module__.partition('.')[0] == 'numpy':
            return number(found.min() if function is min else found.max())
        return function([_simple(value) for value in found])

    return choose


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    'len': len,
    'min': _among(min),
    'max': _among(max),
    'int': _simply(int),
    'float': _simply(float),
    'str': text,
    'round': _simply(round),
    'total': _total,
    'mean': _mean,
    'count': _count,
    'each': _each,
}

_ROOTS: dict[str, Reader] = {
    'self': lambda scope: scope.args[0],
    'result': lambda scope: scope.result,
    'label': lambda scope: scope.label,
    'key': lambda scope: scope.key,
    'elapsed': lambda scope: scope.elapsed,
}

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    '+': lambda a, b: a + b,
    '-': lambda a, b: a - b,
    '*': lambda a, b: a * b,
    '/': lambda a, b: a / b,
    '//': lambda a, b: a // b,
    '%': lambda a, b: a % b,
    '<': lambda a, b: a < b,
    '<=': lambda a, b: a <= b,
    '>': lambda a, b: a > b,
    '>=': lambda a, b: a >= b,
    '==': lambda a, b: a == b,
    '!=': lambda a, b: a != b,
}
