# SPDX-License-Identifier: Apache-2.0
"""A rule on every function, `with` block, loop and call of a file."""

from __future__ import annotations

from typing import Any

from lens_auto.codemod.index import Index
from lens_auto.codemod.source import Source
from lens_auto.codemod.style import STYLES
from lens_auto.codemod.undo import undo
from lens_auto.codemod.wish import Wish
from lens_auto.codemod.writing import Written, write

RULE: dict[str, Any] = {
    'key': 'k',
    'file': 0,
    'line': 1,
    'group': 'rollout',
    'bucket': 'idle',
    'own_bucket': True,
    'root': False,
    'announce': True,
    'native': False,
    'budget': None,
    'only_from': None,
    'inside_bucket': None,
    'within': (),
    'outside': (),
}


def rule(kind: str, name: str) -> dict[str, Any]:
    attributes = {'a': ('c', 1), 'b': ('env', 'HOME')}
    return {**RULE, 'kind': kind, 'name': ('c', name), 'attributes': attributes}


def wishes(index: Index, calls: bool = False) -> list[Wish]:
    found: list[Wish] = []
    for scope in index.definitions:
        if scope.function is not None and scope.node is not None:
            of = rule('function', f'f {scope.name}')
            found.append(Wish('function', scope, scope.node, of, of, target=scope.qualname))
    for kind, placed in (('loop', index.loops), ('block', index.withs)):
        for number, each in enumerate(placed):
            of = rule(kind, f'{kind} {number} of some length, so that some of the calls take several lines')
            found.append(Wish(kind, each.scope, each.node, of, of))
    for number, each in enumerate(index.every_call.values() if calls else ()):
        of = rule('call', f'c {number}')
        found.append(Wish('call', each.scope, each.node, of, of))
    return found


def on_everything(data: bytes, style: str = 'lens', calls: bool = False) -> tuple[Source, Written]:
    source = Source('tried.py', data)
    index = Index(source)
    return source, write(source, index, wishes(index, calls), STYLES[style])


def reverted(data: bytes) -> tuple[bytes, bool]:
    source = Source('tried.py', data)
    undone = undo(source)
    assert undone is not None
    return source.data(undone.text), undone.exact
