# SPDX-License-Identifier: Apache-2.0
"""`python train.py` with a loop of the script recorded, field by field against a plain run, on every interpreter.

Where it makes a difference a program is run twice: first its source is changed, then the code comes from the cache.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.helpers.program import Outcome, Program, every_python, function, place, python

ANSWERS = '''
"""The script's own words."""
from __future__ import annotations

import atexit
import inspect
import pickle
import sys
import traceback
import warnings


class Batch:
    """A batch."""

    def __init__(self, size: int) -> None:
        self.size = size

    def total(self) -> int:
        done = 0
        for each in range(self.size):
            done += each
        return done


def step(number):
    """One step."""
    return number * 2


def main():
    for rollout_id in range(3):
        step(rollout_id)
        yield rollout_id, sorted(locals())


def show(what, value):
    print(what, '=', value)


me = sys.modules['__main__']
for dunder in ('name', 'doc', 'file', 'spec', 'package', 'loader', 'cached', 'builtins', 'annotations'):
    show(dunder, repr(globals().get(f'__{dunder}__', 'not there')))
show('loader', (type(__loader__), vars(__loader__), __loader__.is_package('__main__')))
show('dir', dir())
show('vars', list(vars(me)))
show('argv', (sys.argv, sys.orig_argv[1:], sys.flags))
show('path', sys.path)
show('hooks', sys.path_hooks)
show('meta path', [type(finder).__name__ for finder in sys.meta_path if type(finder).__name__ != '_Finder'])
show('importers', sorted(n for n in sys.path_importer_cache if 'lib/python' not in n and 'lens_auto' not in n))
show('importer', sys.path_importer_cache.get(__file__, 'not there'))
show('runpy', [name for name in ('runpy', 'pkgutil', 'importlib.util') if name in sys.modules])
show('excepthook', (sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__))
show('steps', list(main()))
show('source', (inspect.getsource(step), inspect.getsource(Batch), inspect.getsourcefile(Batch)))
show('lines', sorted({line for *_, line in Batch.__init__.__code__.co_lines()}))
show('code', (step.__code__.co_filename, step.__code__.co_firstlineno, main.__code__.co_firstlineno, main.__qualname__))
show('pickle', pickle.dumps(Batch(2)))
show('unpickled', vars(pickle.loads(pickle.dumps(Batch(3)))))
show('signature', (inspect.signature(step), inspect.isgeneratorfunction(main), step.__module__))
show('stack', [(frame.filename, frame.lineno, frame.function, frame.code_context) for frame in inspect.stack()])
show('depth', len(inspect.getouterframes(sys._getframe())))
show('docs', (__doc__, main.__doc__, Batch.__doc__))
show('tree', inspect.getmodule(step) is me)
traceback.print_stack()
frame = sys._getframe()
while frame:
    show('frame', (frame.f_code.co_filename, frame.f_code.co_name))
    frame = frame.f_back
