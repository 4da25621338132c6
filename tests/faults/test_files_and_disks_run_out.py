# SPDX-License-Identifier: Apache-2.0
"""No room, no descriptors, no spool: the program notices nothing, what could be stored is, and the rest is counted."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.tries import Tries, Try
from tests.helpers.journal import journal
from tests.helpers.program import every_python, python

MANY = """
    import work

    for n in range(12000):
        work.task(n)
"""


def mounts() -> bool:
    """Whether this test may mount a file system in a mount namespace of its own."""
    if os.geteuid() or not shutil.which('unshare'):
        return False
    return (
        subprocess.run(['unshare', '-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], capture_output=True).returncode == 0
    )


needs_mount = pytest.mark.skipif(not mounts(), reason='needs root and the right to mount')


def counted(one: Try) -> tuple[list[int], int]:
    """The tasks journalled, and how many records the process says it lost."""
    lost = [report['records'] for report in one.journal.reports('dropped')]
    return one.tasks, lost[-1] if lost else 0


def quiet(one: Try) -> None:
    assert one.code == 0 and one.stderr == '' and one.said == ['']


@needs_mount
@every_python
def test_full_disk(tmp_path: Path, version: str) -> None:
    mounted = (
        # The folder as it was is still open when the small disk lies on top of it.
        'exec 3<"$LENS_SPOOL" && mkdir "$LENS_SPOOL/keep" && mount -t tmpfs -o size=1500k tmpfs "$LENS_SPOOL" && '
        '"$@" 3<&-; code=$?; cp "$LENS_SPOOL"/* /proc/self/fd/3/keep; exit $code'
    )
    for one in Tries(tmp_path, MANY).run(python(version), inside=['unshare', '-m', 'sh', '-c', mounted, 'sh']):
        one = replace(one, journal=journal(one.spool / 'keep'))
        quiet(one)
        tasks, lost = counted(one)
        assert tasks == list(range(len(tasks))) and len(tasks) > 2000
        records = sum(record[0] in (1, 2) for record in one.journal.records)
        assert records + lost >= 24000 and lost <= 24000 - records + 10


@needs_mount
@every_python
def test_read_only_spool(tmp_path: Path, version: str) -> None:
    mounted = 'mount -t tmpfs -o ro tmpfs "$LENS_SPOOL" && "$@"'
    for one in Tries(tmp_path, MANY).run(python(version), inside=['unshare', '-m', 'sh', '-c', mounted, 'sh']):
        quiet(one)


@every_python
def test_a_limit_of_file_sizes(tmp_path: Path, version: str) -> None:
    """Below even the first segment; the signal that going over it would raise has its default action: death."""
    main = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))
        import work
        for n in range(1000):
            work.task(n)
    """
    for one in Tries(tmp_path, main).run(python(version)):
        quiet(one)
        assert one.tasks == list(range(1000))


@every_python
def test_no_descriptors_left(tmp_path: Path, version: str) -> None:
    main = """
        import os, work

        for n in range(10):
            work.task(n)
        held = []
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        for n in range(10, 1500):
            work.task(n)
    """
    for one in Tries(tmp_path, main).run(python(version), inside=['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh']):
        quiet(one)
        tasks, lost = counted(one)
        assert tasks == list(range(len(tasks))) and len(tasks) >= 100
        assert 2 * len(tasks) + lost >= 3000


@every_python
def test_descriptors_come_back(tmp_path: Path, version: str) -> None:
    main = """
        import os, work

        held = []
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        for n in range(1500):
            work.task(n)
        for fd in held:
            os.close(fd)
    """
    for one in Tries(tmp_path, main).run(python(version), inside=['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh']):
        quiet(one)
        assert one.tasks == list(range(1500))


@every_python
def test_spool_removed_under_a_running_process(tmp_path: Path, version: str) -> None:
    main = """
        import os, shutil, work

        for n in range(3000):
            work.task(n)
            if n == 100:
                shutil.rmtree(os.environ['LENS_SPOOL'])
        work.task(0)
    """
    for one in Tries(tmp_path, main).run(python(version)):
        assert one.code == 0


@every_python
def test_files_of_the_program_that_take_our_numbers_stay_open(tmp_path: Path, version: str) -> None:
    """`os.closerange` closes whatever we might hold; the program's next files get those numbers, and keep them."""
    main = """
        import os, work

        work.task(0)
        os.closerange(3, 1024)
        files = [open(f'{os.environ["LENS_SPOOL"]}/own-{k}', 'w+b') for k in range(20)]
        before = [os.fstat(file.fileno()).st_ino for file in files]
        for n in range(1, 6000):
            work.task(n)
        pid = os.fork()
        if pid == 0:
            for n in range(1000):
                work.task(-1)
            os._exit(0)
        os.waitpid(pid, 0)
        for k, file in enumerate(files):
            file.write(b'%d' % k)
        assert [os.fstat(file.fileno()).st_ino for file in files] == before
        for k, file in enumerate(files):
            file.seek(0)
            assert file.read() == b'%d' % k
            file.close()
        assert len(os.listdir('/proc/self/fd')) == 4
    """
    for one in Tries(tmp_path, main).run(python(version)):
        quiet(one)
        assert [n for n in one.tasks if n >= 0] == list(range(6000))
        assert one.tasks.count(-1) == 1000
