# SPDX-License-Identifier: Apache-2.0
"""`lens-instrument python -c pass` against `python -c pass`, with all rule files: a warm cache, and a cold one.

A cold cache is the first start of a user: rule files parsed, plan compiled and stored. The launcher is the console
script of a venv made for it, with the project installed as its users install it: the finder of an editable install
would be a part of every start of Python in that venv, ours and the plain one.

usage: python bench/start.py
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ratio

ROUNDS = 30
REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = ('lens_auto', 'rules', 'sitecustomize', 'pyproject.toml', 'setup.py', 'README.md', 'LICENSE')


def installed(folder: Path) -> Path:
    """The Python of a new venv with the project in it."""
    source = folder / 'source'
    source.mkdir()
    for name in PROJECT:  # a copy: building leaves files behind
        path = REPOSITORY / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns('__pycache__'))
        else:
            shutil.copy(path, source / name)
    python = folder / 'venv' / 'bin' / 'python'
    for command in (
        [sys.executable, '-m', 'venv', str(folder / 'venv')],
        [str(python), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', str(source)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f'{command} ended with {done.returncode}: {done.stderr}')
    return python


def seconds(command: list[str], environ: dict[str, str], folder: Path) -> float:
    start = time.perf_counter_ns()
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True)
    took = (time.perf_counter_ns() - start) / 1e6
    if done.returncode:
        raise SystemExit(f'{command} ended with {done.returncode}: {done.stderr}')
    return took


def main() -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(('LENS_', 'OTEL_', 'NEMO_', 'PYTHON'))}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environ = {**kept, 'XDG_CACHE_HOME': str(folder / 'cache')}
        python = installed(folder)
        plain = [str(python), '-c', 'pass']
        ours = [str(python.with_name('lens-instrument')), *plain]
        for what in ('warm', 'cold'):
            times: dict[str, list[float]] = {'ours': [], 'plain': []}
            for turn in range(-2, ROUNDS if what == 'warm' else ROUNDS // 2):
                for kind in random.sample(['ours', 'plain'], 2):
                    if what == 'cold' and kind == 'ours':
                        shutil.rmtree(folder / 'cache', ignore_errors=True)
                    took = seconds(ours if kind == 'ours' else plain, environ, folder)
                    if turn >= 0:
                        times[kind].append(took)
            print(ratio.line(f'start under the launcher, {what} cache', times['ours'], times['plain'], 'ms'))


if __name__ == '__main__':
    main()