warnings.warn('far away', stacklevel=4)
warnings.warn('here')
atexit.register(lambda: show('at exit', sorted(globals())))
exec(sys.argv[1] if len(sys.argv) > 1 else '')
'''
RULES = [
    place('loop', 'loop', 'train.py:Batch.total', 'for each in range($$$):', attributes={'each': ('match', 'each')}),
    function('step', 'train.py:step'),
    function('main', 'train.py:main'),
]
ENDINGS = {
    'in peace': '',
    'with a code': 'sys.exit(3)',
    'with a message': 'sys.exit("it is over")',
    'with nothing': 'sys.exit(None)',
    'at once': 'import os; sys.stdout.flush(); os._exit(4)',
}
RAISED = {
    'an error': 'Batch("two").total()',
    'an error with a cause': 'try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError("x") from error',
    'StopIteration': 'raise StopIteration(1)',
    'AttributeError': 'raise AttributeError("x")',
    'KeyError': 'raise KeyError("settle")',
    'a group': 'raise ExceptionGroup("all", [ValueError(1)]) if sys.version_info >= (3, 11) else ValueError(1)',
    'an interrupt': 'import os; os.kill(os.getpid(), 2)',
}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, {'train.py': ANSWERS, 'sub/train.py': ANSWERS})


def differences(plain: Outcome, traced: Outcome) -> str:
    """The lines that only one of two runs has printed, and the two codes if they differ."""
    ends = [text for one in (plain, traced) for text in one.visible()[:2]]
    lines = [
        line
        for before, after in ((ends[0], ends[2]), (ends[1], ends[3]))
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), 'plain', 'traced', n=0)
    ]
    return '\n'.join(lines + ([] if plain.code == traced.code else [f'{plain.code} -> {traced.code}']))


def compare(program: Program, executable: str, *command: str, runs: int = 1) -> None:
    plain = program.plain(*command, python=executable)
    for _ in range(runs):
        traced = program.traced(RULES, *command, python=executable)
        assert differences(plain, traced) == ''
        assert traced.journal.reports('fault') == []
        assert {'step', 'main'} <= set(traced.journal.names())


@every_python
@pytest.mark.parametrize('ending', ENDINGS)
def test_it_ends_and_answers_the_same(program: Program, version: str, ending: str) -> None:
    # The second time the code comes from the cache.
    compare(program, python(version), 'train.py', ENDINGS[ending], runs=2 if ending == 'in peace' else 1)


@every_python
@pytest.mark.parametrize('raised', RAISED)
def test_what_it_raises_is_shown_the_same(program: Program, version: str, raised: str) -> None:
    # The one difference, and no more of it: docs/limits.md.
    compare(program, python(version), 'train.py', f'atexit._clear()\n{RAISED[raised]}')


@every_python
@pytest.mark.parametrize(
    'command',
    [
        ('./train.py',),
        ('sub/train.py',),
        ('sub/../train.py',),
        ('-u', '-O', 'train.py'),
        ('-OO', '-W', 'always', 'train.py'),
        ('-X', 'dev', 'train.py'),
        ('-B', '-s', '-E', 'train.py'),
    ],
)
def test_it_may_be_named_and_started_in_any_way(program: Program, version: str, command: tuple[str, ...]) -> None:
    if '-E' in command:
        # Then nobody reads PYTHONPATH, and the run has no part of ours.
        executable = python(version)
        plain = program.plain(*command, python=executable)
        assert program.traced(RULES, *command, python=executable).visible() == plain.visible()
        return
    compare(program, python(version), *command)


@every_python
def test_a_link_leads_to_the_folder_of_the_file(program: Program, version: str) -> None:
    (program.app / 'other').mkdir()
    (program.app / 'other' / 'train.py').symlink_to('../sub/train.py')
    compare(program, python(version), 'other/train.py')
    compare(program, python(version), str(program.app / 'other' / 'train.py'))


@every_python
def test_a_safe_path_stays_safe(program: Program, version: str) -> None:
    if version == '3.10':
        pytest.skip('-P came with 3.11')
    compare(program, python(version), '-P', 'train.py')


ODD = {
    'a syntax error': b'def step(\n    pass\n',
    'an error of indentation': b'def step(n):\n    if n:\n  return 1\n',
    'a null byte': b'def step(n): return 1\n\0\n',
    'bytes of no encoding': b'def step(n): return "\xff"\nprint(step(1))\n',
    'an unknown encoding': b'# coding: utf-99\ndef step(n): return 1\n',
    'latin-1': b'# coding: latin-1\ndef step(n): return "\xe9"\nprint(ascii(step(1)))\n',
    'a byte order mark': b'\xef\xbb\xbfdef step(n): return "\xc3\xa9"\nprint(ascii(step(1)))\n',
    'no newline at its end': b'def step(n): return n\nprint(step(1))',
    'carriage returns': b'def step(n):\r\n    return n\r\nprint(step(1))\r\n',
    'nothing': b'',
    'a warning of the compiler': b'def step(n): return n is 1\nprint(step(1), "\\d")\n',
    'a return outside': b'def step(n): return n\nreturn step(1)\n',
    'a deep expression': b'def step(n): return n\nprint(' + b'(' * 150 + b'1' + b')' * 150 + b')\n',
    'a star import': b'from os.path import *\ndef step(n): return join("a", "b")\nprint(step(1))\n',
}


@every_python
@pytest.mark.parametrize('odd', ODD)
def test_odd_sources_are_told_or_run_the_same(tmp_path: Path, version: str, odd: str) -> None:
    program = Program(tmp_path)
    (program.app / 'train.py').write_bytes(ODD[odd])
    plain = program.plain('train.py', python=python(version))
    for _ in range(2 if 'warning' in odd else 1):
        traced = program.traced(RULES, 'train.py', python=python(version))
        assert differences(plain, traced) == ''
        assert traced.journal.reports('fault') == []


@every_python
def test_a_script_that_is_not_there_is_told_the_same(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path)
    assert (
        program.traced(RULES, 'train.py', python=python(version)).visible()
        == program.plain('train.py', python=python(version)).visible()
    )


@every_python
def test_a_first_line_that_is_to_be_skipped_is_skipped(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'train.py': 'print("first")\ndef step(n): return n\nprint(step(2))\n'})
    plain = program.plain('-x', 'train.py', python=python(version))
    assert plain.stdout == '2\n'
    assert program.traced(RULES, '-x', 'train.py', python=python(version)).visible() == plain.visible()


@every_python
def test_what_a_script_finds_imported_is_what_it_would_find(tmp_path: Path, version: str) -> None:
    shown = 'import sys\nprint(*sorted(sys.modules))\ndef step(n): return n\nstep(1)\n'
    program = Program(tmp_path, {'train.py': shown})
    before = set(program.plain('train.py', python=python(version)).stdout.split())
    program.traced(RULES, 'train.py', python=python(version))
    cached = set(program.traced(RULES, 'train.py', python=python(version)).stdout.split())
    assert before <= cached
    more = {name for name in cached - before if name.split('.')[0] not in ('lens_auto', '_lens_rt')}
    builtin = program.plain('-c', 'import sys; print(*sys.builtin_module_names)', python=python(version)).stdout.split()
    assert more <= {*builtin, '__future__', '_sha256', '_sha2', '_contextvars'}
    assert not {name for name in cached if name.startswith('lens_auto.rewrite.')} - {'lens_auto.rewrite.key'}


@every_python
def test_an_uncaught_error_leaves_two_names_that_a_plain_run_takes_away(tmp_path: Path, version: str) -> None:
    shown = 'import atexit\natexit.register(lambda: print(sorted(globals())))\ndef step(n): return n\n1 / step(0)\n'
    program = Program(tmp_path, {'train.py': shown})
    plain = eval(program.plain('train.py', python=python(version)).stdout)
    traced = eval(program.traced(RULES, 'train.py', python=python(version)).stdout)
    assert set(traced) - set(plain) == {'__file__', '__cached__'}
