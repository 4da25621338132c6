# SPDX-License-Identifier: Apache-2.0
"""Processes that are no part of a run, or cannot take part, run as without us, and say why in the roll-call."""

import os
from pathlib import Path

import pytest

from tests.helpers.program import HOME, Program, every_python, function, interpreter, plan_of, python

FILES = {
    'main.py': 'import target; print(target.f())',
    'target.py': 'def f(): return 1',
    'bin/pip': 'print("pip")',
    'torch/_inductor/compile_worker/__main__.py': 'print("worker")',
    'ray/_private/log_monitor.py': 'print("monitor")',
    'ray/_private/workers/default_worker.py': 'print("worker")',
}
RULES = [function('f', 'target:f')]
TRACKER = 'from multiprocessing.resource_tracker import main; print(main.__name__)'

HELPERS = {
    'pip': (['-m', 'pip', '--version'], 'helper: pip'),
    'pip, joined': (['-mpip', '--version'], 'helper: pip'),
    'pip, after options with values': (['-X', 'utf8', '-W', 'ignore', '-Bum', 'pip', '--version'], 'helper: pip'),
    'pip, as a script': (['bin/pip'], 'helper: pip'),
    'venv': (['-m', 'venv', '--help'], 'helper: venv'),
    'ensurepip': (['-m', 'ensurepip', '--version'], 'helper: ensurepip'),
    'compileall': (['-m', 'compileall', '-q', 'bin'], 'helper: compileall'),
    'resource tracker': (['-X', 'utf8', '-c', TRACKER], 'helper: multiprocessing.resource_tracker'),
    'compile worker': (['torch/_inductor/compile_worker/__main__.py'], 'helper: __main__.py'),
    'ray daemon': (['{app}/ray/_private/log_monitor.py'], 'helper: log_monitor.py'),
}
PARTICIPANTS = {
    'script': ['main.py', '-m', 'pip'],
    'module': ['-m', 'main'],
    'command': ['-c', 'import main'],
    'command, joined': ['-Xutf8', '-cimport main'],
    'stdin': ['-'],
    'ray worker': ['{app}/ray/_private/workers/default_worker.py'],
    'spawned child': ['-c', 'from multiprocessing.spawn import spawn_main; print(spawn_main.__name__)'],
}


@pytest.mark.parametrize(('command', 'reason'), HELPERS.values(), ids=HELPERS)
def test_helpers_stand_down(tmp_path: Path, command: list[str], reason: str) -> None:
    program = Program(tmp_path, FILES)
    executable = interpreter('3.12') or python('3.11')
    command = [word.format(app=program.app) for word in command]
    traced = program.traced(RULES, *command, python=executable)
    assert traced.visible() == program.plain(*command, python=executable).visible()
    assert {(row[4], row[5]) for row in traced.processes} == {('stood_down', reason)}


@every_python
@pytest.mark.parametrize('command', PARTICIPANTS.values(), ids=PARTICIPANTS)
def test_programs_take_part(tmp_path: Path, version: str, command: list[str]) -> None:
    program = Program(tmp_path, FILES)
    command = [word.format(app=program.app) for word in command]
    traced = program.traced(RULES, *command, python=python(version))
    assert traced.visible() == program.plain(*command, python=python(version)).visible()
    assert [(row[4], row[5]) for row in traced.processes] == [('armed', '')]
    assert traced.journal.names() == (['f'] if 'main' in ' '.join(command) and 'spawn' not in ' '.join(command) else [])


@pytest.mark.parametrize('version', ['2.7', '3.6', '3.7', '3.8', '3.9'])
def test_an_unsupported_python_stands_down_silently(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, FILES | {'sitecustomize.py': 'print("mine")'})
    traced = program.traced(RULES, python=python(version))
    assert traced.visible() == program.plain(python=python(version)).visible()
    assert [row[4] for row in traced.processes] == ['stood_down']
    if version > '3':
        assert traced.processes[0][5] == f'python cpython {version} is not supported'


DAMAGE = {
    'switched off': ({'LENS_ENABLED': '0'}, None),
    'neither on nor off': ({'LENS_ENABLED': ''}, None),
    'no plan': ({'LENS_PLAN_REF': ''}, None),
    'plan missing': ({'LENS_PLAN_REF': '/nowhere#' + '0' * 64}, 'stage 2: PlanError missing'),
    'plan altered': ({'LENS_PLAN_REF': '{plan}#' + '0' * 64}, 'stage 2: PlanError changed'),
    'plan without a digest': ({'LENS_PLAN_REF': '{plan}'}, 'stage 2: PlanError'),
    'home missing': ({'LENS_HOME': '/nowhere'}, 'lens-auto is not at LENS_HOME'),
    'home unset': ({'LENS_HOME': ''}, 'lens-auto is not at LENS_HOME'),
    'run root unset': ({'LENS_RUN_ROOT': ''}, 'stage 2: KeyError'),
    'run root malformed': ({'LENS_RUN_ROOT': 'xyz'}, 'stage 2: ValueError'),
    'modules unset': ({'LENS_MODULES': ''}, ''),
}


@every_python
@pytest.mark.parametrize(('environ', 'reason'), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_environment_costs_the_spans_only(
    tmp_path: Path, version: str, environ: dict[str, str], reason: str | None
) -> None:
    program = Program(tmp_path, FILES)
    environ = {name: value.format(plan=tmp_path / 'plan') for name, value in environ.items()}
    traced = program.traced(RULES, python=python(version), **environ)
    assert traced.visible() == program.plain(python=python(version)).visible()
    assert traced.journal.spans == []
    rows = [row for row in traced.processes if row[4] == 'stood_down']
    if reason:
        assert rows[-1][5].startswith(reason)
    elif reason is None:
        assert traced.processes == []


@every_python
def test_a_plan_of_another_format_is_not_read(tmp_path: Path, version: str) -> None:
    from lens_auto.rules import plan

    program = Program(tmp_path, FILES)
    environ = program.environment(RULES)
    data = bytearray(plan.dump(plan_of(RULES)))
    data[len(b'lens-plan\n')] += 1
    (tmp_path / 'other').write_bytes(data)
    environ['LENS_PLAN_REF'] = f'{tmp_path / "other"}#{plan.sha256_hex(bytes(data))}'
    traced = program.traced(RULES, python=python(version), **environ)
    assert traced.visible() == program.plain(python=python(version)).visible()
    assert traced.processes[-1][5] == 'stage 2: PlanError format'


@every_python
@pytest.mark.parametrize('spool', ['missing', 'a file', 'unset'])
def test_a_spool_that_cannot_be_written_costs_the_records_only(tmp_path: Path, version: str, spool: str) -> None:
    program = Program(tmp_path, FILES)
    path = {'missing': '/nowhere/spool', 'a file': os.devnull, 'unset': ''}[spool]
    traced = program.traced(RULES, python=python(version), LENS_SPOOL=path)
    assert traced.visible() == program.plain(python=python(version)).visible()


def test_the_copy_at_home_is_loaded_and_no_other(tmp_path: Path) -> None:
    files = {'lens_auto/__init__.py': 'raise SystemExit("shadowed")', 'main.py': 'import target; print(target.f())'}
    program = Program(tmp_path, FILES | files)
    traced = program.traced(RULES)
    assert (traced.stdout, traced.code) == ('1\n', 0)
    assert traced.journal.names() == ['f']
    assert str(HOME) not in traced.stdout
