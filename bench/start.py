# SPDX-License-Identifier: Apache-2.0
"""`lens-instrument python -c pass` against `python -c pass`, with all rule files: a warm cache, and a cold one.

A cold cache is the first start of a user: rule files parsed, plan compiled and stored. The launcher is run as the
console script of the environment this Python belongs to, so install the project into it first.

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


def seconds(command: list[str], environ: dict[str, str], folder: Path) -> float:
    start = time.perf_counter_ns()
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True)
    took = (time.perf_counter_ns() - start) / 1e6
    if done.returncode:
        raise SystemExit(f'{command} ended with {done.returncode}: {done.stderr}')
    return took


def main() -> None:
    launcher = Path(sys.executable).with_name('lens-instrument')
    if not launcher.exists():
        raise SystemExit(f'{launcher} is not there: install the project into this environment first')
    kept = {k: v for k, v in os.environ.items() if not k.startswith(('LENS_', 'OTEL_', 'NEMO_', 'PYTHON'))}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environ = {**kept, 'XDG_CACHE_HOME': str(folder / 'cache')}
        plain = [sys.executable, '-c', 'pass']
        ours = [str(launcher), *plain]
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
