# SPDX-License-Identifier: Apache-2.0
"""The launcher ends with its command, or becomes it; what the run's other processes do meanwhile is not lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.helpers.run import PATIENCE, Place

# A server in a session of its own that goes on when the command has ended, until somebody writes `over`.
LEAVES_A_SERVER = """\
import os, subprocess, sys, time
import trainer

def each(step):
    while step == 3 and not os.path.exists('over'):
        time.sleep(0.01)

if sys.argv[1:] == ['server']:
    open('serving', 'w').close()
    trainer.fit(trainer.Config(), 5, each)
    open('served', 'w').close()
else:
    null = subprocess.DEVNULL
    subprocess.Popen([sys.executable, 'main.py', 'server'], start_new_session=True, stdout=null, stderr=null)
    trainer.fit(trainer.Config(), 2)
    while not os.path.exists('serving'):
        time.sleep(0.01)
    time.sleep(0.1)
"""


def wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_server_left_behind_is_told_and_a_replay_adds_the_rest(place: Place):
    place.write({'main.py': LEAVES_A_SERVER})

    done = place.lens('python', 'main.py')

    assert done.code == 0
    assert '1 process is still running; after that, --replay adds what was recorded meanwhile' in done.stderr
    run = place.run
    assert run.facts['complete'] is False
    early = place.lens('--replay', str(run.path))
    assert early.code == 1 and 'still running' in early.stderr

    place.write({'over': ''})
    wait_for(lambda: (place.cwd / 'served').exists())
    while (late := place.lens('--replay', str(run.path))).code:
        assert 'still running' in late.stderr  # it has said that it is done and is about to end

    assert run.facts['complete'] is True
    assert len(run.named('job')) == 2 and len(run.named('step')) == 7
    assert len({span.id for span in run.spans}) == len(run.spans) == 1 + 2 + 7 * 4
    assert not any(span.truncated for span in run.spans)


def test_a_process_that_starts_when_the_launcher_has_ended_is_not_lost_in_silence(place: Place):
    """`lens-instrument sh -c 'python train.py &'`: the command ends before Python has begun."""
    place.write(
        {
            'late.py': 'import os, time\n'
            'while not os.path.exists("over"): time.sleep(0.01)\n'
            'import trainer\ntrainer.fit(trainer.Config(), 3)\nopen("served", "w").close()\n'
        }
    )
    done = place.plain('bash', '-c', 'lens-instrument bash -c "(sleep 0.5; python late.py) > late.out 2>&1 &"')
    assert done.code == 0, done.stderr

    place.write({'over': ''})
    wait_for(lambda: (place.cwd / 'served').exists())
    wait_for(lambda: not place.lens('--replay', str(place.run.path)).code)

    assert (place.cwd / 'late.out').read_text() == place.plain('python', 'train.py').stdout
    assert len(place.run.named('step')) == 3


def test_with_exec_the_command_has_the_launchers_process_id_and_is_collected(place: Place):
    place.write(
        {
            'main.py': 'import os, subprocess, sys, trainer\n'
            'print(os.getpid(), flush=True)\n'
            'subprocess.run([sys.executable, "train.py", "2"])\n'
            'trainer.fit(trainer.Config(), 3)\n'
        }
    )
    launcher = place.start('lens-instrument', '--exec', 'python', 'main.py')
    out, err = launcher.communicate(timeout=PATIENCE)

    assert launcher.returncode == 0, err
    assert int(out.split()[0]) == launcher.pid
    run = place.run
    wait_for(lambda: (run.path / 'run.json').exists() and run.facts['complete'])
    assert len(run.named('step')) == 5
    assert len(run.named('lens.run')) == 1
    roles = {span.resource['process.pid']: span.resource['lens.role'] for span in run.named('job')}
    assert roles.pop(launcher.pid) == 'driver'
    assert list(roles.values()) == ['process']


def test_a_run_that_is_still_going_on_can_be_looked_at(place: Place):
    place.write(
        {
            'main.py': 'import os, time, trainer\n'
            'def each(step):\n'
            '    while step == 4 and not os.path.exists("over"): time.sleep(0.01)\n'
            'trainer.fit(trainer.Config(), 5, each)\n'
        }
    )
    launcher = place.start('lens-instrument', '--no-summary', 'python', 'main.py')
    try:
        wait_for(lambda: bool(place.runs) and len(place.run.named('step')) == 3)
        early = place.lens('--replay', str(place.run.path))
        assert early.code == 1
        assert 'is being collected by a launcher that is still at work' in ' '.join(early.stderr.split())
        assert 'launcher was killed' not in early.stderr
    finally:
        place.write({'over': ''})
        launcher.communicate(timeout=PATIENCE)

    assert launcher.returncode == 0
    assert place.run.facts['complete'] is True
    assert len(place.run.named('step')) == 5 and len(place.run.spans) == 2 + 5 * 4


def test_processes_of_multiprocessing_are_part_of_the_run(tmp_path: Path, place: Place):
    place.write(
        {
            'main.py': 'import multiprocessing, trainer\n'
            'def work(steps): trainer.fit(trainer.Config(), steps)\n'
            'if __name__ == "__main__":\n'
            '    for how in ("fork", "spawn", "forkserver"):\n'
            '        with multiprocessing.get_context(how).Pool(2) as pool: pool.map(work, [2, 3])\n'
        }
    )
    plain = place.plain('python', 'main.py')
    done = place.lens('--no-summary', 'python', 'main.py')

    assert (done.code, sorted(done.stdout.splitlines())) == (0, sorted(plain.stdout.splitlines()))
    assert len(place.run.named('step')) == 3 * 5
    assert len({span.id for span in place.run.spans}) == len(place.run.spans)
    assert place.run.facts['complete'] is True
