# SPDX-License-Identifier: Apache-2.0
"""The wedge of asynchronous GRPO on the example: one rollout never returns, the buffer stops short, all else waits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.ray_program import PATIENCE, RayPlace
from tests.helpers.run import LENS, REPOSITORY

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(600)]

SCRIPT = str(REPOSITORY / 'examples' / 'run_grpo.py')
GENERATOR = 'GenerationWorkerImpl'


def _report(*arguments: str) -> str:
    command = [sys.executable, '-m', 'lens_auto.report.cli', *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY).stdout


def _json(*arguments: str) -> list[dict[str, Any]]:
    return json.loads(_report(*arguments, '--json') or '[]')


def _until(found: Callable[[], Any], patience: float = PATIENCE) -> Any:
    deadline = time.monotonic() + patience
    while not (answer := found()):
        assert time.monotonic() < deadline, 'it did not come true in time'
        time.sleep(0.3)
    return answer


def test_top_names_it_while_the_run_hangs_and_why_after_the_kill(new_place: Callable[..., RayPlace]) -> None:
    place = new_place()
    if subprocess.run([place.python, '-c', 'import torch'], capture_output=True).returncode:
        pytest.skip('no torch in the venv with this ray')
    folder = str(place.folder / 'run')
    command = [LENS, '--no-summary', '--run-dir', folder, place.python, SCRIPT, '--ray', '--async', '--steps', '100000']
    with open(place.folder / 'out', 'wb') as out:
        launcher = subprocess.Popen(
            command, cwd=place.cwd, env=place.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        _until(lambda: os.path.exists(os.path.join(folder, 'run.json')))
        _until(lambda: len([one for one in _json('steps', folder) if not one['cut_short']]) >= 4)

        def stopped() -> str:
            """A generator that was stopped in the middle of a rollout."""
            for one in _json('top', folder):
                who, _, pid = one['process'].partition(' ')
                if who != GENERATOR:
                    continue
                os.kill(int(pid), signal.SIGSTOP)
                # It may have ended that rollout in between: what it has open now is what it hangs in.
                if any(each['process'] == one['process'] for each in _json('top', folder)):
                    return one['process']
                os.kill(int(pid), signal.SIGCONT)
            return ''

        victim: str = _until(stopped)
        first = _until(lambda: (_json('top', folder)[0]['suspect'] and _json('top', folder)[0]) or None, 120)
        assert (first['process'], first['names'][0]) == (victim, 'rl.grpo.generation_worker')
        waiting = [one for one in _json('top', folder) if one['waits']]
        assert {one['process'].partition(' ')[0] for one in waiting} >= {'driver', 'TrajectoryCollector'}
    finally:
        launcher.kill()
        place.end()
        launcher.wait()
    first = _json('why', folder)[0]
    assert (first['process'], first['suspect'], first['alive']) == (victim, True, False)
    assert f'{victim} was in ' in _report('why', folder)
