# SPDX-License-Identifier: Apache-2.0
"""A rule as the source of a program writes it (`lens_auto.source`), to the form that rules have in the plan."""

from __future__ import annotations

from lens_auto.rules.selection import built_in
from lens_auto.wrap.spelled import Misspelled, expression, template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lens_auto.wrap.expression import Tree

_DEFAULTS: dict[str, Any] = {
    'line': 0,
    'group': None,
    'bucket': None,
    'attributes': {},
    'announce': True,
    'root': False,
    'native': False,
    'own_bucket': False,
    'budget': None,
    'only_from': None,
    'inside_bucket': None,
    'within': (),
    'outside': (),
    'label_arg': None,
    'current': False,
    'stop_at': 'return',
    'metrics_arg': None,
    'prefix_arg': None,
    'prefixes': None,
    'settings': None,
    'apply': 'wrap',
    'force': False,
}
_PLAIN = ('announce', 'root', 'budget', 'inside_bucket', 'label_arg', 'current', 'stop_at', 'metrics_arg', 'prefix_arg')


def file_of(files: list[dict[str, Any]]) -> dict[str, Any]:
    """The file that rules in the source are of: it knows the groups and presets of all others, and the built-in ones.

    Args:
        files: The plan's files.
    """
    groups: dict[str, Any] = {}
    presets: dict[str, Any] = {}
    base = built_in()
    for file in files:
        # Each has the built-in ones as well: what another file says of a name counts, not that this one says nothing.
        for name, group in file['groups'].items():
            if name not in base['groups'] or _group(group) != _group(base['groups'][name]):
                groups.setdefault(name, _group(group))
        for name, preset in file['presets'].items():
            if preset != base['presets'].get(name):
                presets.setdefault(name, preset)
    for name, group in base['groups'].items():
        groups.setdefault(name, _group(group))
    for name, preset in base['presets'].items():
        presets.setdefault(name, preset)
    shape: dict[str, Any] = {'path': '', 'framework': '', 'when': None, 'vars': {}, 'vocabularies': (), 'native': None}
    return {**shape, 'groups': groups, 'presets': presets}


def _group(group: Any) -> Any:
    kind: object = group.__class__
    return group if kind is dict else {'bucket': group}


def rule_of(
    kind: str,
    part: str,
    name: str,
    keys: Mapping[str, Any],
    file: int,
    groups: Mapping[str, Any],
    variables: dict[str, Any],
) -> tuple[dict[str, Any], list[str]]:
    """The rule, and what of it makes no sense, a line each.

    Args:
        kind: Its kind.
        part: For an interval, which end it is.
        name: The span's name; '' for kinds without spans.
        keys: Its other keys.
        file: Index of the file it is of.
        groups: The groups known.
        variables: Gets the rule's `vars`, under names of their own.

    Raises:
        Misspelled: The name is no template.
    """
    absent: list[str] = []
    group: Any = keys.get('group')
    known = groups.get(group)
    # A group that is not known here (of a rule file that is not there) has the bucket that the source gives it.
    bucket = keys.get('group_bucket') if known is None else known['bucket']
    own = keys.get('bucket')
    rule: dict[str, Any] = {
        **_DEFAULTS,
        **{key: keys[key] for key in _PLAIN if key in keys},
        'key': name or f'{kind} in the source',
        'file': file,
        'kind': kind,
        'group': group,
        'bucket': None if own == 'none' else own or bucket,
        'own_bucket': own is not None,
        'native_of': keys.get('native'),
    }
    for key in ('only_from', 'prefixes'):
        if keys.get(key) is not None:
            rule[key] = tuple(keys[key])
    for key in ('within', 'outside'):
        rule[key] = tuple(tuple(target.split(':', 1)) for target in keys.get(key, ()))
    named = _variables(rule['key'], keys.get('vars') or {}, variables, absent)

    def tree(text: Any) -> Tree:
        return _renamed(expression(text), named)

    rule['name'] = _renamed(template(name), named) if name else None
    rule['attributes'] = _trees(keys.get('attributes') or {}, tree, absent)
    if kind == 'annotate':
        rule['span'] = keys['span']
    elif kind == 'resource':
        rule['settings'] = None if keys.get('settings') is None else tree(keys['settings'])
    elif kind == 'logger':
        rule['metrics'] = {key: _metric(given, tree, absent) for key, given in keys['metrics'].items()}
    elif kind == 'metric':
        rule['measures'] = [
            {**_metric(given, tree, absent, 'histogram'), 'value': tree(given['value'])} for given in keys['metrics']
        ]
    return rule, absent


def _variables(key: str, given: Mapping[str, Any], variables: dict[str, Any], absent: list[str]) -> dict[str, str]:
    """Take a rule's `vars` over: name to (expression, map, default)."""
    named = {name: f'{key}/{name}' for name in given}
    for name, (value, table, default) in given.items():
        try:
            read = _renamed(expression(value), named)
        except Misspelled as problem:
            absent.append(f'vars {name}: {problem}')
            read = ('c', None)
        variables[named[name]] = {'value': read, 'map': table, 'default': default}
    return named


def _trees(given: Mapping[str, Any], tree: Any, absent: list[str]) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    for name, text in given.items():
        try:
            found[name] = tree(text)
        except Misspelled as problem:
            absent.append(f'attribute {name}: {problem}')
    return found


def _metric(given: Any, tree: Any, absent: list[str], instrument: str = 'gauge') -> dict[str, Any]:
    if isinstance(given, str):
        given = {'name': given}
    return {
        'name': template(given['name']),
        'instrument': given.get('instrument', instrument),
        'unit': given.get('unit', ''),
        'attributes': _trees(given.get('attributes') or {}, tree, absent),
        'nonzero': bool(given.get('nonzero')),
    }


def _renamed(tree: Any, named: Mapping[str, str]) -> Any:
    """The tree with the names that `vars` have in the file of all rules of the source."""
    if type(tree) is not tuple or not named:
        return tree  # pyright: ignore[reportUnknownVariableType]
    parts: Tree = tree  # pyright: ignore[reportUnknownVariableType]
    if len(parts) == 2 and parts[0] == 'var' and parts[1] in named:
        return ('var', named[parts[1]])
    if parts and parts[0] == 'c':
        return parts
    return tuple(_renamed(part, named) for part in parts)
