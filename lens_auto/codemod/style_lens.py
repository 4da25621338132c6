# SPDX-License-Identifier: Apache-2.0
"""The style `lens`: rules as `lens_auto.source` takes them. Says all that a rule can say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lens_auto.codemod.piece import OWN, Listed, Piece, Said, keyword, literal
from lens_auto.codemod.wish import DECORATED, Refused, Wish
from lens_auto.rules.expression import Tree, show, show_template, walk
from lens_auto.rules.registry import GROUPS

_ABSENT = {
    'function': 'function',
    'interval': 'function',
    'logger': 'function',
    'metric': 'function',
    'annotate': 'function',
    'resource': 'function',
    'block': 'block',
    'begin': 'nothing',
    'end': 'nothing',
    'call': 'function',
}
_FALLBACK = {
    'function': ('def {name}(*_, **__):', '    return lambda function: function'),
    'block': ('def {name}(*_, **__):', '    return _lens_null()'),
    'nothing': ('def {name}(*_, **__):', '    pass'),
}


def write(wish: Wish, note: Callable[[str], None]) -> list[Piece]:
    """What this style puts at a place.

    Args:
        wish: The place and what a rule wants there.
        note: Told what cannot be said; nothing, here.

    Raises:
        Refused: It cannot.
    """
    kind = wish.kind
    if kind in DECORATED:
        of = [keyword('method', wish.method)] if wish.method else []
        return [Piece('outer' if of else 'decorator', Said(f'{OWN}{kind}', (*_decorated(wish), *of)))]
    if kind == 'end':
        return [Piece('after', Said(f'{OWN}end', (wish.timer, repr(wish.label))))]
    trees = [wish.name, *wish.attributes.values()]
    for tree in trees:
        for each in walk(tree):
            if each[0] in ('arg', 'self', 'result', 'label', 'key', 'elapsed', 'match'):
                what = '.'.join(map(str, each))
                raise Refused(f'`{what}` is known at run time only, not where the block stands')
    spanning = [repr(show_template(wish.name)), *_spanning(wish)]
    if kind == 'begin':
        current = ['current=True'] if wish.span.get('current') else []
        return [Piece('after', Said(f'{OWN}begin', (wish.timer, repr(wish.label), *spanning, *current)))]
    how = {'block': 'item', 'loop': 'loop', 'call': 'call'}[kind]
    return [Piece(how, Said(f'{OWN}{"call" if kind == "call" else "block"}', tuple(spanning)))]


def _decorated(wish: Wish) -> list[str | Listed]:
    rule, kind = wish.rule, wish.kind
    if kind == 'logger':
        metrics = {key: _metric(wish, given, 'gauge') for key, given in rule['metrics'].items()}
        given = {key: rule[key] for key in ('group', 'metrics_arg', 'prefix_arg', 'prefixes') if rule[key] is not None}
        given |= {'native': wish.framework} if rule['native'] else {}
        trees = [tree for each in rule['metrics'].values() for tree in (each['name'], *each['attributes'].values())]
        return [*_keywords(given), keyword('metrics', metrics), *_vars(wish, trees)]
    if kind == 'metric':
        measures = [_metric(wish, given, 'histogram', value=given['value']) for given in rule['measures']]
        given = {key: rule[key] for key in ('group', 'only_from') if rule[key] is not None}
        given |= {'native': wish.framework} if rule['native'] else {}
        trees = [t for each in rule['measures'] for t in (each['name'], each['value'], *each['attributes'].values())]
        return [*map(literal, measures), *_keywords(given), *_vars(wish, trees)]
    if kind == 'resource':
        settings = [] if rule['settings'] is None else [f'settings={show(rule["settings"])!r}']
        trees = [*rule['attributes'].values(), *([] if rule['settings'] is None else [rule['settings']])]
        return [*_attributes(wish), *settings, *_vars(wish, trees)]
    if kind == 'annotate':
        given = {key: rule[key] for key in ('group', 'only_from') if rule[key] is not None}
        given |= {'native': wish.framework} if rule['native'] else {}
        return [repr(rule['span']), *_keywords(given), *_attributes(wish), *_vars(wish, list(wish.attributes.values()))]
    given: dict[str, Any] = {}
    if kind == 'interval':
        given = {key: rule[key] for key in ('label_arg',) if rule[key] is not None}
        given |= {'current': True} if rule['current'] else {}
        given |= {'stop_at': 'call'} if rule['stop_at'] == 'call' else {}
        if wish.part == 'stop':
            # What it is called and holds was said where it starts.
            return [repr(wish.part), repr(show_template(wish.name)), *_keywords({'group': rule['group'], **given})]
    for key in ('inside_bucket', 'only_from'):
        if rule.get(key) is not None:
            given[key] = rule[key]
    for key in ('within', 'outside'):
        if rule.get(key):
            given[key] = [':'.join(target) for target in rule[key]]
    if wish.held:
        given['held'] = True
    part = [repr(wish.part)] if wish.part else []
    return [*part, repr(show_template(wish.name)), *_spanning(wish), *_keywords(given)]


def _spanning(wish: Wish) -> list[str | Listed]:
    """How a span is made, as keywords."""
    span = wish.span
    group: str | None = span['group']
    given: dict[str, Any] = {} if group is None else {'group': group}
    bucket = span['bucket']
    if span['own_bucket']:
        given['bucket'] = bucket or 'none'
    elif bucket is not None and GROUPS.get(group or '') != bucket:
        # Of a group that only its rule file knows, which need not be there at run time.
        given['group_bucket'] = bucket
    if span['root']:
        given['root'] = True
    if not span['announce']:
        given['announce'] = False
    if span['native']:
        given['native'] = wish.framework
    if wish.rule['budget'] is not None:
        given['budget'] = wish.rule['budget']
    return [*_keywords(given), *_attributes(wish), *_vars(wish, [wish.name, *wish.attributes.values()])]


def _keywords(given: Mapping[str, Any]) -> list[str | Listed]:
    return [keyword(key, value) for key, value in given.items()]


def _attributes(wish: Wish) -> list[str | Listed]:
    shown = {name: _shown(tree) for name, tree in wish.attributes.items()}
    return [keyword('attributes', shown)] if shown else []


def _shown(tree: Tree) -> Any:
    """An expression as it stands in the source: a number or a boolean as itself."""
    if tree[0] == 'c' and not isinstance(tree[1], str):
        return tree[1]
    return show(tree)


def _vars(wish: Wish, trees: list[Tree]) -> list[str | Listed]:
    used = wish.used(trees)
    shown = {name: (show(each['value']), each['map'], each['default']) for name, each in used.items()}
    return [keyword('vars', shown)] if shown else []


def _metric(wish: Wish, given: Mapping[str, Any], instrument: str, value: Tree | None = None) -> Any:
    shown: dict[str, Any] = {'name': show_template(wish.tree(given['name']))}
    if value is not None:
        shown['value'] = _shown(wish.tree(value))
    if given['instrument'] != instrument:
        shown['instrument'] = given['instrument']
    if given['unit']:
        shown['unit'] = given['unit']
    if given['attributes']:
        shown['attributes'] = {name: _shown(wish.tree(tree)) for name, tree in given['attributes'].items()}
    if given.get('nonzero'):
        shown['nonzero'] = True
    return shown['name'] if list(shown) == ['name'] else shown


def imports(uses: set[str]) -> list[str]:
    """The lines that bring in the names used.

    Args:
        uses: The names.
    """
    kinds = sorted(name.removeprefix(OWN) for name in uses)
    names = [f'{kind} as {OWN}{kind}' for kind in kinds]
    flat = f'    from lens_auto.source import {", ".join(names)}'
    lines = ['try:', flat]
    if len(flat) > 100:
        lines[1:] = ['    from lens_auto.source import (', *(f'        {name},' for name in names), '    )']
    lines += ['except ImportError:']
    if any(_ABSENT[kind] == 'block' for kind in kinds):
        lines += ['    from contextlib import nullcontext as _lens_null', '']
    for number, kind in enumerate(kinds):
        lines += [''] if number else []
        lines += ['    ' + line.format(name=f'{OWN}{kind}') for line in _FALLBACK[_ABSENT[kind]]]
    return lines
