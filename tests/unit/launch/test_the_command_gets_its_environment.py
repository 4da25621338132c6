# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

import pytest

from tests.unit.launch.launched import CODE, REPOSITORY, Bench

SHOW = [sys.executable, '-S', '-c', 'import json, os; print(json.dumps(dict(os.environ)))']
STAGE_ONE = str(REPOSITORY / 'sitecustomize')


def environ(bench: Bench, *arguments: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the command sees."""
    done = bench.run(*arguments, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_everything_of_ours_is_there_and_everything_of_the_users_is_as_it_was(bench: Bench) -> None:
    given = {'PYTHONPATH': '/with space:/b', 'MY_OWN': 'ü\nx', 'OTEL_RESOURCE_ATTRIBUTES': 'a=b'}
    seen = environ(bench, '--exporter', 'console', '--service-name', 'mine', *SHOW, env=given)

    added = {name: value for name, value in seen.items() if {**bench.env, **given}.get(name) != value}
    path, _, digest = added['LENS_PLAN_REF'].partition('#')
    assert seen['MY_OWN'] == 'ü\nx'
    assert added['PYTHONPATH'] == f'{STAGE_ONE}:/with space:/b'
    assert added['LENS_ENABLED'] == '1'
    assert added['LENS_HOME'] == str(REPOSITORY / 'lens_auto')
    assert 'torch' in added['LENS_MODULES'].split(',')
    assert path == f'{added["LENS_SPOOL"]}/plan' and len(digest) == 64
    assert added['LENS_SPOOL'].startswith(bench.env['LENS_SPOOL'])
    assert added['LENS_RUN_ID'] == bench.runs()[0].name
    assert [len(part) for part in added['LENS_RUN_ROOT'].split('-')] == [32, 16]
    assert added['LENS_LAUNCHER_PID'].isdigit()
    assert len(added['LENS_CONSOLE'].split(':')) == 2
    assert added['LENS_SERVICE_NAME'] == 'mine'
    assert added['LENS_EXPORTER'] == 'console'
    assert 'exporter' not in added['LENS_PROVISIONAL'].split(',')
    assert {name for name in added if not name.startswith('LENS_')} == {'PYTHONPATH'}


@pytest.mark.parametrize('given', [None, '', ':', '/a:', '/a::/b'])
def test_python_finds_the_users_modules_where_it_did(bench: Bench, given: str | None) -> None:
    env = {} if given is None else {'PYTHONPATH': given}
    show = [sys.executable, '-c', 'import sys; print(*sys.path, sep="\\n")']
    plain = bench.plain(*show, env=env).stdout.splitlines()

    done = bench.run('--no-summary', *show, env=env)

    # Stage 1 takes its own entry out again.
    assert done.stdout.splitlines() == plain


def test_nested_launchers_change_nothing(bench: Bench) -> None:
    show = ['--no-summary', *SHOW]
    once = environ(bench, *show)
    nested = environ(bench, *bench.launcher(*bench.launcher(*show)))

    differ = {name for name in once if once[name] != nested.get(name)} | (nested.keys() - once.keys())
    assert differ == {'LENS_RUN_ID', 'LENS_RUN_ROOT', 'LENS_SPOOL', 'LENS_PLAN_REF', 'LENS_LAUNCHER_PID'}
    assert len(bench.runs()) == 2


def test_a_launcher_within_the_run_is_the_process_it_becomes(bench: Bench) -> None:
    script = bench.cwd / 'lens-instrument'
    script.write_text(CODE.format(repository=str(REPOSITORY), planted='pass'))
    bench.run(sys.executable, str(script), sys.executable, '-c', 'pass')
    facts = json.loads((bench.runs()[0] / 'run.json').read_text())
    assert [(row['outcome'], row['reason'], row['command']) for row in facts['processes']] == [('armed', '', '-c')]


def test_a_nested_launcher_says_that_its_options_do_not_count_and_mends_python_path(bench: Bench) -> None:
    inner = bench.launcher('--exporter', 'console', *SHOW)
    done = bench.run('--no-summary', 'env', 'PYTHONPATH=/x', *inner)
    seen = json.loads(done.stdout)
    assert seen['PYTHONPATH'] == f'{STAGE_ONE}:/x'
    assert seen['LENS_EXPORTER'] == 'file'
    assert f'inside run {seen["LENS_RUN_ID"]} already' in done.stderr


def test_what_a_finished_run_left_in_a_shell_does_not_bind_the_next(bench: Bench) -> None:
    left = environ(bench, '--no-summary', *SHOW)
    assert not os.path.exists(left['LENS_SPOOL'])
    left['LENS_SPOOL'] = bench.env['LENS_SPOOL'] + '/gone'

    seen = environ(bench, '--no-summary', '--set', 'export_rank=2', *SHOW, env=left)

    assert seen['LENS_RUN_ROOT'] != left['LENS_RUN_ROOT']
    assert seen['LENS_EXPORT_RANK'] == '2'
    assert seen['PYTHONPATH'] == STAGE_ONE
    assert len(bench.runs()) == 2


@pytest.mark.parametrize('how', ['flag', 'environment'])
def test_switched_off_the_command_runs_as_if_we_were_not_there(bench: Bench, how: str) -> None:
    env = {'LENS_ENABLED': '0'} if how == 'environment' else {}
    plain = bench.plain(*SHOW, env=env)
    done = bench.run(*(('--set', 'enabled=false') if how == 'flag' else ()), *SHOW, env=env)
    assert json.loads(done.stdout) == json.loads(plain.stdout)
    assert bench.runs() == []
