# SPDX-License-Identifier: Apache-2.0
"""A stopped program stops its launcher, so that whoever waits sees a stopped job; and both go on together."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.process.signals.programs import LAUNCHER, Bench, child_of, outcome

STOPS = [signal.SIGSTOP, signal.SIGTSTP]


def state(pid: int) -> str:
    return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize('number', STOPS)
def test_who_waits_for_the_launcher_sees_the_program_stop(bench: Bench, number: int) -> None:
    process = bench.start(bench.counter(LAUNCHER), own_session=False)
    child = child_of(process)
    os.kill(child, number)
    pid, status = os.waitpid(process.pid, os.WUNTRACED)
    assert (pid, os.WIFSTOPPED(status), os.WSTOPSIG(status)) == (process.pid, True, number)

    os.kill(process.pid, signal.SIGCONT)
    eventually(lambda: state(child) == 'S')
    process.send_signal(signal.SIGTERM)
    assert outcome(process) == (41, 'saw 15, time 1\n')


@pytest.mark.parametrize('number', STOPS)
def test_a_launcher_continues_when_only_its_program_is_continued(bench: Bench, number: int) -> None:
    process = bench.start(bench.counter(LAUNCHER), own_session=False)
    child = child_of(process)
    os.kill(child, number)
    eventually(lambda: state(process.pid) == 'T')
    os.kill(child, signal.SIGCONT)
    eventually(lambda: state(process.pid) == 'S')
    os.kill(child, signal.SIGUSR1)
    assert outcome(process) == (41, 'saw 10, time 1\n')


def test_a_launcher_continues_when_its_stopped_program_is_killed(bench: Bench) -> None:
    process = bench.start(bench.counter(LAUNCHER), own_session=False)
    child = child_of(process)
    os.kill(child, signal.SIGSTOP)
    eventually(lambda: state(process.pid) == 'T')
    os.kill(child, signal.SIGKILL)
    assert outcome(process) == (-signal.SIGKILL, '')


def test_stopping_the_launcher_stops_the_program(bench: Bench) -> None:
    process = bench.start(bench.counter(LAUNCHER), own_session=False)
    child = child_of(process)
    process.send_signal(signal.SIGTSTP)
    eventually(lambda: state(child) == 'T' and state(process.pid) == 'T')
    process.send_signal(signal.SIGCONT)
    eventually(lambda: state(child) == 'S')
    process.send_signal(signal.SIGINT)
    assert outcome(process) == (41, 'saw 2, time 1\n')
