# SPDX-License-Identifier: Apache-2.0
"""docs/containers.md: two wheels and no index make the launcher; venvs of the run need nothing, not even PyYAML."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.other_venv import other_venv
from tests.helpers.program import SUPPORTED, interpreter
from tests.helpers.ray_program import RayPlace
from tests.packaging.conftest import checked, environment
from tests.packaging.test_wheel_and_editable_trace_alike import RULES, spans

TRAINER = """\
import subprocess

def train_step(number):
    return number + 1

def hand_over(python):
    subprocess.run([python, 'worker.py'], check=True)
"""
WORKER = """\
import importlib.util, json, sys
import tiny_trainer
tiny_trainer.train_step(1)
print(json.dumps([sys.prefix, importlib.util.find_spec('yaml') is None, 'yaml' in sys.modules]))
"""
PROGRAM = 'import sys, tiny_trainer\ntiny_trainer.train_step(0)\nfor p in sys.argv[1:]: tiny_trainer.hand_over(p)\n'
ON_RAY = """\
import ray, sys, tiny_trainer

@ray.remote
class Worker:
    def step(self, number):
        return tiny_trainer.train_step(number), sys.prefix

ray.init(address='local', num_cpus=1, include_dashboard=False)
print(ray.get(Worker.remote().step.remote(1)))
"""


@pytest.fixture(scope='module')
def launcher(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`lens-instrument` in a venv that was made without an index, from the wheel and PyYAML's beside it."""
    wheels, prefix = tmp_path_factory.mktemp('wheels'), tmp_path_factory.mktemp('offline') / 'lens'
    shutil.copy(wheel, wheels)
    pip = [sys.executable, '-m', 'pip']
    checked(
        *pip, 'download', '-q', '--no-deps', '--only-binary', ':all:', '--dest', str(wheels), 'pyyaml>=6', cwd=wheels
    )
    checked(sys.executable, '-m', 'venv', '--without-pip', str(prefix), cwd=wheels)
    # Isolated: no setting of this machine's pip names an index or a folder that has more.
    install = ['--isolated', '--python', str(prefix / 'bin' / 'python'), 'install', '-q', '--no-index']
    checked(*pip, *install, '--find-links', str(wheels), 'lens-auto', cwd=wheels)
    return prefix / 'bin' / 'lens-instrument'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with a trainer and its rules."""
    for name, text in {
        'tiny.yaml': RULES,
        'tiny_trainer.py': TRAINER,
        'worker.py': WORKER,
        'program.py': PROGRAM,
        'on_ray.py': ON_RAY,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def bare_venv(folder: Path, version: str) -> str:
    """The interpreter of a venv with nothing in it, of another Python than the launcher's where that is there."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f'python{version} is not on this machine')
    subprocess.run([python, '-m', 'venv', '--without-pip', str(folder)], check=True)
    return str(folder / 'bin' / 'python')


def test_nothing_but_it_and_pyyaml_is_there(launcher: Path) -> None:
    [packages] = launcher.parents[1].glob('lib/python*/site-packages')
    found = {path.name.partition('-')[0].lower() for path in packages.glob('*.dist-info')}
    assert found == {'lens_auto', 'pyyaml'}


@pytest.mark.parametrize('version', SUPPORTED)
def test_a_program_and_its_workers_in_bare_venvs_are_recorded(launcher: Path, folder: Path, version: str) -> None:
    python = bare_venv(folder / 'bare', version)
    options = ['--rules', 'tiny.yaml', '--run-dir', 'run', '--exporter', 'file']
    done = subprocess.run(
        [str(launcher), *options, python, 'program.py', python],
        cwd=folder,
        env={**environment(launcher.parents[1]), 'XDG_CACHE_HOME': str(folder / 'cache')},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [str(folder / 'bare'), True, False]
    assert Counter(spans(folder / 'run')) == {('tiny', 'lens.run'): 1, ('tiny', 'rl.tiny.step'): 2}
    facts = json.loads((folder / 'run' / 'run.json').read_text())
    assert [row['outcome'] for row in facts['processes']] == ['armed', 'armed'] and facts['faults'] == {}


@pytest.fixture
def on_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayPlace]:
    """A place whose Python has Ray and nothing of ours."""
    pytest.importorskip('ray')
    folder = tmp_path_factory.mktemp('ray')
    place = RayPlace(folder, other_venv(folder / 'venv', sys.executable))
    yield place
    place.close()


@pytest.mark.slow
def test_so_are_ray_workers_of_a_venv_that_has_ray_alone(launcher: Path, folder: Path, on_ray: RayPlace) -> None:
    shutil.copytree(folder, on_ray.cwd, dirs_exist_ok=True)
    without = on_ray.execute(on_ray.python, '-c', 'import lens_auto')
    assert "No module named 'lens_auto'" in without.stderr

    run = on_ray.folder / 'run'
    options = ['--rules', 'tiny.yaml', '--run-dir', str(run), '--no-summary']
    done = on_ray.execute(str(launcher), *options, on_ray.python, 'on_ray.py')
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str((2, str(on_ray.folder / 'venv')))
    assert ('tiny', 'rl.tiny.step') in spans(run)
    facts = json.loads((run / 'run.json').read_text())
    workers = facts['roll_call']['workers']
    assert workers['instrumented'] == workers['seen'] > 0
