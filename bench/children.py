# SPDX-License-Identifier: Apache-2.0
"""Short-lived children of a traced program, against the same program without us.

One program starts 25 children one after the other inside a span: Pythons, and forks, that record nothing or one call;
and, where torch is installed, five epochs of a DataLoader with two workers that are made anew for each. It measures
itself, from the first child to the last, by the clock and in processor time of its own and its children's; the plain
program is run twice a round, and what the second says against the first is what chance can do here.

usage: python bench/children.py [python3.12 ...]
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 7
WORK = 'def outer(f): return f()\ndef step(): pass\n'
PROGRAM = """
import os, resource, subprocess, sys, time
import work
COUNT = 25
def now():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in used)
def run(*words):
    for _ in range(COUNT): subprocess.run([sys.executable, *words], check=True)
def idle(): run('-c', 'import json, argparse')
def recording(): run('-c', 'import json, argparse, work; work.step()')
def forks(work=work.step):
    for _ in range(COUNT):
        pid = os.fork()
        if not pid:
            work(); os._exit(0)
        os.waitpid(pid, 0)
def idle_forks(): forks(int)
def loader():
    import torch
    class Squares(torch.utils.data.Dataset):
        def __len__(self): return 64
        def __getitem__(self, n): return torch.full((16,), float(n * n))
    made = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2)
    sum(batch.sum().item() for batch in made)
    begun = now()
    for _ in range(5): sum(batch.sum().item() for batch in made)
    return begun
begun = now()
begun = work.outer(globals()[sys.argv[1]]) or begun
print(*(end - start for start, end in zip(begun, now())))
"""
CASES = {
    'idle': '25 children that record nothing',
    'recording': '25 children that record one call',
    'idle_forks': '25 forks that record nothing',
    'forks': '25 forks that record one call',
    'loader': '5 epochs with 2 data-loader workers',
}


def milliseconds(python: str, case: str, environ: dict[str, str]) -> list[float]:
    command = [python, '-c', PROGRAM, case]
    said = subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout
    return [float(word) * 1e3 for word in said.split()]


def measure(python: str, case: str, folder: Path) -> dict[str, list[list[float]]]:
    import traced

    (folder / 'work.py').write_text(WORK)
    rules = [traced.rule(1, 'work:outer'), traced.rule(2, 'work:step')]
    environ = traced.environment(folder, rules)
    environ['PYTHONPATH'] += f'{os.pathsep}{folder}'
    plain = {k: v for k, v in environ.items() if not k.startswith('LENS_')} | {'PYTHONPATH': str(folder)}
    kinds = {'plain': plain, 'again': plain, 'ours': environ}
    times: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
    for turn in range(-1, ROUNDS):
        for kind in random.sample(sorted(kinds), len(kinds)):
            took = milliseconds(python, case, kinds[kind])
            if turn >= 0:
                times[kind].append(took)
    assert list((folder / 'spool').glob('*.jnl')), 'nothing was recorded'
    return times


def main(names: list[str]) -> None:
    import interpreters
    import ratio

    # torch is in this venv alone.
    mine = 'python{}.{}'.format(*sys.version_info[:2])
    for name, python in interpreters.present().items():
        if names and name not in names:
            continue
        for case, what in CASES.items():
            if case == 'loader':
                python = sys.executable
                if name != mine or subprocess.run([python, '-c', 'import torch'], capture_output=True).returncode:
                    print(f'{what}, {name}: skipped, torch is not installed there')
                    continue
            with tempfile.TemporaryDirectory() as folder:
                times = measure(python, case, Path(folder))
            ours, again, plain = (list(zip(*times[kind], strict=True)) for kind in ('ours', 'again', 'plain'))
            for at, by in enumerate((', by the clock', ', processor time')):
                print(ratio.line(f'{what}, {name}{by}', [*ours[at]], [*plain[at]], 'ms'), flush=True)
                print(ratio.line('    plain against plain', [*again[at]], [*plain[at]], 'ms'), flush=True)


if __name__ == '__main__':
    main(sys.argv[1:])
