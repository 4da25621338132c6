# SPDX-License-Identifier: Apache-2.0
"""Processes of a run that never ran stage 1 are named, with the reason, in run.json and in the summary."""

from __future__ import annotations

from tests.helpers.run import Place

WORKER = 'ray/_private/workers/default_worker.py'
FILES = {
    WORKER: 'import sys\nsys.stdin.read()\n',
    'score.py': 'import sys\nsys.stdin.read()\n',
    'parent.py': f"""\
import os, subprocess, sys, time

bare = {{k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}}
worker = os.path.abspath({WORKER!r})
children = [
    subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, env=env)
    for words, env in (
        ([worker], None), ([worker], bare), ([worker], {{**os.environ, 'PYTHONPATH': '/nowhere'}}),
        (['-I', 'score.py'], None), (['score.py'], None), (['-I', '-m', 'pip', '--version'], None),
    )
]
forked = os.fork()
if not forked:
    time.sleep(5)
    os._exit(0)
time.sleep(5)
for child in children:
    child.communicate()
os.waitpid(forked, 0)
""",
}


def test_who_never_reported_is_named_with_the_reason(place: Place) -> None:
    place.write(FILES)
    done = place.lens('python', 'parent.py')
    assert done.code == 0, done.stderr
    told = place.run.facts
    assert told['roll_call']['workers'] == {
        'seen': 3,
        'instrumented': 1,
        'not': [
            {'reason': 'its PYTHONPATH was removed', 'count': 1},
            {'reason': 'its PYTHONPATH was replaced', 'count': 1},
        ],
    }
    assert told['roll_call']['processes'] == {
        'seen': 3,
        'instrumented': 2,
        'not': [{'reason': 'python runs isolated (-I)', 'count': 1}],
    }
    missed = {row['command']: row['reason'] for row in told['processes'] if row['outcome'] == 'unreported'}
    assert set(missed) == {'default_worker.py', 'score.py'}
    summary = ' '.join(done.stderr.split())
    assert '1 of 3 workers instrumented; 1: its PYTHONPATH was removed; 1: its PYTHONPATH was replaced' in summary, (
        done.stderr
    )
    assert '1 Python process never reported; 1: python runs isolated (-I)' in summary


def test_a_run_where_everybody_reports_has_no_such_line(place: Place) -> None:
    place.write(FILES)
    done = place.lens('python', '-c', 'import time; time.sleep(1)')
    assert 'instrumented' not in done.stderr and 'never reported' not in done.stderr
    assert place.run.facts['roll_call']['processes'] == {'seen': 1, 'instrumented': 1, 'not': []}
