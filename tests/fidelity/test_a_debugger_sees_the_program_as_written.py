# SPDX-License-Identifier: Apache-2.0
"""pdb in a function whose source is changed: it stops where it would stop, and shows what it would show.

To step into the call that begins a span is to step into ours, unless the debugger is told to skip `lens_auto*`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.program import Program, every_python, function, place, python

MODULE = '''
"""Trains."""


def train(count):
    total = 0
    for step in range(count):
        if step == 1:
            continue
        with open('/dev/null') as file:
            total += fetch(
                step,
            )
    else:
        total += 1
    return total


def fetch(step):
    return step * 2


def numbers(count):
    for each in range(count):
        yield each
'''
MAIN = """
import io
import pdb
import m

m.train(1), list(m.numbers(1))  # what is needed for a place is loaded at its first use
COMMANDS = '''{commands}'''
debugger = pdb.Pdb(stdin=io.StringIO(COMMANDS), nosigint=True, readrc=False, skip=['lens_auto*'])
debugger.use_rawinput = False
debugger.reset()
print(debugger.runcall(lambda: (m.train(3), list(m.numbers(2)))))
"""
COMMANDS = {
    'each line': ['step'] * 100,
    'line by line, over calls': ['step', 'step', *['next', 'p sorted(locals())'] * 24, 'continue'],
    'a breakpoint in the loop': [
        *('break m.py:9', 'continue', 'where', 'args', 'list', 'p step, total', 'up', 'p sorted(globals())', 'down'),
        *('until', 'longlist', 'return', 'whatis fetch', 'source fetch', 'clear 1', 'continue'),
    ],
    'another breakpoint': ['tbreak m.py:24', 'continue', 'p each', 'jump 24', 'next', 'display each', 'continue'],
}
RULES = [
    place('loop', 'loop', 'm:train', 'for step in range($n):'),
    place('block', 'block', 'm:train', 'with open($p) as $f:'),
    place('loop', 'items', 'm:numbers', 'for each in range($n):'),
    {**function('fetch', 'm:fetch'), 'apply': 'rewrite'},
]


@every_python
@pytest.mark.parametrize('commands', COMMANDS)
def test_pdb_prints_the_same(tmp_path: Path, version: str, commands: str) -> None:
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': MAIN.format(commands='\n'.join(COMMANDS[commands]) + '\n')})

    plain = program.plain(python=python(version))
    traced = program.traced(RULES, python=python(version))

    assert plain.code == 0 and 'm.py(' in plain.stdout, plain.stderr
    assert traced.visible() == plain.visible()
    assert {'loop', 'block', 'items', 'fetch'} <= {*traced.journal.names()}
