# SPDX-License-Identifier: Apache-2.0
"""`--ray` and `--ray --async`, plainly: no agent anywhere."""

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from tiny_grpo.actors import GenerationWorkerImpl
from tiny_grpo.config import GrpoConfig, parse_args
from tiny_grpo.parts import build_model
from tiny_grpo.task import SortTask

Run = Callable[..., list[str]]
EXAMPLE = Path(__file__).resolve().parents[3] / 'examples' / 'run_grpo.py'

needs_ray = pytest.mark.skipif(find_spec('ray') is None, reason='ray is not installed')


def figures(lines: list[str], name: str) -> list[float]:
    return [float(found[1]) for line in lines if (found := re.search(rf'^train .*\b{name} +(-?[\d.]+)', line))]


@needs_ray
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_in_lockstep_one_seed_prints_the_same_lines_twice(run_grpo: Run):
    first = run_grpo('--ray', '--steps', '3', '--seed', '3')

    assert [len(figures(first, name)) for name in ('step', 'loss', 'reward')] == [3, 3, 3]
    assert first[-1].startswith('done: 3 steps, reward ')
    assert run_grpo('--ray', '--steps', '3', '--seed', '3') == first


@needs_ray
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_generating_ahead_trains_every_step_within_the_lag(run_grpo: Run):
    lines = run_grpo('--ray', '--async', '--steps', '3', '--max-lag', '1')

    assert figures(lines, 'step') == [1, 2, 3]
    assert len(figures(lines, 'loss')) == len(figures(lines, 'reward')) == 3
    assert set(figures(lines, 'lag')) <= {0, 1}
    assert lines[-1].startswith('done: 3 steps, reward ')


def test_a_worker_writes_what_its_seed_and_index_say(monkeypatch: pytest.MonkeyPatch):
    config = GrpoConfig(prompts_per_step=4)
    problems = SortTask(config.digits, 8).validation
    weights = build_model(config).state_dict()

    def tokens(index: int) -> list[list[int]]:
        return GenerationWorkerImpl(config, index).generate(weights, 0, problems, greedy=False).tokens.tolist()

    assert tokens(0) == tokens(0)
    assert tokens(0) != tokens(1)


def test_without_ray_the_flag_says_what_to_install():
    program = f'import sys; sys.modules["ray"] = None; sys.path.insert(0, {str(EXAMPLE.parent)!r})\n'
    program += 'import run_grpo; run_grpo.main(sys.argv[1:])'
    done = subprocess.run([sys.executable, '-c', program, '--ray'], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr == 'run_grpo.py: --ray needs Ray, which is not installed: pip install "ray>=2.40"\n'


def test_without_the_flag_ray_is_not_imported():
    program = f'import sys; sys.path.insert(0, {str(EXAMPLE.parent)!r}); import run_grpo; print("ray" in sys.modules)'
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=60)

    assert done.stdout == 'False\n', done.stderr


def test_generating_ahead_takes_ray(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        parse_args(['--async'])

    assert '--async needs --ray' in capsys.readouterr().err
