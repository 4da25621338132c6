# SPDX-License-Identifier: Apache-2.0
"""The names a rule file declares before its rules use them: `when`, `groups`, `presets`, `vars`."""

from __future__ import annotations

import re
from typing import TypeAlias

from . import expression, registry
from .document import Fields, Items, Node, Scalar
from .errors import suggestion
from .expression import FUNCTIONS, ROOTS
from .model import GROUP_KEYS, NATIVE_KEYS, VAR_KEYS, WHEN_KEYS, Bucket, Native, Var, When
from .reader import Reader, shown
from .target import is_dotted
from .version_range import LIMIT

DROP = 'drop'
"""What a label is given instead of a group when nothing of it is to be recorded."""

# What a pattern captures differs from rule to rule.
_IN_VARS = frozenset(ROOTS) - {'match'}
_NAME = re.compile(r'[A-Za-z][\w.\-]*')
_WHEN = re.compile(r'\s*([^\s<>=!~]+)\s*(.*?)\s*')


def is_name(text: str) -> bool:
    """Whether `text` can name a framework, a group or a preset."""
    return _NAME.fullmatch(text) is not None


def read_when(reader: Reader, values: dict[str, Node]) -> When | None:
    """The package a file needs."""
    node = values.get('when')
    if node is None:
        return None
    if isinstance(node, Fields):
        inner = reader.fields(node, WHEN_KEYS, '`when`')
        module, version = reader.text(inner, 'module'), reader.text(inner, 'version') or ''
    else:
        text = reader.as_text(node, '`when`')
        found = _WHEN.fullmatch(text) if text is not None else None
        module, version = found.groups() if found else (None if text is None else '', '')
    if module is None:
        return None
    if not is_dotted(module):
        reader.fault(node, f'`when`: `{module}` is not a package name', 'write for example `my_trainer>=1.2,<2`')
        return None
    parts = [part.strip() for part in version.split(',')] if version else []
    for part in parts:
        if not LIMIT.fullmatch(part):
            reader.fault(node, f'`when`: `{part}` is not a version limit', 'write for example `my_trainer>=1.2,<2`')
            return None
    return When(module, ','.join(part.replace(' ', '') for part in parts) or None)


def read_groups(reader: Reader, values: dict[str, Node]) -> dict[str, Bucket]:
    """The built-in groups with those of the file over them."""
    groups = dict(registry.GROUPS)
    node = reader.named(values, 'groups')
    for name, value in node.pairs if node else ():
        if not is_name(name.text) or name.text == DROP:
            reader.fault(name, f'`{name.text}` cannot name a group', 'use letters, digits and `_`, a letter first')
        if isinstance(value, Scalar) and value.value is None:
            groups[name.text] = None
        elif isinstance(value, Fields):
            inner = reader.fields(value, GROUP_KEYS, f'the group `{name.text}`')
            groups[name.text] = read_bucket(reader, inner)
        else:
            reader.fault(
                value,
                f'a group is a mapping, not {shown(value)}',
                'write `{bucket: productive}`, or `{}` for an umbrella',
            )
            groups[name.text] = None
    return groups


def read_vocabularies(reader: Reader, values: dict[str, Node]) -> tuple[str, ...]:
    """The names of a file's vocabularies, the default first."""
    listed = reader.texts(values, 'vocabularies') or ()
    for name in listed:
        if not is_name(name) or listed.count(name) > 1:
            reader.fault(values['vocabularies'], f'`{name}` cannot name a vocabulary', 'use a word, each one once')
    return listed


def read_native(reader: Reader, values: dict[str, Node]) -> Native | None:
    """How to tell that the framework's own telemetry records."""
    node = values.get('native')
    if node is None:
        return None
    inner = reader.fields(node, NATIVE_KEYS, '`native`')
    module, library = reader.text(inner, 'module'), reader.texts(inner, 'library') or ()
    for key, names in (('module', () if module is None else (module,)), ('library', library)):
        for name in names:
            if not is_dotted(name):
                hint = 'write for example `my_trainer.otel`'
                reader.fault(inner[key], f'`{key}`: `{name}` is not a module name', hint)
    return None if module is None else Native(module, library, reader.expression(inner, 'enabled', {'env'}))


def read_bucket(reader: Reader, values: dict[str, Node], key: str = 'bucket') -> Bucket:
    """A bucket; `none` and nothing mean that there is none."""
    node = values.get(key)
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return None
    bucket = reader.choice(values, key, (*registry.BUCKETS, 'none'))
    return None if bucket == 'none' else bucket


