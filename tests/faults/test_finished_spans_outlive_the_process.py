# SPDX-License-Identifier: Apache-2.0
"""However a process ends, every span it has finished is in the journal, and what was open is shown as open."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.faults.tries import Tries
from tests.helpers.program import every_python, python

ENDLESS = """
    import os, work

    def loop():
        n = 0
        while True:
            work.task(n)
            os.write(1, b'%d\\n' % n)
            n += 1

    work.outer(loop)
"""


@every_python
@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM], ids=['SIGKILL', 'SIGTERM'])
def test_killed_at_a_random_moment(tmp_path: Path, version: str, number: signal.Signals) -> None:
    def kill(child: subprocess.Popen[bytes], chance: random.Random) -> None:
        time.sleep(chance.random() * 0.06)
        child.send_signal(number)

    for one in Tries(tmp_path, ENDLESS).run(python(version), during=kill):
        assert one.code == -number
        assert one.numbers and set(one.numbers) <= set(one.tasks)
        outer = [span for span in one.spans if span.name == 'outer']
        assert [span.ended for span in outer] == [False]
        assert all(span.parent == outer[0].id for span in one.spans if span.name == 'task')
        assert sum(not span.ended for span in one.spans) <= 2
        assert one.ids_are_unique()


@every_python
def test_os_exit_skips_every_handler(tmp_path: Path, version: str) -> None:
    main = """
        import os, random, work

        def loop():
            last = random.Random(os.getpid()).randrange(1, 3000)
            for n in range(last):
                work.task(n)
            os.write(1, b'%d\\n' % last)
            os._exit(1)

        work.outer(loop)
    """
    for one in Tries(tmp_path, main).run(python(version)):
        assert one.code == 1
        assert one.tasks == list(range(one.numbers[0]))
        assert [span.ended for span in one.spans if span.name == 'outer'] == [False]


@every_python
def test_exec_makes_another_program_of_the_same_process(tmp_path: Path, version: str) -> None:
    main = """
        import os, sys, work

        again = len(sys.argv) > 1
        for n in range(300):
            work.task(n + 300 * again)
        if not again:
            os.execv(sys.executable, [sys.executable, 'main.py', 'again'])
    """
    for one in Tries(tmp_path, main).run(python(version)):
        assert one.code == 0, one.stderr
        assert one.tasks == list(range(600))
        assert one.ids_are_unique()


@every_python
def test_an_interrupt_inside_our_code_reaches_the_program(tmp_path: Path, version: str) -> None:
    """A handler that raises, at random moments: most of them fall into our code, which is most of what runs."""
    main = """
        import os, random, signal, work

        chance = random.Random(os.getpid())
        raised = caught = 0

        class Interrupt(KeyboardInterrupt):
            pass

        def handler(*_):
            global raised
            raised += 1
            raise Interrupt

        signal.signal(signal.SIGALRM, handler)
        seen = []
        work.task.__globals__['seen'] = seen

        def some():
            global caught
            while caught < 30:
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.002))
                    while True:
                        work.task(len(seen))
                except Interrupt:
                    caught += 1
            signal.setitimer(signal.ITIMER_REAL, 0)

        work.outer(some)
        work.outer(work.task, -1)
        os.write(1, b'%d\\n%d\\n%d\\n' % (raised, caught, len(seen)))
    """
    tries = Tries(tmp_path, main)
    tries.program.write(
        {'work.py': 'def task(n):\n    seen.append(n)\ndef outer(body, *arguments):\n    return body(*arguments)\n'}
    )
    for one in tries.run(python(version)):
        assert one.code == 0, one.stderr
        raised, caught, seen = one.numbers
        assert raised == caught == 30
        assert set(range(seen - 1)) <= set(one.tasks)
        assert one.ids_are_unique()
        last = [span for span in one.spans if span.name == 'outer'][-1]
        assert last.parent == bytes.fromhex('cd' * 8), 'an interrupted call has left its span current'
        assert all(span.ended for span in one.spans if span.name == 'outer')
        assert not one.journal.reports('fault')
