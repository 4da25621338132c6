# SPDX-License-Identifier: Apache-2.0
"""`--progress` on a real terminal, read by an emulator of one: its own line, and the program's as without it."""

from __future__ import annotations

import fcntl
import struct
import termios
import time
from collections.abc import Sequence
from typing import Any

import pyte
import pytest

from tests.helpers.run import LENS, Place
from tests.helpers.terminal import Terminal

COLUMNS, LINES = 90, 12
PROGRAM = """
import sys, time
import trainer

for step in range(int(sys.argv[1])):
    trainer.step(step)
    for part in range(0, 101, 10):
        print(f'\\rstep {step} at {part} %', end='', flush=True)
        time.sleep(0.02)
    print(f'\\rstep {step} is done     ')
    print('\\x1b[1mbold\\x1b[0m', 'and', 'plain')
print('ready', end='', flush=True)
time.sleep(float(sys.argv[2]))
print('\\nat the end')
"""
TRAINER = """
import time
def step(number):
    generate()
    train()
def generate(): time.sleep(0.15)
def train(): time.sleep(0.05)
"""
RULES = """
framework: small
rules:
- {kind: function, target: "trainer:step", group: step, name: rl.small.step, announce: true}
- {kind: function, target: "trainer:generate", group: generation, name: rl.small.generate}
- {kind: function, target: "trainer:train", group: policy_update, name: rl.small.train}
"""


class Screen:
    """What a person sees of a terminal.

    Attributes:
        last: Every text its last line has shown that the program cannot have printed.
    """

    def __init__(self, terminal: Terminal) -> None:
        size = struct.pack('HHHH', LINES, COLUMNS, 0, 0)
        fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, size)
        self._screen = pyte.HistoryScreen(COLUMNS, LINES, history=10_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self._terminal = terminal
        self._read = 0
        self.last: list[str] = []

    def follow(self, seconds: float) -> None:
        """Draw what comes."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self._terminal._read():
                break
            self.draw()

    def draw(self) -> None:
        data = self._terminal.output[self._read :]
        self._read += len(data)
        self._stream.feed(data)
        line = self._screen.display[-1].rstrip()
        if 'a step' in line or 'no step yet' in line:
            self.last.append(line)

    def text(self) -> list[str]:
        """All lines, those that were scrolled away first."""
        gone = [''.join(row[column].data for column in range(COLUMNS)) for row in self._screen.history.top]
        return [line.rstrip() for line in (*gone, *self._screen.display)]


def shown(place: Place, command: Sequence[str]) -> tuple[list[str], list[str], bytes]:
    """The whole of what stood on the screen, what the last line said, and the bytes."""
    with Terminal(command, {**place.env, 'TERM': 'xterm'}, place.cwd) as terminal:
        screen = Screen(terminal)
        deadline = time.monotonic() + 60
        while b'at the end' not in terminal.output and time.monotonic() < deadline:
            screen.follow(0.2)
        assert terminal.state() == 'exited 0'
        terminal.screen()
        screen.draw()
        return screen.text(), screen.last, terminal.output


@pytest.fixture
def place(tmp_path: Any) -> Place:
    return Place(tmp_path).write({'main.py': PROGRAM, 'trainer.py': TRAINER, 'rules.yaml': RULES})


def lens(*options: str) -> list[str]:
    return [LENS, '--rules', 'rules.yaml', '--span-groups', 'all', '--no-summary', *options, 'python', 'main.py']


def of_program(text: list[str]) -> list[str]:
    begin = next(place for place, line in enumerate(text) if line.startswith('step 0'))
    return [line for line in text[begin:] if line]


def test_the_program_prints_as_without_it(place: Place) -> None:
    plain, _, _ = shown(place, ['python', 'main.py', '12', '0.1'])
    with_it, last, _ = shown(place, [*lens('--progress=40'), '12', '0.1'])
    assert of_program(with_it) == of_program(plain)
    assert last


def test_it_says_step_pace_phases_and_what_is_left(place: Place) -> None:
    _, last, _ = shown(place, [*lens('--progress=40'), '10', '2.5'])
    words = last[-1].split('  ')
    assert words[0] == 'step 10/40'
    assert words[1].endswith(' a step')
    assert words[2].startswith('generate 7') and words[3].startswith('train 2')
    assert words[-1].endswith(' left')


def test_the_line_is_given_back(place: Place) -> None:
    text, last, output = shown(place, [*lens('--progress'), '6', '1.5'])
    assert last
    assert not [line for line in text if 'a step' in line]
    assert output.rindex(b'\x1b[r') > output.rindex(b'a step')


def test_where_there_is_no_terminal_it_says_so_and_writes_nothing(place: Place) -> None:
    done = place.lens('--rules', 'rules.yaml', '--no-summary', '--progress', 'python', 'main.py', '3', '0')
    assert done.code == 0
    assert '--progress shows nothing: stderr is no terminal' in done.stderr
    assert '\x1b[' not in done.stderr
    plain = place.plain('python', 'main.py', '3', '0')
    assert done.stdout == plain.stdout


def test_a_command_that_replaces_us_has_nobody_to_show_it(place: Place) -> None:
    done = place.lens('--rules', 'rules.yaml', '--exec', '--progress', 'python', 'main.py', '1', '0')
    assert done.code == 0
    assert '--progress shows nothing: with --exec' in done.stderr
