# SPDX-License-Identifier: Apache-2.0
"""The places that rules find by a pattern, in modules and scripts of an environment."""

from __future__ import annotations

from typing import Any

from lens_auto.rewrite.pattern import parse
from lens_auto.rewrite.places import Found, Wanted, find

from .model import SOURCE_KINDS
from .source_tree import Module


def wanted(rule: dict[str, Any], qualname: str) -> Wanted:
    """What a rule of the plan wants of a scope.

    Args:
        rule: A `loop`, `block` or `call` rule, or one about a function.
        qualname: The scope, or the function.
    """
    if rule['kind'] not in SOURCE_KINDS:
        return Wanted(rule['key'], 'function', qualname, None, (1, 1), bool(rule.get('force')))
    pattern = parse(rule['kind'], rule['match'])
    return Wanted(rule['key'], rule['kind'], qualname, pattern, tuple(rule['expect']), rule['force'])


def places(rule: dict[str, Any], qualname: str, module: Module) -> Found:
    """What a rule finds in a module that has a syntax tree.

    Args:
        rule: See `wanted`.
        qualname: See `wanted`.
        module: The module.
    """
    assert module.tree is not None, 'it has no syntax tree'
    return find(module.tree, [wanted(rule, qualname)], module.source)[0]


def lines(found: Found) -> str:
    """Where the places are, for people.

    Args:
        found: What was found.
    """
    numbers = list(dict.fromkeys(place.lineno for place in found.places))
    shown = ', '.join(map(str, numbers[:6])) + (', ...' if len(numbers) > 6 else '')
    return f'line{"" if len(numbers) == 1 else "s"} {shown}' if numbers else ''
