# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of rule files, made from the model's tables, for editors that complete and check as one types.

`python -m lens_auto.rules.schema` writes `rules/schema.json`; with `--check` it fails when that file is out of date.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .model import (
    EDGES,
    FILE_KEYS,
    GROUP_KEYS,
    HTTP_PLACES,
    INSTRUMENTS,
    KINDS,
    LABEL_KEYS,
    MEASURE_KEYS,
    METRIC_KEYS,
    NATIVE_KEYS,
    RAY_CALLS,
    VAR_KEYS,
    VLLM_PLACES,
    WAYS,
    WHEN_KEYS,
    Key,
    Keys,
)
from .names import DROP
from .registry import BUCKETS, GROUPS, PRESETS

_Schema = dict[str, Any]

_TEXT: _Schema = {'type': 'string', 'minLength': 1}
_SCALAR: _Schema = {'type': ['string', 'number', 'boolean']}
_TARGET: _Schema = {'type': 'string', 'pattern': r'^[^:\s]+:[^:/\s]+$', 'examples': ['my_trainer.loop:train']}
_PLACE: _Schema = {
    'type': 'string',
    'pattern': r'^[^:\s]+(:[^:/\s]+)?$',
    'examples': ['train.py', 'my_trainer.loop:train'],
}
_PAIR: _Schema = {
    'type': 'string',
    'pattern': r'^[^:/\s]+:[^:/\s]+/[^:/\s]+$',
    'examples': ['my_trainer.timer:Timer.start/stop'],
}
# A file's own groups are valid too, which a schema cannot look up: the built-in names are offered, not required.
_GROUP: _Schema = {'anyOf': [{'enum': sorted(GROUPS)}, _TEXT]}
_MEMBER: _Schema = {'anyOf': [{'enum': sorted((*GROUPS, *PRESETS))}, _TEXT]}


def schema() -> _Schema:
    """The schema."""
    return {
        '$schema': 'http://json-schema.org/draft-07/schema#',
        'title': 'lens-auto rule file',
        **_object(FILE_KEYS),
    }


def path() -> str:
    """The schema's file in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(os.path.dirname(package), 'rules', 'schema.json')


def text() -> str:
    """The schema as its file holds it."""
    return json.dumps(schema(), indent=2) + '\n'


def main(arguments: list[str]) -> int:
    """Write the schema file, or with `--check` compare it."""
    name = path()
    if arguments == ['--check']:
        try:
            with open(name, encoding='utf-8') as file:
                fresh = file.read() == text()
        except OSError:
            fresh = False
        if not fresh:
            print(f'{name} is out of date; write it with: python -m lens_auto.rules.schema', file=sys.stderr)
        return 0 if fresh else 1
    if arguments:
        print('usage: python -m lens_auto.rules.schema [--check]', file=sys.stderr)
        return 2
    with open(name, 'w', encoding='utf-8') as file:
        file.write(text())
    return 0


def _object(keys: Keys) -> _Schema:
    return {
        'type': 'object',
        'additionalProperties': False,
        'required': [name for name, key in keys.items() if key.required],
        'properties': {name: _key(key) for name, key in keys.items()},
    }


def _key(key: Key) -> _Schema:
    doc = f'{key.doc} Default: {key.default}.' if key.default else key.doc
    return {'description': doc, **(_SIMPLE.get(key.holds) or _COMPOSED[key.holds]())}


def _one_or_many(one: _Schema) -> _Schema:
    return {'anyOf': [one, {'type': 'array', 'minItems': 1, 'items': one}]}


def _map(values: _Schema) -> _Schema:
    return {'type': 'object', 'additionalProperties': values}


def _rule() -> _Schema:
    # Chosen by `kind` with if/then: an editor then complains about the keys of that kind, not about all kinds at once.
    return {
        'type': 'object',
        'required': ['kind'],
        'properties': {'kind': {'enum': sorted(KINDS)}},
        'allOf': [
            {'if': {'properties': {'kind': {'const': kind}}, 'required': ['kind']}, 'then': _object(keys)}
            for kind, keys in KINDS.items()
        ],
    }


_ATTRIBUTES = _map(_SCALAR)
_BUCKET: _Schema = {'enum': [*BUCKETS, 'none', None]}
_SIMPLE: Mapping[str, _Schema] = {
    'attributes': _ATTRIBUTES,
    'bucket': _BUCKET,
    'count': {'type': 'integer', 'minimum': 1},
    'edge': {'enum': list(EDGES)},
    'expect': {'anyOf': [{'type': 'integer', 'minimum': 0}, {'type': 'string', 'pattern': r'^\d+(\+|-\d+)?$'}]},
    'expression': _SCALAR,
    'flag': {'type': 'boolean'},
    'globs': _one_or_many(_TEXT),
    'group': _GROUP,
    'http side': {'enum': list(HTTP_PLACES)},
    'identifier': {'type': 'string', 'pattern': r'^[A-Za-z][\w.\-]*$'},
    'instrument': {'enum': list(INSTRUMENTS)},
    'kind': {'enum': sorted(KINDS)},
    'map': _map(_SCALAR),
    'module': _TEXT,
    'name': {'type': 'string', 'pattern': r'^\w+$'},
    'pairs': _one_or_many(_PAIR),
    'pattern': {**_TEXT, 'examples': ['for $i in range($$$):', 'with timer.time("generation"):', 'ray.get($refs)']},
    'places': _one_or_many(_PLACE),
    'ray call': {'enum': list(RAY_CALLS)},
    'presets': _map({'anyOf': [{'const': '*'}, {'type': 'array', 'items': _MEMBER}]}),
    'targets': _one_or_many(_TARGET),
    'template': {'anyOf': [{**_TEXT, 'examples': ['rl.{label}']}, _map(_TEXT)]},
    'text': {'type': 'string'},
    'texts': _one_or_many({'type': 'string'}),
    'version': _TEXT,
    'vllm part': {'enum': list(VLLM_PLACES)},
    'way': {'enum': list(WAYS)},
}
_COMPOSED: Mapping[str, Callable[[], _Schema]] = {
    'groups': lambda: _map({'anyOf': [{'type': 'null'}, _object(GROUP_KEYS)]}),
    'labels': lambda: _map({'anyOf': [{'const': DROP}, _GROUP, _object(LABEL_KEYS)]}),
    'metrics': lambda: _map({'anyOf': [_SIMPLE['template'], _object(METRIC_KEYS)]}),
    'measures': lambda: {'type': 'array', 'minItems': 1, 'items': _object(MEASURE_KEYS)},
    'native': lambda: _object(NATIVE_KEYS),
    'rules': lambda: {'type': 'array', 'items': _rule()},
    'vars': lambda: _map({'anyOf': [_SCALAR, _object(VAR_KEYS)]}),
    'when': lambda: {'anyOf': [_TEXT, _object(WHEN_KEYS)]},
}

if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
