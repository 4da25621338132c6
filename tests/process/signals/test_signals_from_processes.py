# SPDX-License-Identifier: Apache-2.0
"""Signals that somebody sends: to the launcher, to the program, to the group, or to everybody in turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.process.signals.programs import (
    LAUNCHER,
    PLAIN,
    Bench,
    child_of,
    outcome,
    processes_of_group,
)

Process = subprocess.Popen[str]

CAUGHT = [signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGTERM, signal.SIGRTMIN + 3]


def command_line(pid: int) -> bytes:
    return Path(f'/proc/{pid}/cmdline').read_bytes()


def both(bench: Bench, act: Callable[[Process, int], object], *arguments: str) -> tuple[int, str]:
    """The counter's exit code and what it saw, the same in both ways."""
    runs: list[tuple[int, str]] = []
    for prefix in (PLAIN, LAUNCHER):
        process = bench.start(bench.counter(prefix, *arguments))
        act(process, child_of(process))
        runs.append(outcome(process))
    plain, launched = runs
    assert launched == plain
    return launched


@pytest.mark.parametrize('number', CAUGHT)
def test_one_sent_to_the_launcher_is_passed_on_once(bench: Bench, number: int) -> None:
    assert both(bench, lambda process, _: process.send_signal(number)) == (41, f'saw {number:d}, time 1\n')


@pytest.mark.parametrize('number', CAUGHT)
def test_one_sent_to_the_group_is_not_passed_on_again(bench: Bench, number: int) -> None:
    assert both(bench, lambda process, _: os.killpg(process.pid, number)) == (41, f'saw {number:d}, time 1\n')


def seen_by(process: Process, number: int, send: Callable[[int], object]) -> str:
    """Send a signal, and what the program says of it; then time enough for it not to pass for the same one again."""
    send(number)
    assert process.stdout is not None
    said = process.stdout.readline()
    time.sleep(0.15)
    return said


def test_each_of_several_to_the_group_is_seen_once(bench: Bench) -> None:
    seen: list[str] = []

    def act(process: Process, _: int) -> None:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1):
            seen.append(seen_by(process, number, lambda number: os.killpg(process.pid, number)))

    assert both(bench, act) == (43, '')
    assert seen == ['saw 15, time 1\n', 'saw 15, time 2\n', 'saw 10, time 1\n'] * 2


def test_one_to_the_group_and_later_one_to_the_launcher_are_two(bench: Bench) -> None:
    def act(process: Process, _: int) -> None:
        seen_by(process, signal.SIGTERM, lambda number: os.killpg(process.pid, number))
        process.send_signal(signal.SIGTERM)

    assert both(bench, act) == (42, 'saw 15, time 2\n')


def test_one_sent_to_every_process_in_turn_is_seen_once(bench: Bench) -> None:
    # As a batch system and systemd do it.
    def act(process: Process, _: int) -> None:
        for pid in processes_of_group(process.pid):
            os.kill(pid, signal.SIGTERM)

    assert both(bench, act) == (41, 'saw 15, time 1\n')


def test_one_sent_to_the_launcher_and_what_looks_like_it_reaches_the_program(bench: Bench) -> None:
    # `pkill -f lens-instrument` finds the launcher by its command line; what watches for it has another one.
    process = bench.start(bench.counter(LAUNCHER))
    child = child_of(process)
    own = command_line(process.pid)
    alike = [pid for pid in processes_of_group(process.pid) if pid != child and command_line(pid) == own]
    assert alike == [process.pid]
    for pid in alike:
        os.kill(pid, signal.SIGTERM)
    assert outcome(process) == (41, 'saw 15, time 1\n')


def test_one_sent_to_the_program_is_its_own_affair(bench: Bench) -> None:
    assert both(bench, lambda _, child: os.kill(child, signal.SIGTERM)) == (41, 'saw 15, time 1\n')


def test_a_program_in_a_session_of_its_own_is_told_what_the_launcher_is(bench: Bench) -> None:
    # Not compared with a plain run: there the program leads its group and may not leave it.
    process = bench.start(bench.counter(LAUNCHER, 'leave'))
    child = child_of(process)
    assert os.getsid(child) == child
    os.killpg(process.pid, signal.SIGTERM)
    assert outcome(process) == (41, 'saw 15, time 1\n')


def test_setsid_before_the_launcher_changes_nothing(bench: Bench) -> None:
    runs: list[tuple[int, str]] = []
    for prefix in (PLAIN, LAUNCHER):
        process = bench.start(['setsid', '--wait', *bench.counter(prefix)])
        os.killpg(os.getpgid(child_of(process)), signal.SIGTERM)
        runs.append(outcome(process))
    assert runs == [(41, 'saw 15, time 1\n')] * 2


@pytest.mark.parametrize('options', [[], ['--foreground'], ['--signal=INT'], ['--preserve-status']])
def test_timeout_tells_the_program_once(bench: Bench, options: Sequence[str]) -> None:
    runs = [outcome(bench.start(['timeout', *options, '0.5', *bench.counter(prefix)])) for prefix in (PLAIN, LAUNCHER)]
    plain, launched = [(code, output.partition('\n')[2]) for code, output in runs]
    assert launched == plain
    assert launched[0] == (41 if '--preserve-status' in options else 124)


def test_an_alarm_set_before_the_launcher_reaches_the_program(bench: Bench) -> None:
    script = 'import os, signal, sys; signal.setitimer(signal.ITIMER_REAL, 0.5); os.execv(sys.argv[1], sys.argv[1:])'
    runs: list[tuple[int, str]] = []
    for prefix in (PLAIN, LAUNCHER):
        process = bench.start([sys.executable, '-c', script, *bench.counter(prefix)])
        child_of(process)
        runs.append(outcome(process))
    assert runs == [(41, f'saw {signal.SIGALRM:d}, time 1\n')] * 2


def test_the_program_outlives_a_killed_launcher_and_nothing_else_does(bench: Bench) -> None:
    process = bench.start(bench.counter(LAUNCHER))
    child = child_of(process)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while processes_of_group(process.pid) != [child] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_of_group(process.pid) == [child]
    os.kill(child, signal.SIGTERM)
    assert process.communicate(timeout=20)[0] == 'saw 15, time 1\n'
