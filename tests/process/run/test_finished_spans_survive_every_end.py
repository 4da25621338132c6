# SPDX-License-Identifier: Apache-2.0
"""A run that is killed in the middle, by every hand that kills runs: 20 tries each, at a random moment.

The program says each step on stdout once it is done; that is what the run folder is held to.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.run import LENS, PATIENCE, Place, Run
from tests.helpers.small_trainer import FILES
from tests.helpers.terminal import CTRL_C, Terminal

TRIES = 20
TOGETHER = 4

# Steps of 2 ms; `_exit` ends it in the middle of that step's update.
PROGRAM = """\
import os, sys, time
import trainer

steps, end = int(sys.argv[1]), int(sys.argv[2])

def each(step):
    time.sleep(0.002)
    if step == end:
        os._exit(1)

print('pid', os.getpid(), flush=True)
trainer.fit(trainer.Config(), steps, each)
"""
ENDLESS = ('python', 'program.py', '100000', '0')


@dataclass
class Try:
    """What one try left."""

    code: int
    said: list[str]
    screen: str
    run: Run

    @property
    def printed(self) -> list[int]:
        """The steps the program said it has finished."""
        return [int(words[1]) for words in map(str.split, self.said) if words[:1] == ['step'] and len(words) == 4]


Killer = Callable[[subprocess.Popen[bytes], int, random.Random], None]


def tries(folder: Path, command: tuple[str, ...], kill: Killer | None = None, replay: bool = False) -> list[Try]:
    """Run a command many times; `kill` gets the launcher, the program's process id and a random stream."""

    def one(number: int) -> Try:
        place = Place(folder / str(number)).write({**FILES, 'program.py': PROGRAM})
        env = {'XDG_CACHE_HOME': str(folder / 'cache')}
        with open(place.folder / 'out', 'w+b') as out:
            launcher = place.start(LENS, *command, env=env, out=out)
            try:
                if kill is not None:
                    wait_until(lambda: b'step 3 ' in (place.folder / 'out').read_bytes())
                    kill(launcher, pid_said(place), random.Random(number))
                code = launcher.wait(PATIENCE)
                if replay:
                    wait_until(lambda: not alive(pid_said(place)))
                    done = place.lens('--replay', str(place.run.path), env=env)
                    assert done.code == 0, done.stderr
            finally:
                end(launcher)
        screen = (place.folder / 'out').read_text()
        # A line it was killed in does not count.
        return Try(code, screen.rpartition('\n')[0].split('\n'), screen, place.run)

    with ThreadPoolExecutor(TOGETHER) as pool:
        return list(pool.map(one, range(TRIES)))


def pid_said(place: Place) -> int:
    return int((place.folder / 'out').read_text().partition('\npid ')[2].split()[0])


