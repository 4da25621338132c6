# SPDX-License-Identifier: Apache-2.0
"""The terminal's own signals reach the whole foreground group: the program sees each once."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

import pytest

from tests.helpers.terminal import CTRL_BACKSLASH, CTRL_C, CTRL_Z, Terminal
from tests.process.signals.programs import LAUNCHER, PLAIN, Bench, without_our_lines

SLEEPER = [sys.executable, '-c', 'import time; print("ready", flush=True); time.sleep(15)']


def at_keyboard(bench: Bench, command: list[str], act: Callable[[Terminal], None], leader: bool = False) -> list[str]:
    """How the job ended, and what the screen showed."""
    with Terminal(command, bench.env, bench.folder, leader) as terminal:
        terminal.wait_for('ready')
        time.sleep(0.15)
        act(terminal)
        end = f'{terminal.process.wait(20)}' if leader else terminal.state()
        return [end, without_our_lines(terminal.screen())]


def both(bench: Bench, command: list[str], act: Callable[[Terminal], None], leader: bool = False) -> list[str]:
    """The same in both ways; pids in the output are left out."""
    runs: list[list[str]] = []
    for prefix in (PLAIN, LAUNCHER):
        end, screen = at_keyboard(bench, [*prefix, *command], act, leader)
        runs.append([end, '\n'.join(line for line in screen.splitlines() if not line.startswith('ready '))])
    plain, launched = runs
    assert launched == plain
    return launched


def test_one_ctrl_c_interrupts_once(bench: Bench) -> None:
    end, screen = both(bench, SLEEPER, lambda terminal: terminal.type(CTRL_C))
    assert end == f'killed {signal.SIGINT}'
    assert screen.count('KeyboardInterrupt') == 1


def test_each_ctrl_c_is_seen_once(bench: Bench) -> None:
    def twice(terminal: Terminal) -> None:
        terminal.type(CTRL_C)
        terminal.wait_for('saw 2, time 1')
        time.sleep(0.15)
        terminal.type(CTRL_C)
        terminal.wait_for('saw 2, time 2')

    end, _ = both(bench, bench.counter([]), twice)
    assert end == 'exited 42'


def test_ctrl_backslash_ends_it_by_sigquit(bench: Bench) -> None:
    end, _ = both(bench, SLEEPER, lambda terminal: terminal.type(CTRL_BACKSLASH))
    assert end == f'killed {signal.SIGQUIT}'


def test_ctrl_z_stops_the_job_and_fg_continues_it(bench: Bench) -> None:
    def suspend(terminal: Terminal) -> None:
        for _ in range(2):
            terminal.type(CTRL_Z)
            assert terminal.state() == f'stopped {signal.SIGTSTP}'
            terminal.foreground()
            time.sleep(0.3)
        terminal.type(CTRL_C)

    end, _ = both(bench, bench.counter([]), suspend)
    assert end == 'exited 41'


def test_a_terminal_that_goes_away_hangs_up_on_the_session_leader(bench: Bench) -> None:
    seen: list[str] = []
    for prefix in (PLAIN, LAUNCHER):
        target = bench.folder / 'seen'
        program = (
            'import os, signal, sys, time\n'
            f'def note(number, frame): open({str(target)!r}, "a").write(f"{{number}} ")\n'
            'signal.signal(signal.SIGHUP, note)\n'
            'print("ready", flush=True)\n'
            'deadline = time.monotonic() + 15\n'
            f'while not os.path.exists({str(target)!r}) and time.monotonic() < deadline: time.sleep(0.02)\n'
            'time.sleep(0.3)\n'
        )
        with Terminal([*prefix, sys.executable, '-c', program], bench.env, bench.folder, leader=True) as terminal:
            terminal.wait_for('ready')
            time.sleep(0.15)
            terminal.hang_up()
            status = terminal.process.wait(20)
        seen.append(f'{target.read_text()} {status}')
        target.unlink()
    assert seen == [f'{signal.SIGHUP:d}  0'] * 2


@pytest.mark.parametrize('leader', [False, True])
def test_the_program_is_in_the_foreground_and_may_read(bench: Bench, leader: bool) -> None:
    program = 'import os; print("ready", os.tcgetpgrp(0) == os.getpgrp(), os.isatty(1), flush=True); print(input())'
    command = [sys.executable, '-c', program]
    end, screen = at_keyboard(bench, [*LAUNCHER, *command], lambda terminal: terminal.type(b'typed\n'), leader)
    assert end.removeprefix('exited ') == '0'
    assert 'ready True True' in screen
    assert screen.count('typed') == 2
