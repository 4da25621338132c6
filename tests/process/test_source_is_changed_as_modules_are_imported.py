# SPDX-License-Identifier: Apache-2.0
"""A loop inside a method of an imported package: who gets changed code, who does not and why, and what is cached."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lens_auto.hook import bytecode
from tests.helpers.program import SUPPORTED, Outcome, Program, every_python, function, interpreter, place, python

TRAINER = '''
"""A trainer."""
import sys


class Trainer:
    def fit(self, count):
        for step in range(count):
            if step == 1:
                continue
            self.one(step)
        else:
            return 'done'

    def one(self, step):
        return step

    def fail(self, count):
        for step in range(count):
            raise ValueError(step)
'''
MAIN = """
import inspect
import sys
import traceback
from trainer.loop import Trainer

print(Trainer().fit(3), inspect.getsource(Trainer.fit), sys.modules['trainer.loop'].__loader__.__class__)
print(sorted(vars(sys.modules['trainer.loop'])), sys.modules['trainer.loop'].__doc__)
try:
    Trainer().fail(2)
except ValueError:
    traceback.print_exc()
"""
FILES = {'trainer/__init__.py': '', 'trainer/loop.py': TRAINER, 'main.py': MAIN}
FIT = place('loop', 'fit', 'trainer.loop:Trainer.fit', 'for $i in range($n):', attributes={'i': ('match', 'i')})
FAIL = place('loop', 'fail', 'trainer.loop:Trainer.fail', 'for $i in range($n):')
TREE = 'fit i=0\nfit i=1\nfit i=2\nfail!'


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, FILES)


def entries(program: Program) -> list[Path]:
    return sorted((program.folder / 'cache' / 'rewritten').glob('*.code'))


def missing(outcome: Outcome) -> list[str]:
    assert outcome.journal.reports('fault') == []
    return [report['reason'] for report in outcome.journal.reports('missing')]


@every_python
def test_a_loop_of_an_imported_package_is_recorded(program: Program, version: str) -> None:
    plain = program.plain(python=python(version))
    for _ in ('changed', 'cached'):
        traced = program.traced([FIT, FAIL], python=python(version))
        assert traced.visible() == plain.visible()
        assert traced.journal.tree('i') == TREE
        assert missing(traced) == []


@every_python
def test_a_second_process_neither_parses_nor_rewrites(program: Program, version: str) -> None:
    program.write({'main.py': f'{MAIN}\nprint([name for name in sys.modules if "rewrite" in name or name == "ast"])'})
    first = program.traced([FIT], python=python(version)).stdout.splitlines()[-1]
    second = program.traced([FIT], python=python(version)).stdout.splitlines()[-1]
    assert 'lens_auto.rewrite.edit' in first
    # `ast` is the doing of the program's own `inspect`.
    assert set(eval(second)) <= {'ast', 'lens_auto.rewrite', 'lens_auto.rewrite.key'}


def test_each_state_of_source_rules_and_interpreter_has_its_own_entry(program: Program) -> None:
    def run(*options: str, rules: Any = (FIT,)) -> int:
        program.traced(list(rules), *options, 'main.py')
        return len(entries(program))

    assert run() == 1
    assert run() == 1
    assert run('-O') == 2
    assert run(rules=[FIT, FAIL]) == 3
    program.write({'trainer/loop.py': TRAINER + '\n# more\n'})
    assert run() == 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in entries(program)} == {0o600}
    assert stat.S_IMODE((program.folder / 'cache' / 'rewritten').stat().st_mode) == 0o700


def test_each_interpreter_has_its_own_entry(program: Program) -> None:
    pythons = [found for version in SUPPORTED if (found := interpreter(version)) is not None]
    for count, found in enumerate(pythons, 1):
        for _ in ('changed', 'cached'):
            traced = program.traced([FIT, FAIL], python=found)
            assert traced.journal.tree('i') == TREE and missing(traced) == []
            assert len(entries(program)) == count


def test_each_version_of_the_agent_and_kind_of_interpreter_has_its_own_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def name() -> str:
        return bytecode.entry(b'source', bytecode.variant('m.py', ('edits',)))

    names = [name()]
    assert name() == names[0]
    for where, what, other in (
        (bytecode, '__version__', 'other'),
        (bytecode, 'MAGIC_NUMBER', b'other'),
        (sys.implementation, 'cache_tag', 'other-311'),
        (bytecode, '_known', [('edit.py', 1, 1)]),  # a checkout whose rewriter was edited
    ):
        with monkeypatch.context() as patched:
            patched.setattr(where, what, other)
            names.append(name())
    assert len({*names}) == 5
    assert name() == names[0]


READING = """
import os, sys
opened = []
def hear(event, given):
    if event == 'open' and str(given[0]).endswith('loop.py'):
        opened.append('source')
