# SPDX-License-Identifier: Apache-2.0
"""One wheel and two fresh venvs, one with the wheel and one with an editable install, built once for this folder."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NOT_SOURCE = shutil.ignore_patterns(
    '.git', '.venv', 'build', 'dist', 'lens-runs', 'shared', '__pycache__', '.*_cache', '*.egg-info', '.hypothesis'
)


@dataclass(frozen=True)
class Installed:
    """A venv into which lens-auto has been installed."""

    kind: str
    prefix: Path
    files_before: dict[str, str]
    files_after: dict[str, str]
    start_before: dict[str, list[str]]
    start_after: dict[str, list[str]]

    def run(self, *command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the venv as a shell with the venv activated would."""
        return subprocess.run(
            [str(self.prefix / 'bin' / command[0]), *command[1:]],
            cwd=cwd,
            env={**environment(self.prefix), **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


def environment(prefix: Path) -> dict[str, str]:
    """This process's environment, without the venv that pytest runs in."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(('PYTHON', 'VIRTUAL_ENV'))}
    env['PATH'] = f'{prefix / "bin"}{os.pathsep}{env.get("PATH", "")}'
    return env


def checked(*command: str, cwd: Path) -> str:
    """Run a command of the build; its whole output is the failure's message."""
    done = subprocess.run(
        command, cwd=cwd, env=environment(Path(sys.prefix)), stdout=-1, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, f'{" ".join(command)}\n{done.stdout}'
    return done.stdout


def digests(prefix: Path) -> dict[str, str]:
    """Every file of a venv, by its path in it, with a digest of what is in it."""
    return {
        str(path.relative_to(prefix)): hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
        for path in prefix.rglob('*')
        if path.is_file() and path.parent.name != '__pycache__'
    }


def start_state(python: Path) -> dict[str, list[str]]:
    """What a Python that does nothing has imported, and where it would look for more."""
    state = '{"modules": sorted(sys.modules), "path": sys.path, "finders": [str(finder) for finder in sys.meta_path]}'
    program = f'import sys; print({state})'
    return ast.literal_eval(checked(str(python), '-c', program, cwd=Path('/')))


@pytest.fixture(scope='session')
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree, so that no build writes into the repository."""
    return shutil.copytree(REPOSITORY, tmp_path_factory.mktemp('source') / 'lens-auto', ignore=NOT_SOURCE)


@pytest.fixture(scope='session')
def distributions(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that was built from it, not from the tree."""
    folder = tmp_path_factory.mktemp('dist')
    checked(sys.executable, '-m', 'build', '--outdir', str(folder), str(source), cwd=folder)
    return folder


@pytest.fixture(scope='session')
def wheel(distributions: Path) -> Path:
    """The wheel a user would install."""
    (path,) = distributions.glob('*.whl')
    return path


@pytest.fixture(scope='session')
def wheel_from_tree(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `pip install .` builds, without an sdist in between."""
    folder = tmp_path_factory.mktemp('tree')
    checked(
        *(sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps', '--wheel-dir', str(folder), str(source)),
        cwd=folder,
    )
    (path,) = folder.glob('*.whl')
    return path


@pytest.fixture(scope='session', params=['wheel', 'editable'])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A fresh venv with lens-auto in it, by each of the two ways to install."""
    if request.param == 'wheel':
        what = [str(request.getfixturevalue('wheel'))]
    else:
        what = ['--editable', str(request.getfixturevalue('source'))]
    # A space in the path: it must survive shebangs, PYTHONPATH and the rest.
    prefix = tmp_path_factory.mktemp(f'{request.param} venv')
    checked(sys.executable, '-m', 'venv', '--without-pip', str(prefix), cwd=prefix)
    python = prefix / 'bin' / 'python'
    start_before, files_before = start_state(python), digests(prefix)
    checked(sys.executable, '-m', 'pip', '--python', str(python), 'install', '--quiet', *what, cwd=prefix)
    return Installed(request.param, prefix, files_before, digests(prefix), start_before, start_state(python))
