# SPDX-License-Identifier: Apache-2.0
"""The Ray versions a test runs on: this venv's own, or those that LENS_TEST_RAY lists, each in a venv made once."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

OWN = 'own'


def wanted() -> list[str]:
    """The versions to test: `own`, or those of LENS_TEST_RAY (`2.40.0,2.48.0,newest`)."""
    listed = [part.strip() for part in os.environ.get('LENS_TEST_RAY', '').split(',')]
    return [part for part in listed if part] or [OWN]


def cache() -> Path:
    """Where the venvs are kept: LENS_TEST_CACHE, else a folder of the user's cache."""
    named = os.environ.get('LENS_TEST_CACHE')
    return Path(named) if named else Path.home() / '.cache' / 'lens-auto-tests'


def python_with_ray(version: str) -> str:
    """The interpreter of a venv with this Ray and nothing of ours.

    LENS_TEST_RAY_VENVS, a folder with `ray-<version>` venvs made by hand, is looked into first.

    Args:
        version: `own` for the venv the tests run in, `newest`, or a version number.
    """
    if version == OWN:
        return sys.executable
    by_hand = os.environ.get('LENS_TEST_RAY_VENVS')
    if by_hand and (found := Path(by_hand) / f'ray-{version}' / 'bin' / 'python').exists():
        return str(found)
    minor = '{}.{}'.format(*sys.version_info[:2])
    venv = cache() / f'ray-{version}-py{minor}'
    python = venv / 'bin' / 'python'
    venv.parent.mkdir(parents=True, exist_ok=True)
    # Two test runs at once make one venv; the stamp is written last, so that half a venv is made anew.
    with open(f'{venv}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (venv / '.made').exists():
            requirement = 'ray' if version == 'newest' else f'ray=={version}'
            # Ray before 2.50 imports pkg_resources in places, which newer setuptools no longer has.
            subprocess.run([sys.executable, '-m', 'venv', '--clear', str(venv)], check=True)
            pip = [str(python), '-m', 'pip', '--disable-pip-version-check', '--no-input', '-q', 'install']
            subprocess.run([*pip, requirement, 'setuptools<81'], check=True)
            (venv / '.made').touch()
    return str(python)
