# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.unit.launch.launched import Bench

PROGRAM = """\
import os, sys, time
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print(os.getpid(), 'has no children', flush=True)
while not os.path.exists('go'):
    time.sleep(0.02)
sys.exit(7)
"""


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def siblings(bench: Bench, but: int) -> list[int]:
    """Processes of this test's launcher, by the environment they were started with."""
    found: list[int] = []
    for path in Path('/proc').glob('[0-9]*'):
        try:
            if f'XDG_CACHE_HOME={bench.env["XDG_CACHE_HOME"]}'.encode() in (path / 'environ').read_bytes().split(b'\0'):
                found.append(int(path.name))
        except OSError:
            continue
    return [pid for pid in found if pid != but]


def test_the_command_has_the_launchers_pid_and_a_sibling_finishes_the_folder(bench: Bench) -> None:
    command = bench.launcher('--exec', sys.executable, '-c', PROGRAM)
    # Its output is a pipe: if the sibling held it open, `communicate` would wait for the sibling.
    with subprocess.Popen(
        command, cwd=bench.cwd, env=bench.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f'{process.pid} has no children\n'
        (sibling,) = siblings(bench, process.pid)
        assert os.getsid(sibling) not in (os.getsid(0), os.getsid(process.pid))
        assert {os.readlink(f'/proc/{sibling}/fd/{fd}') for fd in (0, 1, 2)} == {os.devnull}
        os.kill(sibling, signal.SIGHUP)
        bench.cwd.joinpath('go').touch()
        process.communicate(timeout=20)
        assert process.returncode == 7

    (run,) = bench.runs()
    eventually(lambda: not siblings(bench, 0))
    told = json.loads(run.joinpath('run.json').read_text())
    assert told['complete'] is True
    assert [row['command'].split()[0] for row in told['processes']] != []
    assert not run.joinpath('launchers').exists()
