# SPDX-License-Identifier: Apache-2.0
"""Under which names the rules may know a class or function that Ray has unpickled in a worker."""

from __future__ import annotations

import sys

from lens_auto.record.standard import FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType
    from typing import Any


def names_of(module: str, qualname: str, found: Any) -> Iterator[tuple[str, str, Any]]:
    """Module, qualified name and object of what came: itself, and the bases of a class that came by value with it.

    Args:
        module: Its module, as Ray says.
        qualname: Its name there.
        found: The class or function.
    """
    yield module, qualname, found
    for base in getattr(found, '__mro__', ())[1:]:
        name: str = base.__module__
        known = (name, base.__qualname__) != (module, qualname)
        if known and (name == '__main__' or getattr(sys.modules.get(name), base.__name__, None) is not base):
            yield name, base.__qualname__, base


def rest_of(wanted: str, qualname: str) -> str | None:
    """What a rule's name says beyond a class or function; '' for itself, None when it is about something else.

    Args:
        wanted: The qualified name of the rule's target.
        qualname: That of the class or function.
    """
    if wanted == qualname:
        return ''
    return wanted[len(qualname) + 1 :] if wanted.startswith(qualname + '.') else None


def is_script_of(path: str, found: Any) -> bool:
    """Whether a target's script path is the end of the path of the file that something was defined in.

    Args:
        path: `train.py`, `examples/train.py`.
        found: A class or function of some `__main__`.
    """
    return path.endswith('.py') and any(
        ('/' + function.__code__.co_filename).endswith('/' + path) for function in _functions(found)
    )


def shown_in(found: Any) -> list[dict[str, Any]]:
    """The globals that came with a class or function by value: its script's other functions and classes are in them.

    Args:
        found: The class or function.
    """
    spaces: list[dict[str, Any]] = []
    for function in _functions(found):
        if function.__globals__ not in spaces:
            spaces.append(function.__globals__)
    return spaces


def says(code: CodeType, key: str) -> bool:
    """Whether a function's code, changed for a rule, opens that rule's spans itself.

    Args:
        code: The code.
        key: The rule's key.
    """
    start = key.encode() + b'\x1f'  # see `rewrite.key`
    return any(type(const) is bytes and const.startswith(start) for const in code.co_consts)


def _functions(found: Any) -> Iterator[FunctionType]:
    members = [found] if not isinstance(found, type) else [m for base in found.__mro__ for m in vars(base).values()]
    for member in members:
        member = getattr(member, '__func__', member)
        while isinstance(getattr(member, '__wrapped__', None), FunctionType):
            member = member.__wrapped__
        if isinstance(member, FunctionType) and not member.__module__.startswith('ray.'):
            yield member
