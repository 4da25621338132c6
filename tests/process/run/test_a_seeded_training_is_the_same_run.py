# SPDX-License-Identifier: Apache-2.0
"""The example, 20 seeded steps: what it prints and where its random streams stand at the end, with and without us."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.run import REPOSITORY, Done, Place, Run

pytestmark = pytest.mark.slow

EXAMPLE = REPOSITORY / 'examples' / 'run_grpo.py'
SMALL = ('--steps', '20', '--seed', '7', '--prompts-per-step', '4', '--group-size', '4', '--validate-every', '10')

# Runs the example's own main, then says where every random stream stands.
DRIVER = f"""\
import hashlib, pickle, random, sys
import numpy, torch
sys.path.insert(0, {str(EXAMPLE.parent)!r})
random.seed(7); numpy.random.seed(7)
from run_grpo import main
main(sys.argv[1:])
digest = lambda state: hashlib.sha256(pickle.dumps(state)).hexdigest()
print('random', digest(random.getstate()), random.random())
print('numpy', digest(numpy.random.get_state()), numpy.random.random())
print('torch', digest(torch.get_rng_state().numpy().tobytes()), torch.rand(1).item())
"""


def without_seconds(text: str) -> str:
    """The example prints durations, longest first, on stderr."""
    words = sorted(re.sub(r'\d+\.\d', 'N', text).replace(',', '').split())
    return ' '.join(words)


class Trainings:
    """The example without us, and with us as the README says."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(folder).write({'driver.py': DRIVER})
        self.plain = self.place.plain('python', 'driver.py', *SMALL)
        self.traced = self.place.lens(
            *('--no-summary', '--rules', str(EXAMPLE.parent / 'lens.yaml'), '--span-groups', 'all'),
            *('python', 'driver.py', *SMALL),
        )
        self.run: Run = self.place.run


@pytest.fixture(scope='module')
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    return Trainings(tmp_path_factory.mktemp('trainings'))


def lines(done: Done) -> list[str]:
    return done.stdout.splitlines()


def test_every_line_it_prints_is_the_same(trainings: Trainings):
    assert trainings.traced.stdout == trainings.plain.stdout
    assert trainings.traced.code == trainings.plain.code == 0
    assert sum(line.startswith(('train ', 'validation ')) for line in lines(trainings.plain)) == 22


def test_the_random_streams_end_at_the_same_place(trainings: Trainings):
    states = lines(trainings.plain)[-3:]

    assert [line.split()[0] for line in states] == ['random', 'numpy', 'torch']
    assert lines(trainings.traced)[-3:] == states


def test_its_stderr_is_the_same_but_for_our_own_lines(trainings: Trainings):
    assert without_seconds(trainings.traced.theirs) == without_seconds(trainings.plain.stderr)
    first, *more = trainings.traced.ours.splitlines()
    assert first.startswith('lens-instrument: run ')
    assert more == ['    settings: span_groups=all (--span-groups)']


def test_it_was_really_traced(trainings: Trainings):
    assert len(trainings.run.named('rl.grpo.step')) == 20
    assert len(trainings.run.named('rl.grpo.job')) == 1
