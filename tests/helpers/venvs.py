# SPDX-License-Identifier: Apache-2.0
"""Venvs with a framework and nothing of ours, each made once and kept in the tests' cache."""

from __future__ import annotations

import fcntl
import subprocess
import sys

from tests.helpers.ray_versions import cache


def python_with(name: str, *requirements: str, dependencies: bool = True) -> str:
    """The interpreter of a venv with some packages.

    Args:
        name: The venv's name; another set of requirements needs another one.
        requirements: What is installed, as pip takes it.
        dependencies: Whether with what they need: source that is only read needs nothing.
    """
    minor = '{}.{}'.format(*sys.version_info[:2])
    venv = cache() / f'{name}-py{minor}'
    python = venv / 'bin' / 'python'
    venv.parent.mkdir(parents=True, exist_ok=True)
    # Two test runs at once make one venv; the stamp is written last, so that half a venv is made anew.
    with open(f'{venv}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (venv / '.made').exists():
            subprocess.run([sys.executable, '-m', 'venv', '--clear', str(venv)], check=True)
            pip = [str(python), '-m', 'pip', '--disable-pip-version-check', '--no-input', '-q', 'install']
            subprocess.run([*pip, *([] if dependencies else ['--no-deps']), *requirements], check=True)
            (venv / '.made').touch()
    return str(python)
