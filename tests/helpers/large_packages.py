# SPDX-License-Identifier: Apache-2.0
"""Twenty large packages, each at one version, kept in the tests' cache: source to rewrite, never imported."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tests.helpers.ray_versions import cache

PINNED = {
    'accelerate': '1.15.0',
    'dask': '2026.8.0',
    'datasets': '5.2.0',
    'distributed': '2026.8.0',
    'django': '6.1.3',
    'jax': '0.12.0.1',
    'lightning': '2.6.6',
    'networkx': '3.7',
    'nltk': '3.10.4',
    'openai': '3.57.0',
    'peft': '0.21.2',
    'prefect': '3.9.1',
    'pylint': '4.1.4',
    'sphinx': '9.2.0',
    'sqlalchemy': '2.1.9',
    'sympy': '1.14.0',
    'trl': '1.16.0',
    'twisted': '26.10.0',
    'verl': '0.9.1',
    'xarray': '2026.9.0',
}
TESTS = frozenset({'test', 'tests', 'testing', 'lib2to3'})


def folder() -> Path:
    """Where they are."""
    place = cache() / 'large-packages'
    stamp = place / '.made'
    wanted = ' '.join(f'{name}=={version}' for name, version in PINNED.items())
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(f'{place}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(place, ignore_errors=True)
            pip = [sys.executable, '-m', 'pip', '--disable-pip-version-check', '--no-input', '-qq', 'install']
            # Nothing of them runs, so any Python may fetch what is for a newer one.
            how = ['--no-deps', '--no-compile', '--only-binary', ':all:', '--ignore-requires-python']
            subprocess.run([*pip, *how, '--target', str(place), *wanted.split()], check=True)
            stamp.write_text(wanted)
    return place


def modules_in(folder: Path) -> list[Path]:
    """The modules of a package or a library, its tests left out.

    Args:
        folder: The package.
    """
    return sorted(path for path in folder.rglob('*.py') if not TESTS & {*path.relative_to(folder).parts})
