# SPDX-License-Identifier: Apache-2.0
"""`accelerate launch train.py`: the loop of the script is recorded in each process, and all goes as without us."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.run import REPOSITORY, Place, Run
from tests.helpers.venvs import python_with

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(1800)]

RULES = """
framework: mine
rules:
- kind: loop
  target: train.py:main
  match: "for $i in range($n):"
  group: step
  root: true
  name: rl.step
  attributes: {rl.iteration: match.i}
- kind: function
  target: train.py:reduced
  group: optimizer
  name: rl.reduced
"""
SCRIPT = """
import os
import sys

import torch
from accelerate import Accelerator


def reduced(accelerator, value):
    return float(accelerator.reduce(torch.tensor(value), 'sum'))


def main(accelerator):
    for step in range(2):
        total = reduced(accelerator, float(step + accelerator.process_index))
        said = (accelerator.process_index, accelerator.num_processes, step, total, __name__, __spec__, sys.argv)
        os.write(1, repr(said).encode() + b'\\n')  # whole: ranks share one pipe


main(Accelerator(cpu=True))
"""


@pytest.fixture(scope='module')
def accelerate() -> str:
    # The venv of the tests on TRL, which brings it.
    constraint = ('-c', str(REPOSITORY / 'constraints' / 'torch-cpu.txt'))
    return str(Path(python_with('trl-1.16.0', 'trl==1.16.0', *constraint)).with_name('accelerate'))


@pytest.mark.parametrize(
    ('how', 'ranks'),
    [
        (('--cpu', '--num_processes', '1'), 1),
        # What it makes of these is torch.distributed.run.
        (('--multi_gpu', '--num_processes', '2', '--num_machines', '1', '--main_process_port', '0'), 2),
    ],
)
def test_each_process_of_accelerate(tmp_path: Path, accelerate: str, how: tuple[str, ...], ranks: int) -> None:
    place = Place(tmp_path).write({'lens.yaml': RULES, 'train.py': SCRIPT})
    command = (
        accelerate,
        'launch',
        *how,
        '--mixed_precision',
        'no',
        '--dynamo_backend',
        'no',
        'train.py',
        '--epochs=1',
    )
    env = {'OMP_NUM_THREADS': '1', 'CUDA_VISIBLE_DEVICES': ''}
    plain = place.plain(*command, env=env)
    assert plain.code == 0, plain.stderr
    traced = place.lens('--run-dir', 'run', '--span-groups', 'all', *command, env=env)
    assert traced.code == 0, traced.stderr
    assert sorted(traced.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    assert len(plain.stdout.splitlines()) == 2 * ranks

    run = Run(place.cwd / 'run')
    steps = [span for span in run.spans if span.name == 'rl.step']
    assert sorted(span.attributes['rl.iteration'] for span in steps) == sorted([0, 1] * ranks)
    above = {span.id: span for span in run.spans}
    inside = [above[span.parent].name for span in run.spans if span.name == 'rl.reduced']
    assert inside == ['rl.step'] * 2 * ranks
    assert len({span.resource['process.pid'] for span in steps}) == ranks
    [script] = {row['command'] for row in run.facts['processes'] if row['spans']}
    assert script == 'train.py'
