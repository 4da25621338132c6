# SPDX-License-Identifier: Apache-2.0
"""Start-up in launchers that are built otherwise: one that hands over to an actor, one that is another's main()."""

from __future__ import annotations

from pathlib import Path

from tests.frameworks.conftest import copied
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
    place = copied(Place(tmp_path))
    place.write({'run_grpo_single_controller.py': PROGRAM})
    command = ('python', 'run_grpo_single_controller.py', '--config', 'configs/all.yaml')
    run = place.record('--span-groups', 'all', *command)
    startup = run.only('rl.startup')
    assert not startup.truncated
    assert run.only('lens.run').end - startup.end >= 300_000_000


IN_ANOTHER = """
from nemo_rl.algorithms.utils import get_tokenizer
from nemo_rl.data.datasets.response_datasets import load_response_dataset
from nemo_rl.utils.config import load_config

def main():
    config = load_config('configs/all.yaml')
    get_tokenizer(config['policy'])
    load_response_dataset(config['data'])
"""


def test_a_launcher_that_is_another_ones_main_has_its_setup(tmp_path: Path) -> None:
    place = copied(Place(tmp_path))
    place.write({'run_sft.py': IN_ANOTHER, 'run_vlm_sft.py': 'from run_sft import main\n\nmain()\n'})
    names = place.record('--span-groups', 'all', 'python', 'run_vlm_sft.py').names()
    assert names == {'rl.startup', 'rl.setup.tokenizer', 'rl.setup.data'}
