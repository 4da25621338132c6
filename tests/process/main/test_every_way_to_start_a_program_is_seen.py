# SPDX-License-Identifier: Apache-2.0
"""Modules, folders, archives, children of multiprocessing and of torchrun: a loop of each program is recorded."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from tests.helpers.program import Program, every_python, function, place, python

LOOP = """
import sys


class Worker:
    def go(self, count):
        for turn in range(count):
            helper(turn)


def helper(turn):
    return turn


def main():
    Worker().go(2)
    print(__name__, __file__, __package__, __cached__, sys.argv, sys.path[:2])
    print(type(__loader__), list(vars(__loader__)), __loader__ is getattr(__spec__, 'loader', None))
    print(__spec__ and (__spec__.name, type(__spec__.loader), __spec__.origin))
    print(sorted(name for name in globals() if name.startswith('__')))
    frame, files = sys._getframe(), []
    while frame:
        files.append((frame.f_code.co_filename, frame.f_code.co_name))
        frame = frame.f_back
    print(files)


if __name__ == '__main__':
    main()
    import traceback
    try:
        helper()
    except TypeError:
        traceback.print_exc()
"""
EXPECTED = 'loop turn=0\n  helper\nloop turn=1\n  helper'


def rules(target: str) -> list[dict[str, object]]:
    loop = place('loop', 'loop', f'{target}:Worker.go', 'for $i in $$$:', attributes={'turn': ('match', 'i')})
    return [loop, function('helper', f'{target}:helper')]


def same(program: Program, executable: str, target: str, *command: str, pattern: str = 'for $i in $_:') -> None:
    plain = program.plain(*command, python=executable)
    wanted = rules(target)
    wanted[0]['match'] = pattern
    for _ in ('changed', 'cached'):
        traced = program.traced(wanted, *command, python=executable)
        assert traced.visible() == plain.visible()
        assert traced.journal.tree('turn').startswith(EXPECTED)
        assert traced.journal.reports('fault') == traced.journal.reports('missing') == []


@every_python
@pytest.mark.parametrize(
    ('target', 'command'),
    [
        ('pkg.mod', ('-m', 'pkg.mod')),
        ('pkg/mod.py', ('-m', 'pkg.mod')),
        ('mod.py', ('-m', 'pkg.mod', 'more')),
        ('pkg.__main__', ('-m', 'pkg')),
        ('pkg/__main__.py', ('-m', 'pkg')),
        ('pkg/__main__.py', ('pkg',)),
        ('__main__.py', ('pkg/',)),
        ('app.pyz/__main__.py', ('app.pyz',)),
        ('pkg/mod.py', ('pkg/mod.py',)),
    ],
)
def test_a_module_a_folder_and_an_archive(tmp_path: Path, version: str, target: str, command: tuple[str, ...]) -> None:
    program = Program(tmp_path, {'pkg/__init__.py': '', 'pkg/mod.py': LOOP, 'pkg/__main__.py': LOOP})
    with zipfile.ZipFile(program.app / 'app.pyz', 'w') as archive:
        archive.writestr('__main__.py', LOOP)
    same(program, python(version), target, *command)


CHILDREN = """
import multiprocessing
import sys


def loop(count):
    done = 0
    for turn in range(count):
        done += turn
    names = sorted(name for name in globals() if name.startswith('__'))
    return __name__, done, sys.modules['__main__'].__spec__, loop.__module__, names


if __name__ == '__main__':
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.apply(loop, (2,)))
        print(pool.apply(len, ([1, 2],)))
    print(loop(1))
"""


@every_python
@pytest.mark.parametrize('method', ['fork', 'spawn', 'forkserver'])
@pytest.mark.parametrize('command', [('train.py',), ('-m', 'train')])
def test_a_child_of_multiprocessing(tmp_path: Path, version: str, method: str, command: tuple[str, ...]) -> None:
    program = Program(tmp_path, {'train.py': CHILDREN})
    loop = place('loop', 'loop', 'train.py:loop', 'for turn in $_:', attributes={'turn': ('match', 'turn')})
    loop['attributes'] = {'turn': ('frame', 'turn')}
    plain = program.plain(*command, method, python=python(version))
    for _ in ('changed', 'cached'):
        traced = program.traced([loop], *command, method, python=python(version))
        assert traced.visible() == plain.visible()
        assert sorted(span.attributes['turn'] for span in traced.journal.spans) == [0, 0, 1]
        assert traced.journal.reports('fault') == []


SCRIPT = """
import os, sys
def main():
    for step in range(2):
        # Whole: ranks share one pipe.
        os.write(1, ('rank %s step %d' % (os.environ.get('RANK'), step)).encode() + b'\\n')
main()
"""


@pytest.mark.parametrize('launcher', ['torch.distributed.run', 'torchrun'])
def test_the_children_of_torchrun(tmp_path: Path, launcher: str) -> None:
    pytest.importorskip('torch.distributed.run')
    program = Program(tmp_path, {'train.py': SCRIPT})
    loop = place('loop', 'loop', 'train.py:main', 'for $i in range(2):', attributes={'step': ('match', 'i')})
    launch = ('-m', launcher) if '.' in launcher else (str(Path(sys.executable).with_name(launcher)),)
    done = program.traced([loop], *launch, '--standalone', '--nproc-per-node', '2', 'train.py', OMP_NUM_THREADS='1')
    assert sorted(done.stdout.splitlines()) == [f'rank {rank} step {step}' for rank in (0, 1) for step in (0, 1)]
    assert sorted(span.attributes['step'] for span in done.journal.spans) == [0, 0, 1, 1]


@every_python
def test_a_command_and_standard_input_run_as_ever(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'train.py': SCRIPT})
    loop = place('loop', 'loop', 'train.py:main', 'for $i in range(2):')
    command = 'exec(open("train.py").read())'
    plain = program.plain('-c', command, python=python(version))
    traced = program.traced([loop], '-c', command, python=python(version))
    assert traced.visible() == plain.visible() and traced.journal.spans == []
