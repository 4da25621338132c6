# SPDX-License-Identifier: Apache-2.0
"""The import of a module of 5,000 lines whose source rules change: from our bytecode cache, against an ordinary .pyc.

Processor time, inside a process where stage 2 is there already, right after a collection of garbage: else one of the
younger generations falls into the import of one of the two and not of the other, by what ran before. Also the first
import of all, which parses and rewrites, against one without a .pyc; and the plain import against itself.

usage: python bench/import_rewritten.py [python3.12 ...]
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
from typing import Any

ROUNDS = 40
COLD_ROUNDS = 6
FUNCTIONS = 265
# 19 lines, as dense as a trainer's.
FUNCTION = '''
class Phase{n}:
    """Phase {n} of a step."""

    def __init__(self, config, workers, limit={n}):
        self.config = config
        self.workers = [worker for worker in workers if worker.rank < limit]

    def run(self, batch, *, step, total_steps=1000, **kwargs):
        losses = {{'policy': 0.0, 'value': 0.0, 'kl': 0.0}}
        for index, micro in enumerate(batch.split(self.config.micro_batch_size)):
            with self.timer.time(f'phase_{n}/{{index}}'):
                output = self.workers[index % len(self.workers)].forward(micro, step=step)
                losses['policy'] += output.loss * micro.weight / total_steps
            if output.kl > self.config.max_kl and not kwargs.get('force', False):
                break
        return {{f'phase_{n}/{{key}}': value for key, value in losses.items()}}


'''
CHILD = """
import gc, sys, time
import waker
gc.collect()
start = time.process_time_ns()
import big
print(time.process_time_ns() - start)
"""


def microseconds(python: str, environ: dict[str, str]) -> float:
    done = subprocess.run([python, '-c', CHILD], env=environ, check=True, capture_output=True, text=True)
    return int(done.stdout) / 1e3


def rules() -> list[dict[str, Any]]:
    import traced

    loop = {'kind': 'loop', 'match': 'for index, micro in $_:', 'expect': (1, 1)}
    found = [traced.rule(n, f'big:Phase{n}.run', **loop) for n in (1, 100, 240)]
    # Whose own changed source has loaded what changes source.
    return [*found, traced.rule(4, 'waker:nothing', apply='rewrite')]


def main(names: list[str]) -> None:
    import interpreters
    import ratio
    import traced

    for name, python in interpreters.present().items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            modules = folder / 'modules'
            modules.mkdir()
            source = '"""Generated."""\n' + ''.join(FUNCTION.format(n=n) for n in range(FUNCTIONS))
            assert len(source.splitlines()) >= 5000, len(source.splitlines())
            (modules / 'big.py').write_text(source)
            (modules / 'waker.py').write_text('def nothing(): pass\n')
            ours = traced.environment(folder, rules())
            stage_one = ours['PYTHONPATH'].split(os.pathsep)[0]
            ours |= {'PYTHONPATH': f'{stage_one}{os.pathsep}{modules}', 'LENS_CACHE': str(folder / 'cache')}
            plain = {k: v for k, v in ours.items() if not k.startswith('LENS_')} | {'PYTHONPATH': str(modules)}
            kinds = {'plain': plain, 'ours': ours, 'itself': plain}
            caches = {'plain': modules / '__pycache__', 'ours': folder / 'cache', 'itself': modules / '__pycache__'}
            time.sleep(2.1)  # a file that has just been written is not yet taken for the same file
            for what, rounds, cold in (('cached', ROUNDS, False), ('first of all', COLD_ROUNDS, True)):
                times: dict[str, list[float]] = {kind: [] for kind in kinds}
                for turn in range(-2, rounds):
                    for kind in random.sample(sorted(kinds), len(kinds)):
                        if cold:
                            shutil.rmtree(caches[kind], ignore_errors=True)
                        took = microseconds(python, kinds[kind])
                        if turn >= 0:
                            times[kind].append(took)
                print(ratio.line(f'import of 5,000 lines, {what}, {name}', times['ours'], times['plain']))
                print(ratio.line('    the plain one against itself', times['itself'], times['plain']))
            assert len(list((folder / 'cache' / 'rewritten').glob('*.code'))) == 2, 'nothing was rewritten'


if __name__ == '__main__':
    main(sys.argv[1:])
