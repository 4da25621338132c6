# SPDX-License-Identifier: Apache-2.0
"""The single controller's launcher calls no training loop: start-up ends where it hands over to the actor."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.helpers.run import Place

PROGRAM = """
import sys, time
from nemo_rl.utils.config import load_config

def _run_with_controller_liveness_watch(controller, watchdog):
    time.sleep(0.3)
    return 'trained'

load_config('configs/all.yaml')
print(_run_with_controller_liveness_watch(None, None))
"""


def test_startup_ends_before_training(tmp_path: Path) -> None:
    place = Place(tmp_path)
    fixture = Path(__file__).parent / 'nemo_rl_like'
    shutil.copytree(fixture, place.cwd, dirs_exist_ok=True, ignore=shutil.ignore_patterns('__pycache__', 'logs'))
    place.write({'run_grpo_single_controller.py': PROGRAM})
    command = ('python', 'run_grpo_single_controller.py', '--config', 'configs/all.yaml')
    run = place.record('--span-groups', 'all', *command)
    startup = run.only('rl.startup')
    assert not startup.truncated
    assert run.only('lens.run').end - startup.end >= 300_000_000
