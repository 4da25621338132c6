# SPDX-License-Identifier: Apache-2.0
"""One YAML file -> its `telemetry:` block with line numbers.

The only place that imports PyYAML; the result is plain and cached.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import yaml

    from lens_auto.settings.cache import Document, Raw

SCALAR, NULL, LIST, OTHER = 0, 1, 2, 3

_NULL_TAG = 'tag:yaml.org,2002:null'
_MERGE_DEPTH = 8


def parse(data: bytes, names: frozenset[str], whole: bool) -> Document:
    """Read the block out of a file.

    Nodes are composed, not constructed: no tag runs code, and every value keeps its line.

    Args:
        data: The file.
        names: The known fields. The value of any other key is not kept: it may hold a secret, and the result lies on
            disk.
        whole: A file without a `telemetry:` key is the block itself.
    """
    import yaml

    # libyaml's when it is there: 10 times faster.
    loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
    try:
        root = _compose(data, loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return {'fault': f'not YAML, line {line}: {error.problem}'}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return {'fault': f'not YAML: {type(error).__name__}'}
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        return {'fault': 'not a mapping of keys to values'}
    top = _entries(root)
    document: Document = {}
    if 'telemetry' in top:
        line, block = top['telemetry']
        document['line'] = line
        if isinstance(block, yaml.MappingNode):
            document['block'] = _fields(block, names)
        elif block.tag != _NULL_TAG:
            document['fault'] = f'line {line}: telemetry is not a mapping'
        if 'defaults' in top:
            document['defaults'] = _defaults(top['defaults'][1])
    elif whole:
        document['block'] = _fields(root, names)
    elif 'defaults' in top:
        document['defaults'] = _defaults(top['defaults'][1])
    return document


def _compose(data: bytes, loader: type[Any]) -> yaml.Node | None:
    import yaml

    # The stubs leave the types of stream and node open.
    compose: Any = getattr(yaml, 'compose')  # noqa: B009
    return compose(data, Loader=loader)


def _entries(mapping: yaml.MappingNode, depth: int = 0) -> dict[str, tuple[int, yaml.Node]]:
    """Key -> (the key's line, its value), with `<<` merged in."""
    import yaml

    own: dict[str, tuple[int, yaml.Node]] = {}
    merged: dict[str, tuple[int, yaml.Node]] = {}
    for key, value in mapping.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.tag != 'tag:yaml.org,2002:merge':
            own[str(key.value)] = (key.start_mark.line + 1, value)
            continue
        sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for source in sources:
            if isinstance(source, yaml.MappingNode) and depth < _MERGE_DEPTH:
                merged = {**_entries(source, depth + 1), **merged}
    return {**merged, **own}


def _fields(mapping: yaml.MappingNode, names: frozenset[str]) -> dict[str, Raw]:
    import yaml

    fields: dict[str, Raw] = {}
    for name, (line, node) in _entries(mapping).items():
        if name not in names and name != '_override_':
            fields[name] = ('', line, OTHER)
        elif isinstance(node, yaml.ScalarNode):
            fields[name] = (str(node.value), line, NULL if node.tag == _NULL_TAG else SCALAR)
        elif isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
            fields[name] = (','.join(str(item.value) for item in node.value), line, LIST)
        else:
            fields[name] = ('', line, OTHER)
    return fields


def _defaults(node: yaml.Node) -> list[tuple[str, str]]:
    """(kind, name) of each parent.

    Kind is 'file', 'block' (a file that is the block, Hydra's `- telemetry: otlp`) or 'self'.
    """
    import yaml

    items = node.value if isinstance(node, yaml.SequenceNode) else [node]
    parents: list[tuple[str, str]] = []
    for item in items:
        if isinstance(item, yaml.ScalarNode) and item.value:
            name = str(item.value)
            parents.append(('self', '') if name == '_self_' else ('file', name))
        elif isinstance(item, yaml.MappingNode):
            for group, (_, option) in _entries(item).items():
                # Hydra's `override` and `optional` may stand before the group, a slash makes it absolute.
                if group.split()[-1:] in (['telemetry'], ['/telemetry']) and isinstance(option, yaml.ScalarNode):
                    parents.append(('block', f'telemetry/{option.value}'))
    return parents