def read_presets(
    reader: Reader, values: dict[str, Node], groups: dict[str, Bucket]
) -> dict[str, tuple[str, ...] | str]:
    """The built-in presets with those of the file over them, each as the groups it stands for."""
    node = reader.named(values, 'presets')
    own: dict[str, Node] = {}
    for name, value in node.pairs if node else ():
        if not is_name(name.text):
            reader.fault(name, f'`{name.text}` cannot name a preset', 'use letters, digits and `_`, a letter first')
        elif name.text in groups:
            reader.fault(name, f'`{name.text}` is a group already', 'choose another name for the preset')
        else:
            own[name.text] = value
    members = {name: _members(reader, name, value, {*groups, *registry.PRESETS, *own}) for name, value in own.items()}
    presets = dict(registry.PRESETS)
    for name in own:
        if name in _reach(members, name):
            reader.fault(own[name], f'the preset `{name}` contains itself by way of others', 'list groups instead')
        presets[name] = _expand(members, name, groups, frozenset())
    return presets


_Members: TypeAlias = 'dict[str, tuple[str, ...] | str]'


def _members(reader: Reader, name: str, node: Node, known: set[str]) -> tuple[str, ...] | str:
    """What the preset `name` lists, as written."""
    if isinstance(node, Scalar) and node.value == '*':
        return '*'
    if not isinstance(node, Items):
        reader.fault(node, f'a preset is a list of groups or "*", not {shown(node)}', 'write `[step, rollout]`')
        return ()
    members: list[str] = []
    for item in node.items:
        text = reader.as_text(item, f'a group of the preset `{name}`')
        if text in known:
            members.append(text)
        elif text is not None:
            reader.fault(item, f'group `{text}` is not known', suggestion(text, known, 'Known'))
    return tuple(members)


def _reach(members: _Members, name: str) -> set[str]:
    """The file's presets that `name` leads to by way of others: its own name in it means the built-in one."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        for member in members[current]:
            if member in members and member != current and member not in found:
                found.add(member)
                waiting.append(member)
    return found


def _expand(members: _Members, name: str, groups: dict[str, Bucket], within: frozenset[str]) -> tuple[str, ...] | str:
    listed = members[name]
    if listed == '*':
        return '*'
    result: dict[str, None] = {}
    for member in listed:
        inner: tuple[str, ...] | str = (member,)
        if member in groups:
            pass
        elif member in members and member != name:
            inner = () if member in within else _expand(members, member, groups, within | {name})
        else:
            # A preset that lists its own name extends the built-in one.
            inner = registry.PRESETS.get(member, ())
        if inner == '*':
            return '*'
        result.update(dict.fromkeys(inner))
    return tuple(result)


def read_vars(reader: Reader, values: dict[str, Node]) -> dict[str, Var]:
    """The named expressions; afterwards `reader.var_roots` knows them."""
    node = reader.named(values, 'vars')
    places: dict[str, Scalar] = {}
    for name, _ in node.pairs if node else ():
        if not name.text.isidentifier() or name.text.startswith('__'):
            reader.fault(name, f'`{name.text}` cannot name a var', 'use letters, digits and `_`, a letter first')
        elif name.text in ROOTS or name.text in FUNCTIONS:
            reader.fault(name, f'`{name.text}` has a meaning in expressions already', 'choose another name')
        else:
            places[name.text] = name
    # Known before any is read: a var may use those that follow it.
    reader.var_roots = dict.fromkeys(places, frozenset[str]())
    result = {name.text: _var(reader, name, value) for name, value in node.pairs} if node else {}
    result = {name: var for name, var in result.items() if name in places}
    for name in result:
        used = _uses(result, name)
        if name in used:
            reader.fault(places[name], f'the var `{name}` is defined by itself', 'a var may use others, not itself')
        trees = [result[other].value for other in {name, *used} if other in result]
        heads = {part[0] for tree in trees for part in expression.walk(tree)}
        reader.var_roots[name] = frozenset(heads & ROOTS.keys())
    return result


def _var(reader: Reader, name: Scalar, node: Node) -> Var:
    if not isinstance(node, Fields):
        return Var(reader.as_expression(node, f'the var `{name.text}`', _IN_VARS), None, None)
    inner = reader.fields(node, VAR_KEYS, f'the var `{name.text}`')
    value = reader.expression(inner, 'value', _IN_VARS) or ('c', None)
    mapping = reader.named(inner, 'map')
    if mapping is None:
        return Var(value, None, reader.text(inner, 'default'))
    pairs: dict[str, str | int | float | bool] = {}
    for key, entry in mapping.pairs:
        if isinstance(entry, Scalar) and entry.value is not None:
            # The look-up is by text: `1` and `true` are the 1 and the True of the program.
            pairs[key.text if key.value is None else str(key.value)] = entry.value
        else:
            reader.fault(
                entry, f'`{key.text}` must stand for one value, not {shown(entry)}', 'write a text or a number'
            )
    return Var(value, pairs, reader.text(inner, 'default'))


def _uses(all_vars: dict[str, Var], name: str) -> set[str]:
    """The vars that `name` leads to."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        var = all_vars.get(waiting.pop())
        for part in expression.walk(var.value) if var else ():
            if part[0] == 'var' and part[1] not in found:
                found.add(part[1])
                waiting.append(part[1])
    return found
