# SPDX-License-Identifier: Apache-2.0
"""A proposal as the text of a rule file. Written by hand, because YAML libraries keep no comments."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator

from .rules import Proposal, Proposed, Value

FIRST = '# Proposed by `lens-rules discover '
"""What every proposal starts with."""

_WIDTH = 118
_PLAIN = re.compile(r'[A-Za-z_][\w./:\-]*')
# What YAML 1.1 reads as something else than text.
_WORDS = frozenset(('y', 'n', 'yes', 'no', 'on', 'off', 'true', 'false', 'null'))
_NOTE_AT = 64


def text(proposal: Proposal) -> str:
    """The file."""
    return '\n'.join(line.rstrip() for line in _lines(proposal)) + '\n'


def _lines(proposal: Proposal) -> Iterator[str]:
    count = f'{proposal.files} file{"" if proposal.files == 1 else "s"}'
    yield f'{FIRST}{" ".join(proposal.paths)}` from {count}.'
    yield from _comment(
        'It only reads: names say what a function does, and names can be wrong. Before each rule stands how'
    )
    yield from _comment('sure it is, and why.')
    yield from _comment('  sure    the code says so (a timer that is given labels, a loop that generates and trains)')
    yield from _comment('  likely  the names fit, and a training loop leads there')
    yield from _comment('  guess   the names fit; look at it')
    yield from _comment('Delete what you do not want to see, rename the rest, then: lens-rules check FILE')
    yield ''
    yield f'framework: {proposal.framework}'
    if proposal.when:
        yield f'when: {proposal.when}'
    yield ''
    if proposal.groups:
        yield 'groups:'
        for name, bucket in proposal.groups.items():
            yield f'  {name}: ' + (f'{{bucket: {bucket}}}' if bucket else '{}')
        yield 'presets:'
        yield f'  per_step: [per_step, {", ".join(proposal.groups)}]'
        yield ''
    if proposal.actors:
        yield from _comment('Ray actors. The spans of their methods are recorded in their own processes:')
        for actor in proposal.actors:
            yield from _comment(f'  {actor}')
        yield ''
    yield 'rules:' if proposal.rules else 'rules: []'
    section = ''
    for rule in proposal.rules:
        if rule.section != section:
            section = rule.section
            yield ''
            yield f'# {"-" * (_WIDTH - 3 - len(section))} {section}'
        yield from _rule(rule)
    if proposal.left_out:
        yield ''
        yield f'# {"-" * (_WIDTH - 11)} left out'
        for line in proposal.left_out:
            yield from _comment(line)


def _comment(line: str) -> Iterator[str]:
    indent = len(line) - len(line.lstrip())
    for part in textwrap.wrap(line, _WIDTH, subsequent_indent=' ' * (indent + 2), break_long_words=False) or ['']:
        yield f'# {" " * indent if part == part.lstrip() else ""}{part}'


def _rule(rule: Proposed) -> Iterator[str]:
    first, *rest = rule.why
    yield from _comment(f'{rule.sureness}: {first}')
    for line in rest:
        yield from _comment(f'  {line}')
    flow = _flow(rule.fields)
    if len(flow) + 2 <= _WIDTH and not any(isinstance(value, dict) for value in rule.fields.values()):
        yield f'- {flow}'
        return
    start = '- '
    for key, value in rule.fields.items():
        if isinstance(value, dict) and (key in ('labels', 'metrics') or len(_flow(value)) > 80):
            yield f'{start}{key}:'
            for name, inner in value.items():
                yield from _noted(f'    {scalar(name)}: {_inline(inner)}', rule.notes.get(name, ''))
            for remark in rule.remarks:
                yield f'    # {remark}'
        elif isinstance(value, list) and len(_inline(value)) > 80:
            yield f'{start}{key}:'
            yield from (f'  - {scalar(item)}' for item in value)
        else:
            yield f'{start}{key}: {_inline(value)}'
        start = '  '


def _noted(line: str, note: str) -> Iterator[str]:
    """A line with its note behind it, or above it where both do not fit."""
    both = f'{line:<{_NOTE_AT}}  # {note}'
    if not note or len(both) <= _WIDTH + 2:
        yield both if note else line
    else:
        yield f'    # {note}'
        yield line


def _inline(value: Value) -> str:
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, str):
        return scalar(value)
    if isinstance(value, list):
        return f'[{", ".join(scalar(item) for item in value)}]'
    return _flow(value)


def _flow(fields: dict[str, Value]) -> str:
    return f'{{{", ".join(f"{scalar(key)}: {_inline(value)}" for key, value in fields.items())}}}'


def scalar(value: str) -> str:
    """A text as YAML writes it: plain where that reads back as the same text, else in quotes."""
    if _PLAIN.fullmatch(value) and not value.endswith(':') and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
