# SPDX-License-Identifier: Apache-2.0
"""Threads that switch all the time, and handlers that record inside our own code: all spans, all ids, no deadlock."""

from __future__ import annotations

from pathlib import Path

from tests.faults.tries import Tries
from tests.helpers.program import every_python, python


@every_python
def test_a_handler_that_records_every_half_millisecond(tmp_path: Path, version: str) -> None:
    main = """
        import os, signal, work

        inside = 0

        def handler(*_):
            global inside
            work.outer(work.task, -1)
            inside += 1

        signal.signal(signal.SIGALRM, handler)

        def loop():
            n = 0
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            while inside < 200:
                work.task(n)
                n += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            return n

        os.write(1, b'%d\\n%d\\n' % (work.outer(loop), inside))
    """
    for one in Tries(tmp_path, main).run(python(version)):
        assert one.code == 0, one.stderr
        own, inside = one.numbers
        assert inside >= 200
        assert [n for n in one.tasks if n >= 0] == list(range(own))
        assert one.tasks.count(-1) == inside
        assert all(span.ended for span in one.spans)
        assert one.ids_are_unique()


@every_python
def test_eight_threads_that_switch_every_microsecond(tmp_path: Path, version: str) -> None:
    main = """
        import sys, threading, work

        sys.setswitchinterval(1e-6)

        def loop(k):
            for n in range(400):
                work.task(1000 * k + n)

        threads = [threading.Thread(target=work.outer, args=(loop, k)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """
    for one in Tries(tmp_path, main).run(python(version)):
        assert one.code == 0, one.stderr
        assert sorted(one.tasks) == [1000 * k + n for k in range(8) for n in range(400)]
        outer = {span.id for span in one.spans if span.name == 'outer'}
        above: dict[bytes, set[int]] = {}
        for span in one.spans:
            if span.name == 'task':
                above.setdefault(span.parent, set()).add(span.attributes['n'] // 1000)
        assert set(above) == outer and all(len(threads) == 1 for threads in above.values())
        assert one.ids_are_unique()