def alive(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] not in 'ZX'
    except OSError:
        return False


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def end(launcher: subprocess.Popen[bytes]) -> None:
    """Leave nothing of a failed try."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait()


def soon(stream: random.Random) -> None:
    time.sleep(stream.random() * 0.05)


def assert_whole(one: Try, estimated: bool | None = None) -> None:
    """Every finished step once, with its children and points; what was open, cut short."""
    run = one.run
    spans = run.spans
    steps = [span for span in spans if span.name == 'step']
    # A step that an interrupt went through has ended, and is there, but its phases may not all have begun.
    finished = [span.attributes['number'] for span in steps if not span.truncated and not span.error]

    assert len({span.id for span in spans}) == len(spans)
    assert finished == list(range(1, len(finished) + 1)), 'a step is missing, or there twice'
    assert set(one.printed) <= set(finished), 'a step that was said to be finished is missing'
    assert len(steps) - len(finished) <= 1
    for name in ('rollout', 'score', 'update'):
        assert len([span for span in spans if span.name == name and not span.truncated]) >= len(finished)
    rewards = [point.value for point in run.points if point.name == 'reward']
    assert rewards == [step / 10 for step in range(1, len(rewards) + 1)]
    # The call that printed the last one may not have come back: the program's own backends have points first.
    assert len(rewards) >= len(one.printed) - 1
    assert [span.name for span in spans].count('lens.run') == 1
    assert run.facts['complete'] is True
    for span in spans:
        if span.truncated and span.name != 'lens.run':
            assert span.error and span.end >= span.start
            assert estimated is None or span.attributes.get('lens.end_estimated', False) is estimated
    assert not (run.path / 'journal').exists()
    assert not list(run.path.parents[2].rglob('*.jnl'))


def cut_short(one: Try) -> set[str]:
    return {span.name for span in one.run.spans if span.truncated and span.name != 'lens.run'}


def test_sigkill_of_the_program(tmp_path: Path):
    def kill(launcher: subprocess.Popen[bytes], pid: int, stream: random.Random) -> None:
        soon(stream)
        os.kill(pid, signal.SIGKILL)

    for one in tries(tmp_path, ENDLESS, kill):
        assert one.code == -signal.SIGKILL
        assert_whole(one, estimated=False)
        assert 'job' in cut_short(one)
        assert one.run.only('job').end <= one.run.only('lens.run').end
        assert 'cut short by the end of their process' in one.screen


def test_os_exit_in_the_middle(tmp_path: Path):
    for one in tries(tmp_path, ('python', 'program.py', '100', '40')):
        assert one.code == 1
        assert_whole(one, estimated=False)
        assert one.printed == list(range(1, 40))
        assert cut_short(one) == {'job', 'step', 'update'}
        assert [span.attributes['number'] for span in one.run.named('step') if span.truncated] == [40]


def test_sigterm_of_the_launcher(tmp_path: Path):
    def kill(launcher: subprocess.Popen[bytes], pid: int, stream: random.Random) -> None:
        soon(stream)
        launcher.terminate()

    for one in tries(tmp_path, ENDLESS, kill):
        assert one.code == -signal.SIGTERM
        assert_whole(one, estimated=False)
        assert 'job' in cut_short(one)


def test_ctrl_c_at_a_terminal(tmp_path: Path):
    def one(number: int) -> Try:
        place = Place(tmp_path / str(number)).write({**FILES, 'program.py': PROGRAM})
        env = {**place.env, 'XDG_CACHE_HOME': str(tmp_path / 'cache'), 'TERM': 'dumb'}
        with Terminal([LENS, '--no-summary', *ENDLESS], env, place.cwd) as terminal:
            terminal.wait_for('step 3 ')
            soon(random.Random(number))
            terminal.type(CTRL_C)
            assert terminal.state() == 'killed 2'
            screen = terminal.screen()
        assert screen.count('KeyboardInterrupt') == 1
        return Try(-signal.SIGINT, screen.split('\n'), screen, place.run)

    with ThreadPoolExecutor(TOGETHER) as pool:
        for done in pool.map(one, range(TRIES)):
            assert_whole(done)
            assert cut_short(done) == set(), 'an interrupted program unwinds its spans itself'
            told = [values for span in done.run.spans for name, values in span.events if name == 'exception']
            # Once, in whatever span it struck first.
            assert [dict(values)['exception.type'] for values in told] == ['KeyboardInterrupt']
            assert done.run.only('job').error


def test_sigkill_of_the_launcher_leaves_the_program_alone_and_replay_finishes_the_run(tmp_path: Path):
    def kill(launcher: subprocess.Popen[bytes], pid: int, stream: random.Random) -> None:
        soon(stream)
        launcher.kill()

    for one in tries(tmp_path, ('python', 'program.py', '60', '0'), kill, replay=True):
        assert one.code == -signal.SIGKILL
        assert one.printed == list(range(1, 61))
        assert_whole(one)
        assert cut_short(one) == set()
        assert len(one.run.named('step')) == 60
        assert one.run.only('lens.run').attributes['lens.end_estimated'] is True


def test_sigkill_of_the_whole_group_and_replay(tmp_path: Path):
    def kill(launcher: subprocess.Popen[bytes], pid: int, stream: random.Random) -> None:
        soon(stream)
        os.killpg(launcher.pid, signal.SIGKILL)

    for one in tries(tmp_path, ENDLESS, kill, replay=True):
        assert_whole(one, estimated=True)
        assert 'job' in cut_short(one)


def test_a_second_replay_changes_nothing(tmp_path: Path):
    place = Place(tmp_path).write({**FILES, 'program.py': PROGRAM})
    with open(tmp_path / 'out', 'w+b') as out:
        launcher = place.start(LENS, *ENDLESS, out=out)
        wait_until(lambda: b'step 3 ' in (tmp_path / 'out').read_bytes())
        end(launcher)
    path = str(place.run.path)
    assert place.lens('--replay', path).code == 0
    before = (place.run.spans, place.run.points)

    assert place.lens('--replay', path).code == 0

    assert (place.run.spans, place.run.points) == before
