# SPDX-License-Identifier: Apache-2.0
"""The interpreters to measure, and for each a venv with the peers in it, made once and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

NAMES = ('python3.10', 'python3.11', 'python3.12', 'python3.13', 'python3.14')
PEERS = ('opentelemetry-sdk', 'wrapt')


def present() -> dict[str, str]:
    """Path of each interpreter on PATH that runs, by name."""
    found: dict[str, str] = {}
    for name in NAMES:
        for folder in os.environ.get('PATH', '').split(os.pathsep):
            path = shutil.which(name, path=folder)
            if path is None:
                continue
            # A version manager's shim runs only the versions made current; the others lie beside it.
            beside = sorted(Path(folder).parent.glob(f'versions/{name.removeprefix("python")}*/bin/{name}'))
            real = next(filter(None, map(_real, (path, *map(str, beside)))), None)
            if real:
                found[name] = real
                break
    return found


def _real(path: str) -> str | None:
    # A shim is a shell script: it would be most of what a start costs.
    program = 'import ctypes, sys; print(sys.executable)'
    try:
        run = subprocess.run([path, '-c', program], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() if run.returncode == 0 else None


def with_peers() -> tuple[dict[str, str], list[str]]:
    """Interpreters of venvs that hold the peers, by name; and what is skipped, with the reason."""
    pythons: dict[str, str] = {}
    skipped = [f'{name}: not on PATH' for name in NAMES if name not in (here := present())]
    for name, path in here.items():
        try:
            pythons[name] = _venv(name, path)
        except (OSError, subprocess.SubprocessError) as problem:
            reason = getattr(problem, 'stderr', None) or str(problem)
            skipped.append(f'{name}: no venv with {", ".join(PEERS)}: {str(reason).strip().splitlines()[-1:]}')
    return pythons, skipped


def _venv(name: str, path: str) -> str:
    base = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache')
    folder = base / 'lens-auto' / 'bench' / name
    python = folder / 'bin' / 'python'
    check = f'import {", ".join(p.replace("-", ".") for p in PEERS)}'
    if not python.exists() or subprocess.run([str(python), '-c', check], capture_output=True).returncode:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([path, '-m', 'venv', str(folder)], check=True, capture_output=True, text=True)
        install = [str(python), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', *PEERS]
        subprocess.run(install, check=True, capture_output=True, text=True)
    return str(python)
