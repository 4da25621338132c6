# SPDX-License-Identifier: Apache-2.0
"""Interpreters of venvs that have some packages of the registry and nothing of ours, each made once and kept."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys

from tests.helpers.ray_versions import cache


def python_with(*requirements: str) -> str:
    """The interpreter of a venv with these packages, installed at its first use.

    Args:
        requirements: As pip takes them.
    """
    minor = '{}.{}'.format(*sys.version_info[:2])
    venv = cache() / f'{re.sub(r"[^a-z0-9.]+", "-", "-".join(requirements))}-py{minor}'
    python = venv / 'bin' / 'python'
    venv.parent.mkdir(parents=True, exist_ok=True)
    with open(f'{venv}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (venv / '.made').exists():
            subprocess.run([sys.executable, '-m', 'venv', '--clear', str(venv)], check=True)
            pip = [str(python), '-m', 'pip', '--disable-pip-version-check', '--no-input', '-q', 'install']
            subprocess.run([*pip, *requirements], check=True)
            (venv / '.made').touch()  # last, so that half a venv is made anew
    return str(python)
