# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import fcntl
import os
import struct
import termios
from typing import Any

import pytest

from lens_auto.collect.member import Member
from lens_auto.collect.pace import PLANNED, Pace
from lens_auto.collect.tail import Tail
from lens_auto.collect.tally import Tally
from lens_auto.launch.progress import Progress

SECOND = 1_000_000_000
ROOT = b'\xff' * 8


def member(**told: Any) -> Member:
    made = Member(('node', 1, 1), Tail('.', ('node', 1, 1), 0), False)
    made.told = told
    return made


class Plant:
    """Steps that are made up: 10 s of rollouts, 5 s of training, 0.1 s of the rest."""

    def __init__(self) -> None:
        self.tally = Tally(ROOT)
        self.number = 0

    def _span(self, parent: bytes, name: str, start: float, seconds: float, process: str, **items: Any) -> bytes:
        self.number += 1
        ident = self.number.to_bytes(8, 'big')
        at, long = int(start * SECOND), int(seconds * SECOND)
        self.tally.ended(ident, parent, name, items, None, at, long, process, False)
        return ident

    def step(self, start: float, process: str = 'driver') -> None:
        self.number += 1
        step = self.number.to_bytes(8, 'big')
        at = int(start * SECOND)
        self.tally.opened(step, ROOT, 'rl.grpo.step', {'lens.group': 'step'}, None, at)
        self._span(step, 'rl.grpo.collect_rollouts', start, 10, process)
        self._span(step, 'rl.grpo.policy_update', start + 10, 5, process)
        self._span(step, 'rl.reward', start + 15, 0.1, process)
        self.tally.ended(
            step, ROOT, 'rl.grpo.step', {'lens.group': 'step'}, None, at, int(15.1 * SECOND), process, False
        )


def test_step_pace_phases_and_what_is_left() -> None:
    plant, pace = Plant(), Pace(20)
    for step in range(4):
        plant.step(20 * step)
        line = pace.line(plant.tally.root, [], 20 * (step + 1) * SECOND)
    assert line == 'step 4/20  20.0 s a step  collect_rollouts 66 %  policy_update 33 %  5 m 20 s left'


def test_ranks_that_do_the_same_steps_are_not_added_up() -> None:
    plant = Plant()
    for rank in range(4):
        plant.step(0, f'rank {rank}')
    assert Pace().line(plant.tally.root, [], 16 * SECOND).startswith('step 1  15.1 s a step')


def test_the_last_steps_count_not_the_first_ones() -> None:
    plant, pace = Plant(), Pace()
    now = 0
    for step in range(30):
        plant.step(now)
        now += 100 if step < 15 else 16
        line = pace.line(plant.tally.root, [], now * SECOND)
    assert line.startswith('step 30  16.0 s a step')


def test_a_step_that_takes_too_long_is_told_of() -> None:
    plant, pace, driver = Plant(), Pace(), member()
    for step in range(3):
        plant.step(20 * step)
        pace.line(plant.tally.root, [driver], 20 * (step + 1) * SECOND)
    driver.opened[b'x'] = (b'', b'', 60 * SECOND, 'rl.grpo.step', '', None, None)
    assert 'this one' not in pace.line(plant.tally.root, [driver], 80 * SECOND)
    assert 'this one for 2 m 00 s' in pace.line(plant.tally.root, [driver], 180 * SECOND)


@pytest.mark.parametrize(
    ('told', 'shown'), [(7, 'step 1/7'), ('7', 'step 1/7'), ('many', 'step 1  '), (None, 'step 1  ')]
)
def test_the_program_may_say_how_many_there_are(told: Any, shown: str) -> None:
    plant = Plant()
    plant.step(0)
    assert (Pace().line(plant.tally.root, [member(**{PLANNED: told})], 16 * SECOND) + '  ').startswith(shown)


def test_no_name_moves_a_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    monkeypatch.setattr(os, 'tcgetpgrp', lambda fd: os.getpgrp())
    shown = Progress(slave)
    shown.text = 'step 1  evil\x1b[2Jname\n 3 %'
    shown._draw()
    data = os.read(master, 4096)
    os.close(slave)
    os.close(master)
    assert b'evil?[2Jname? 3 %' in data


def test_before_the_first_step_it_says_what_goes_on() -> None:
    driver = member()
    assert Pace().line(Tally(ROOT).root, [driver], 0) == ''
    driver.opened[b'a'] = (b'', b'', 0, 'rl.grpo.job', '', None, None)
    driver.opened[b'b'] = (b'', b'', 10 * SECOND, 'rl.setup.vllm', '', None, None)
    assert Pace().line(Tally(ROOT).root, [driver], 100 * SECOND) == 'no step yet  rl.setup.vllm for 1 m 30 s'