sys.addaudithook(hear)
from trainer.loop import Trainer
print(opened, Trainer().one(3), Trainer().fit(2))
"""


def test_the_source_of_a_file_that_is_the_same_file_is_not_read(program: Program) -> None:
    program.write({'main.py': READING})
    path = program.app / 'trainer' / 'loop.py'
    assert program.traced([FIT]).stdout == "['source'] 3 done\n"
    time.sleep(2.1)  # until nothing can change within the clock's resolution of its last change
    assert program.traced([FIT]).stdout == "['source'] 3 done\n"
    assert program.traced([FIT]).stdout == '[] 3 done\n'
    assert program.traced([FIT]).journal.names() == ['fit'] * 2

    before = path.stat()
    path.write_text(path.read_text().replace("'done'", "'over'"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert program.traced([FIT]).stdout == "['source'] 3 over\n"

    other = path.with_name('other.py')
    other.write_text(path.read_text().replace("'over'", "'else'"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)
    assert program.traced([FIT]).stdout == "['source'] 3 else\n"


def test_a_file_that_has_just_been_written_is_not_noted(program: Program) -> None:
    path = program.app / 'trainer' / 'loop.py'
    for word in ('this', 'that'):
        path.write_text(TRAINER.replace('done', word))
        program.write({'main.py': READING})
        traced = program.traced([FIT])
        assert traced.stdout.endswith(f'{word}\n')
    assert not list((program.folder / 'cache' / 'rewritten').glob('*.seen'))


def spoil_nothing(folder: Path) -> None:
    folder.chmod(0o500)


def spoil_bytes(folder: Path) -> None:
    for path in folder.glob('*'):
        path.write_bytes(path.read_bytes()[:40] + b'\xff' * 200)


def spoil_end(folder: Path) -> None:
    for path in folder.glob('*'):
        path.write_bytes(path.read_bytes()[:-30])


def spoil_access(folder: Path) -> None:
    folder.chmod(0o777)


def spoil_entry(folder: Path) -> None:
    for path in folder.glob('*'):
        path.chmod(0o666)


def spoil_link(folder: Path) -> None:
    moved = folder.with_name('elsewhere')
    folder.rename(moved)
    folder.symlink_to(moved)


def spoil_kind(folder: Path) -> None:
    for path in folder.glob('*'):
        path.unlink()
    folder.rmdir()
    folder.write_text('a file')


SPOILS = [spoil_nothing, spoil_bytes, spoil_end, spoil_access, spoil_entry, spoil_link, spoil_kind]


@pytest.mark.parametrize('spoil', SPOILS, ids=lambda each: each.__name__)
def test_a_cache_that_cannot_be_used_costs_time_alone(program: Program, spoil: Any) -> None:
    plain = program.plain()
    program.traced([FIT, FAIL])
    folder = program.folder / 'cache' / 'rewritten'
    spoil(folder)
    for _ in range(2):
        traced = program.traced([FIT, FAIL])
        assert traced.visible() == plain.visible()
        assert traced.journal.tree('i') == TREE and missing(traced) == []
    if folder.is_dir():
        folder.chmod(0o700)


@pytest.mark.parametrize('where', ['in the place of a folder', 'where root cannot write'])
def test_a_cache_where_nobody_can_write_costs_time_alone(program: Program, where: str) -> None:
    """Whoever runs this may be root, whom permissions do not stop."""
    plain = program.plain()
    if where == 'in the place of a folder':
        folder = program.folder / 'cache'
        folder.write_text('a file')
    else:
        folder = Path('/proc/sys/kernel/lens')
        with pytest.raises(OSError):
            folder.mkdir()
    for _ in range(2):
        traced = program.traced([FIT, FAIL], LENS_CACHE=str(folder))
        assert traced.visible() == plain.visible()
        assert traced.journal.tree('i') == TREE and missing(traced) == []
    assert not folder.is_dir()


def test_a_full_disk_costs_time_alone(program: Program) -> None:
    # Not one byte may be written to a new file; the journal needs more, and records nothing.
    plain = program.plain()
    inner = 'ulimit -f 0; exec "$0" main.py'
    environ = program.environment([FIT])
    done = subprocess.run(
        ['sh', '-c', inner, python('3.11')],
        cwd=program.app,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout == plain.stdout
    assert entries(program) == []


def test_without_a_cache_folder_every_process_rewrites(program: Program) -> None:
    for _ in range(2):
        assert program.traced([FIT, FAIL], LENS_CACHE='').journal.tree('i') == TREE
    assert entries(program) == []


@every_python
def test_a_reload_runs_changed_code_again(program: Program, version: str) -> None:
    program.write(
        {
            'main.py': """
            import importlib, trainer.loop
            trainer.loop.Trainer().fit(1)
            importlib.reload(trainer.loop)
            trainer.loop.Trainer().fit(1)
            """
        }
    )
    traced = program.traced([FIT], python=python(version))
    assert traced.journal.tree('i') == 'fit i=0\nfit i=0'


@every_python
def test_an_archive_has_source_too(program: Program, version: str) -> None:
    with zipfile.ZipFile(program.app / 'lib.zip', 'w') as archive:
        archive.writestr('packed.py', TRAINER)
    program.write(
        {'main.py': 'import sys\nsys.path.insert(0, "lib.zip")\nfrom packed import *\nprint(Trainer().fit(1))'}
    )
    rule = {**FIT, 'targets': (('packed', 'Trainer.fit'),)}
    plain = program.plain(python=python(version))
    traced = program.traced([rule], python=python(version))
    assert traced.visible() == plain.visible()
    assert traced.journal.tree('i') == 'fit i=0'


HOOKS = {
    'a hook that compiles in its own way': (
        """
        import sys
        from importlib.machinery import FileFinder, SourceFileLoader
        class Checking(SourceFileLoader):
            def source_to_code(self, data, path, *, _optimization=-1):
                return super().source_to_code(data + b'\\nCHECKED = 1\\n', path)
        checked = FileFinder.path_hook((Checking, ['.py']))
        def hook(path):
            if not path.endswith('trainer'):
                raise ImportError
            return checked(path)
        sys.path_hooks.insert(0, hook)
        import trainer.loop
        print(trainer.loop.CHECKED, trainer.loop.Trainer().fit(2))
        """,
        '__main__.Checking compiles it in its own way',
    ),
    'bytecode alone': (
        """
        import compileall, os, sys
        compileall.compile_file('trainer/loop.py', quiet=1, legacy=True)
        os.rename('trainer/loop.py', 'kept')
        try:
            from trainer.loop import Trainer
            print(Trainer().fit(2))
        finally:
            os.rename('kept', 'trainer/loop.py')
            os.unlink('trainer/loop.pyc')
        """,
        'there is only its bytecode',
    ),
    'a hook in front of ours': (
        """
        import sys
        from importlib.util import spec_from_file_location
        class First:
            def find_spec(self, name, path=None, target=None):
                return spec_from_file_location(name, 'trainer/loop.py') if name == 'trainer.loop' else None
        sys.meta_path.insert(0, First())
        from trainer.loop import Trainer
        import trainer.other
        print(Trainer().fit(2))
        """,
        'it was imported without us, or before this was switched on (by SourceFileLoader)',
    ),
}


@pytest.mark.parametrize('hook', HOOKS)
def test_a_module_that_others_load_runs_untouched_and_is_told_of(program: Program, hook: str) -> None:
    text, reason = HOOKS[hook]
    program.write({'main.py': text, 'trainer/other.py': ''})
    plain = program.plain()
    traced = program.traced([FIT, function('other', 'trainer.other:nothing')])
    assert traced.visible() == plain.visible()
    assert traced.journal.spans == []
    assert reason in missing(traced)


def test_drift_is_told_with_the_nearest_and_the_module_runs_untouched(program: Program) -> None:
    plain = program.plain()
    rules = [
        place('loop', 'a', 'trainer.loop:Trainer.fit', 'for $i in range(7):'),
        place('loop', 'b', 'trainer.loop:Trainer.fit', 'for $i in $n:', expect=(2, None)),
        place('loop', 'c', 'trainer.loop:Trainer.fits', 'for $i in $n:'),
        FIT,
    ]
    for _ in ('changed', 'cached'):
        traced = program.traced(rules)
        assert traced.visible() == plain.visible()
        assert traced.journal.names() == ['fit'] * 3
        told = missing(traced)
        assert len(told) == 3 and '`for step in range(count):`' in told[0]
        assert 'once, at least 2 are expected' in told[1] and 'Trainer.fit' in told[2]


def test_of_alternatives_the_first_that_is_there_counts(program: Program) -> None:
    targets = (('trainer.loop', 'Old.fit'), ('trainer.loop', 'Trainer.fit'), ('trainer.loop', 'Trainer.fail'))
    traced = program.traced([{**FIT, 'targets': targets}])
    assert traced.journal.names() == ['fit'] * 3


def test_a_module_whose_rules_are_all_off_is_not_changed(program: Program) -> None:
    rule = {**FIT, 'group': 'mine'}
    traced = program.traced([rule], LENS_SPAN_GROUPS='default')
    assert traced.journal.spans == [] and entries(program) == []


def test_source_that_does_not_compile_fails_as_ever(program: Program) -> None:
    program.write({'trainer/loop.py': 'def fit(:\n', 'main.py': 'import trainer.loop\n'})
    assert program.traced([FIT]).visible() == program.plain().visible()


def test_an_error_at_import_shows_the_frames_of_a_plain_import(program: Program) -> None:
    program.write(
        {'trainer/loop.py': f'{TRAINER}\nraise RuntimeError(Trainer().fit(2))\n', 'main.py': 'import trainer.loop'}
    )
    for _ in ('changed', 'cached'):
        assert program.traced([FIT]).visible() == program.plain().visible()


def test_two_rules_at_one_place_make_a_span_each(program: Program) -> None:
    other = place('loop', 'other', 'trainer.loop:Trainer.fit', 'for step in $_:')
    traced = program.traced([FIT, other])
    assert traced.journal.tree() == '\n'.join(['fit\n  other'] * 3)


@every_python
def test_a_function_is_rewritten_or_else_wrapped(program: Program, version: str) -> None:
    program.write(
        {
            'trainer/loop.py': """
            def plain(a): return a
            def stream(n):
                yield from range(n)
            """,
            'main.py': """
            from trainer.loop import plain, stream
            before = plain.__code__.co_firstlineno
            print(plain(1), list(stream(2)), plain.__code__.co_names and 1)
            """,
        }
    )
    rules = [
        function('plain', 'trainer.loop:plain', apply='rewrite', attributes={'a': ('arg', 'a')}),
        function('stream', 'trainer.loop:stream', apply='rewrite'),
    ]
    traced = program.traced(rules, python=python(version))
    assert traced.code == 0, traced.stderr
    assert traced.journal.tree('a') == 'plain a=1\nstream'
