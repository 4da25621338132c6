# SPDX-License-Identifier: Apache-2.0
"""A process of the run that no rule concerns: imports 50 modules of the standard library under stage 1, against plain.

The finder is armed and asked for every import; nothing it knows is imported. Also with bytecode writing off, as in
images and read-only installs (stage 1's own bytecode is there: the launcher sees to it), and with the agent disabled.

usage: python bench/idle_process.py [python3.12 ...]
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 40
MODULES = (
    *('argparse', 'ast', 'asyncio', 'base64', 'bdb', 'calendar', 'cmd', 'codeop', 'concurrent.futures', 'configparser'),
    *('contextlib', 'copy', 'csv', 'ctypes', 'dataclasses', 'datetime', 'decimal', 'difflib', 'dis', 'doctest'),
    *('email', 'enum', 'fractions', 'getpass', 'gettext', 'glob', 'gzip', 'hashlib', 'heapq', 'html'),
    *(
        'http.client',
        'inspect',
        'ipaddress',
        'json',
        'logging',
        'lzma',
        'mimetypes',
        'multiprocessing',
        'pathlib',
        'pickle',
    ),
    *('platform', 'pprint', 'queue', 'random', 'sched', 'shelve', 'shutil', 'smtplib', 'sqlite3', 'statistics'),
)


def seconds(python: str, program: str, environ: dict[str, str]) -> float:
    start = time.perf_counter_ns()
    subprocess.run([python, '-c', program], env=environ, check=True)
    return (time.perf_counter_ns() - start) / 1e6


def main(names: list[str]) -> None:
    import interpreters
    import ratio
    import traced

    assert len(MODULES) == 50
    program = f'import {", ".join(MODULES)}'
    for name, python in interpreters.present().items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            traced_environ = traced.environment(Path(folder), [traced.rule(n, f'absent_{n}:run') for n in range(1, 60)])
            traced_environ['PYTHONPATH'] = traced_environ['PYTHONPATH'].split(os.pathsep)[0]
            plain = {k: v for k, v in traced_environ.items() if not k.startswith('LENS_') and k != 'PYTHONPATH'}
            off = {**traced_environ, 'LENS_ENABLED': '0'}
            for what, extra in (('', {}), (', no bytecode written', {'PYTHONDONTWRITEBYTECODE': '1'})):
                kinds = {'plain': {**plain, **extra}, 'ours': {**traced_environ, **extra}, 'off': {**off, **extra}}
                times: dict[str, list[float]] = {kind: [] for kind in kinds}
                for turn in range(-2, ROUNDS):
                    for kind in random.sample(sorted(kinds), len(kinds)):
                        took = seconds(python, program, kinds[kind])
                        if turn >= 0:
                            times[kind].append(took)
                armed = (Path(folder) / 'spool' / 'processes.tsv').read_text().count('\tarmed\t')
                assert armed >= ROUNDS, 'stage 1 has not run'
                print(ratio.line(f'idle process{what}, {name}', times['ours'], times['plain'], 'ms'))
                print(ratio.line(f'agent disabled{what}, {name}', times['off'], times['plain'], 'ms'))


if __name__ == '__main__':
    main(sys.argv[1:])
