# SPDX-License-Identifier: Apache-2.0
"""Programs made of every construct of the language, with a span at each loop, block, call and function of theirs.

They print what they see of themselves: values, names, tracebacks with their carets, source, stack, warnings. And they
are traced line by line. All of it is as without us, in a process that records and in one that knows nothing of us.
"""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.program import every_python, python

HELPER = Path(__file__).parents[1] / 'helpers' / 'rewriting.py'
PROGRAMS = sorted((Path(__file__).parent / 'constructs').glob('*.py'))
STATEMENTS = 'loop,block,function'
# A generator that ends inside `yield from` is seen to raise StopIteration; as of 3.13, `close` no longer enters one
# that has no block to leave, and a span is one.
GENERATORS_END = ('exception', 'return', 'call')


@functools.cache
def outcome(version: str, mode: str, kinds: str, *options: str) -> dict[str, Any]:
    programs = [str(path) for path in PROGRAMS if _is_for(path, version)]
    done = subprocess.run(
        [python(version), *options, str(HELPER), mode, kinds, *programs], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _is_for(path: Path, version: str) -> bool:
    since = path.stem.rpartition('_')[2]
    return not since.isdigit() or int(since) <= int(version.replace('.', ''))


def lines(answer: dict[str, Any], name: str) -> list[str]:
    if name != 'generators':
        return answer['lines']
    return [line for line in answer['lines'] if not line.startswith(GENERATORS_END)]


@every_python
@pytest.mark.parametrize('kinds', [STATEMENTS, 'call'])
@pytest.mark.parametrize('mode', ['absent', 'recorded'])
@pytest.mark.parametrize('options', [(), ('-OO',)])
def test_they_print_the_same_and_the_same_lines_are_traced(
    version: str, kinds: str, mode: str, options: tuple[str, ...]
) -> None:
    plain = outcome(version, 'plain', '', *options)
    rewritten = outcome(version, mode, kinds, *options)

    for name, expected in plain.items():
        if version == '3.10' and (mode, kinds, name) == ('recorded', 'call', 'errors'):
            continue  # there a traceback shows a recorded call twice, see docs/limits.md
        assert rewritten[name]['printed'] == expected['printed'], name
        if name == 'recursion':
            continue  # at the end of the stack it takes a frame to enter a span
        assert lines(rewritten[name], name) == lines(expected, name), name


@every_python
@pytest.mark.parametrize('kinds', [STATEMENTS, 'call'])
def test_each_span_that_begins_ends_and_none_stays_current(version: str, kinds: str) -> None:
    recorded = outcome(version, 'recorded', kinds)

    for name, answer in recorded.items():
        begun, ended = answer['spans']
        assert begun == ended, name
        assert answer['current'], name
        assert answer['faults'] == [], name
    assert sum(answer['spans'][0] for answer in recorded.values()) > 300
    assert all(answer['places'] for name, answer in recorded.items())


@every_python
def test_a_statement_with_a_span_costs_no_recursion_depth(version: str) -> None:
    assert outcome(version, 'recorded', STATEMENTS)['recursion']['printed'] == 'True\n'
