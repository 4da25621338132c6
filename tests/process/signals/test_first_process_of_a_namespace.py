# SPDX-License-Identifier: Apache-2.0
"""In a container the launcher is PID 1: it reaps orphans, passes signals on, and ends with a shell's codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.signals.programs import LAUNCHER, PLAIN, Bench, child_of, outcome

UNSHARE = ['unshare', '-pf', '--mount-proc']


@pytest.fixture(scope='module', autouse=True)
def _namespaces() -> None:
    done = subprocess.run([*UNSHARE, 'true'], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f'no namespaces here: {done.stderr.strip()}')


def only_child(pid: int) -> int:
    (child,) = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    return int(child)


@pytest.mark.parametrize('code', [0, 3])
def test_its_exit_code_is_the_programs(bench: Bench, code: int) -> None:
    for prefix in (PLAIN, LAUNCHER):
        assert outcome(bench.start([*UNSHARE, *prefix, 'sh', '-c', f'exit {code}'])) == (code, '')


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_program_killed_by_a_signal_is_told_as_a_shell_tells_it(bench: Bench, number: int) -> None:
    assert outcome(bench.start([*UNSHARE, *LAUNCHER, 'sh', '-c', f'kill -{number:d} $$'])) == (128 + number, '')


def test_a_signal_from_outside_reaches_the_program_once(bench: Bench) -> None:
    runs: list[tuple[int, str]] = []
    for prefix in (PLAIN, LAUNCHER):
        process = bench.start([*UNSHARE, *bench.counter(prefix)])
        assert (child_of(process) == 1) == (prefix is PLAIN)
        os.kill(only_child(process.pid), signal.SIGTERM)
        runs.append(outcome(process))
    assert runs == [(41, 'saw 15, time 1\n')] * 2


def test_orphans_are_reaped(bench: Bench) -> None:
    program = (
        'import os, subprocess, time\n'
        'for _ in range(5): subprocess.run(["sh", "-c", "sleep 0.1 & exit 0"])\n'
        'time.sleep(0.5)\n'
        'stats = [open(f"/proc/{pid}/stat").read() for pid in os.listdir("/proc") if pid.isdigit()]\n'
        'print(sum(stat.rpartition(")")[2].split()[0] == "Z" for stat in stats))\n'
    )
    assert outcome(bench.start([*UNSHARE, *LAUNCHER, sys.executable, '-c', program])) == (0, '0\n')
