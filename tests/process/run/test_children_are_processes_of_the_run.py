# SPDX-License-Identifier: Apache-2.0
"""Children in the run folder: each with its own identity, in the tree under the span that started it."""

from __future__ import annotations

import pytest

from tests.helpers.run import Place

RULES = """
framework: mine
rules:
- {kind: function, target: 'work:outer', group: job, name: outer}
- {kind: function, target: 'work:step', group: job, name: '{arg.what}'}
"""
WORK = """
def outer(f): return f()
def step(what): return what
"""
MAIN = """
import multiprocessing, os, subprocess, sys
import work
def child(what): work.step(what)
def main():
    subprocess.run([sys.executable, 'child.py', 'a program'], check=True)
    for method in ('fork', 'spawn', 'forkserver'):
        p = multiprocessing.get_context(method).Process(target=child, args=(method,)); p.start(); p.join()
    subprocess.run([sys.executable, '-I', '-c', 'pass'], check=True)
if __name__ == '__main__':
    work.outer(main)
"""
CHILD = 'import sys, work\nwork.step(sys.argv[1])\n'


def test_each_child_has_its_own_identity_and_its_place(place: Place) -> None:
    place.write({'work.py': WORK, 'main.py': MAIN, 'child.py': CHILD, 'lens.yaml': RULES})
    run = place.record('python', 'main.py')
    assert run.tree() == 'lens.run\n  outer\n    a program\n    fork\n    spawn\n    forkserver'
    spans = [span for span in run.spans if span.name != 'lens.run']
    assert len({span.resource['service.instance.id'] for span in spans}) == 5
    assert len({span.resource['process.pid'] for span in spans}) == 5
    assert len({span.trace for span in spans}) == 1
    reasons = [one.get('reason') for one in run.facts['processes'] if one.get('outcome') == 'stood_down']
    assert 'started with -I' in reasons


def test_the_ranks_of_torchrun_are_under_what_started_it(place: Place) -> None:
    pytest.importorskip('torch')
    main = """
import subprocess, sys, work
ranks = [sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2', 'rank.py']
work.outer(lambda: subprocess.run(ranks, check=True))
"""
    rank = "import os, work\nwork.step('rank ' + os.environ['RANK'])\n"
    place.write({'work.py': WORK, 'main.py': main, 'rank.py': rank, 'lens.yaml': RULES})
    run = place.record('--set', 'export_strategy=all_ranks', 'python', 'main.py')
    outer = run.only('outer')
    ranks = sorted((span for span in run.spans if span.name.startswith('rank')), key=lambda span: span.name)
    assert [span.name for span in ranks] == ['rank 0', 'rank 1']
    assert {span.parent for span in ranks} == {outer.id} and {span.trace for span in ranks} == {outer.trace}
    assert len({span.resource['service.instance.id'] for span in [outer, *ranks]}) == 3


BECOMES = """
import os, sys, work
work.step('before')
sys.stdout.flush()
work.outer(lambda: os.execvp({program}[0], {program}))
"""


@pytest.mark.parametrize('program', ["[sys.executable, 'child.py', 'after']", "['sh', '-c', 'sleep 0.3']"])
def test_a_program_that_becomes_another_one_ends_its_spans_there(place: Place, program: str) -> None:
    files = {'main.py': BECOMES.format(program=program), 'child.py': CHILD + 'import time\ntime.sleep(0.3)\n'}
    place.write({'work.py': WORK, 'lens.yaml': RULES, **files})
    done = place.lens('python', 'main.py')
    assert done.code == 0
    run = place.run
    after = '\n    after' if 'child.py' in program else ''
    assert run.tree() == 'lens.run\n  before\n  outer' + after
    outer = run.only('outer')
    assert outer.attributes['lens.exec'] is True and not outer.error and not outer.truncated
    # It does not reach over what the other program did.
    assert run.only('lens.run').end - outer.end > 200_000_000
    assert '1 span ended by an exec: the process went on as another program' in done.stderr
    assert 'cut short' not in done.stderr
    # Each program's own counts, which begin at nothing, are added up.
    assert sum(row['spans'] for row in run.facts['rules'] if 'work:step' in str(row)) == (2 if after else 1)


def test_an_exec_that_fails_ends_nothing(place: Place) -> None:
    main = """
import os, work
def tries():
    for program in ('/no/such', 'bad'):
        try: os.execv(program, ['a'])
        except OSError as error: print(type(error).__name__)
    work.step('goes on')
work.outer(tries)
"""
    place.write({'work.py': WORK, 'main.py': main, 'lens.yaml': RULES, 'bad': 'neither a script nor a program'})
    (place.cwd / 'bad').chmod(0o700)
    run = place.record('python', 'main.py')
    assert run.tree() == 'lens.run\n  outer\n    goes on'
    assert 'lens.exec' not in run.only('outer').attributes


ISOLATED = """
import multiprocessing, time
def child(): time.sleep(5)
if __name__ == '__main__':
    p = multiprocessing.get_context('spawn').Process(target=child); p.start(); p.join()
"""


@pytest.mark.parametrize(('option', 'reason'), [('-E', 'python ignores PYTHONPATH (-E)'), ('-S', 'without site (-S)')])
def test_children_of_a_python_that_is_not_reached_are_found_by_the_collector(
    place: Place, option: str, reason: str
) -> None:
    place.write({'work.py': WORK, 'main.py': ISOLATED, 'lens.yaml': RULES})
    run = place.record('python', option, 'main.py')
    found = [one for one in run.facts['processes'] if reason in str(one.get('reason'))]
    # The program itself, and its child; multiprocessing's own helper is none of the run.
    assert len({one['pid'] for one in found}) == 2, run.facts['processes']
