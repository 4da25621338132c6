# SPDX-License-Identifier: Apache-2.0
"""A forked child tells its own spans, under the span it was forked in, and leaves its parent's alone."""

from __future__ import annotations

from pathlib import Path

from tests.faults.tries import Tries
from tests.helpers.program import every_python, python

MAIN = """
    import multiprocessing, os, threading, warnings
    import work

    warnings.simplefilter('ignore')

    def fork_inside(first):
        '''The child returns through the wrapper of `outer`: it must not end the span its parent opened.'''
        work.task(first)
        pid = os.fork()
        work.task(first + 1 if pid == 0 else first + 2)
        return pid

    def whole(first):
        pid = work.outer(fork_inside, first)
        if pid == 0:
            for n in range(500):
                work.task(first + 3)
            os._exit(0)
        os.waitpid(pid, 0)

    def pool(first):
        process = multiprocessing.get_context('fork').Process(target=work.task, args=(first,))
        process.start()
        process.join()

    whole(10)
    thread = threading.Thread(target=whole, args=(20,))
    thread.start()
    thread.join()
    work.outer(pool, 30)
"""


@every_python
def test_fork_of_a_thread_of_multiprocessing_and_inside_a_span(tmp_path: Path, version: str) -> None:
    for one in Tries(tmp_path, MAIN).run(python(version)):
        assert one.code == 0, one.stderr
        outer = {span.id: span for span in one.spans if span.name == 'outer'}
        ends = [record[1] for record in one.journal.records if record[0] == 2]
        assert [ends.count(span) for span in outer] == [1, 1, 1]
        tasks = {n: [s for s in one.spans if s.name == 'task' and s.attributes['n'] == n] for n in set(one.tasks)}
        first, second, third = outer
        for n, above in ((10, first), (11, first), (12, first), (20, second), (21, second), (22, second), (30, third)):
            assert [span.parent for span in tasks[n]] == [above], n
        assert len(tasks[13]) == len(tasks[23]) == 500
        assert one.ids_are_unique()
        assert len({record[6] for record in one.journal.records if record[0] == 0}) == 4  # four processes


@every_python
def test_a_fork_hook_that_runs_before_ours_does_not_write_into_the_parents_journal(
    tmp_path: Path, version: str
) -> None:
    main = """
        import os

        def hook():
            for n in range(100):
                work.task(-1)

        os.register_at_fork(before=hook, after_in_child=hook, after_in_parent=hook)
        import work

        for n in range(20):
            work.task(n)
            pid = os.fork()
            if pid == 0:
                work.task(1000 + n)
                os._exit(0)
            os.waitpid(pid, 0)
    """
    for one in Tries(tmp_path, main).run(python(version)):
        assert one.code == 0, one.stderr
        assert sorted(n for n in one.tasks if n >= 0) == [*range(20), *range(1000, 1020)]
        # Those of the hook in the child are not recorded: it still has its parent's ids.
        assert one.tasks.count(-1) == 20 * 200
        assert one.ids_are_unique()
