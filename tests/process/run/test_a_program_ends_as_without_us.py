# SPDX-License-Identifier: Apache-2.0
"""Exit codes, uncaught exceptions and closed pipes of a traced program, compared with the program alone."""

from __future__ import annotations

import re
import sys

import pytest

from tests.helpers.program import every_python, python
from tests.helpers.run import LENS, Done, Place

# How deep a recursion gets; and in 3.10 our frame: a traced function is named twice, first at its `def`.
OURS = r'  \[Previous line repeated .*\n'
if sys.version_info < (3, 11):
    OURS += r'|  File ".*", line \d+, in \w+\n    (?:async )?def .*\n'

# `train` lets a statement run in the midst of the traced training: inside job, step and update.
MIDST = """\
import os, signal, sys, threading
import trainer

class OwnError(Exception):
    pass

def each(step):
    if step == 2:
        {statement}

trainer.fit(trainer.Config(), 3, each)
print('the end')
"""

ENDINGS = {
    'to the end': 'pass',
    'exit 0': 'sys.exit()',
    'exit a number': 'sys.exit(3)',
    'exit a large number': 'sys.exit(300)',
    'exit a negative number': 'sys.exit(-1)',
    'exit a text': 'sys.exit("no more disk")',
    'exit True': 'sys.exit(True)',
    'exit an object': 'sys.exit({"a": 1})',
    'SystemExit raised': 'raise SystemExit(7)',
    'an exception': 'raise ValueError("bad reward")',
    'an exception of its own': 'raise OwnError("bad", 3)',
    'an exception with a cause': 'raise OwnError("outer") from KeyError("inner")',
    'KeyboardInterrupt': 'raise KeyboardInterrupt',
    'GeneratorExit': 'raise GeneratorExit',
    'StopIteration': 'raise StopIteration(3)',
    'os._exit': 'os._exit(5)',
    'os.abort': 'os.abort()',
    'a signal': 'os.kill(os.getpid(), signal.SIGTERM)',
    'SIGKILL': 'os.kill(os.getpid(), signal.SIGKILL)',
    'in a thread': 't = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()',
    'recursion': '(lambda f: f(f))(lambda f: f(f))',
}


def visible(done: Done) -> tuple[int, str, str]:
    """All that can be seen of a program, without what docs/limits.md says of us."""
    return done.code, done.stdout, re.sub(OURS, '', done.theirs)


@pytest.mark.parametrize('statement', ENDINGS.values(), ids=ENDINGS.keys())
def test_code_output_and_traceback_are_the_same(place: Place, statement: str):
    place.write({'main.py': MIDST.format(statement=statement)})

    plain = place.plain('python', 'main.py')
    traced = place.lens('--no-summary', 'python', 'main.py')

    assert visible(traced) == visible(plain)
    assert len(place.run.named('step')) in (2, 3)


@pytest.mark.parametrize('statement', [ENDINGS['an exception'], ENDINGS['exit a number']])
def test_python_dash_c_and_dash_m_end_the_same(place: Place, statement: str):
    place.write({'main.py': MIDST.format(statement=statement)})
    for command in (('-m', 'main'), ('-c', 'import main'), ('-X', 'dev', '-W', 'error', 'main.py')):
        plain = place.plain('python', *command)
        traced = place.lens('--no-summary', 'python', *command)

        assert visible(traced) == visible(plain)


@pytest.mark.parametrize('reader', ['head -1', 'true', 'head -c 3'])
def test_a_reader_that_leaves_early_ends_it_the_same(place: Place, reader: str):
    script = f'{{}} python train.py 5000 | {reader}; echo "codes ${{{{PIPESTATUS[*]}}}}"'

    plain = place.plain('bash', '-c', script.format(''))
    traced = place.plain('bash', '-c', script.format(f'{LENS} --no-summary'))

    assert visible(traced) == visible(plain)
    assert 'BrokenPipeError' in plain.stderr
    assert place.run.named('job')[0].error


@pytest.mark.parametrize('redirect', ['>&-', '2>&-', '</dev/null >&- 2>&-', '<&-', '>/dev/full'])
def test_closed_and_full_descriptors_end_it_the_same(place: Place, redirect: str):
    script = f'{{}} python train.py {redirect}; echo "code $?"'

    plain = place.plain('bash', '-c', script.format(''))
    traced = place.plain('bash', '-c', script.format(f'{LENS} --no-summary'))

    assert visible(traced) == visible(plain)
    assert place.run.named('job')


@every_python
def test_every_python_the_command_may_choose_is_recorded(place: Place, version: str):
    """The launcher's own Python is another one."""
    place.write({'main.py': MIDST.format(statement=ENDINGS['an exception'])})
    command = (python(version), 'main.py')

    plain = place.plain(*command)
    traced = place.lens('--no-summary', *command)

    assert (traced.code, traced.stdout) == (plain.code, plain.stdout)
    assert version == '3.10' or traced.theirs == plain.theirs
    assert traced.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1] == 'ValueError: bad reward'
    assert (
        place.run.tree('number')
        == """\
lens.run!
  job!
    ~ step number=1
      rollout
        score number=1
      update
    ~ step! number=2
      rollout
        score number=2
      update"""
    )
