# SPDX-License-Identifier: Apache-2.0
"""What the user got wrong is refused before the command starts; what we got wrong never stops it."""

from __future__ import annotations

import sys

import pytest

from tests.unit.launch.launched import Bench

COMMAND = [sys.executable, '-c', 'print("ran"); raise SystemExit(3)']


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--rulez', 'x'], 'unknown option `--rulez`\n    did you mean `--rules`?'),
        (
            ['--set', 'exprter=otlp'],
            '`exprter` is not a setting\n    from --set exprter=otlp\n',
        ),
        (['--exporter', 'oltp'], 'exporter cannot be `oltp`'),
        (
            ['--span-groups', 'per_step,rolout'],
            'span group `rolout` is not known\n    from --span-groups',
        ),
        (['--rules', 'absent.yaml'], 'absent.yaml'),
        (['--telemetry', 'absent.yaml'], 'absent.yaml'),
        (['--run-dir', '.'], 'is not empty and not the folder of a run'),
    ],
)
def test_a_wrong_request_is_refused_with_code_2_and_leaves_nothing(
    bench: Bench, arguments: list[str], message: str
) -> None:
    bench.cwd.joinpath('file').touch()
    done = bench.run(*arguments, *COMMAND)
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr.startswith('lens-instrument: ')
    assert message in done.stderr
    assert 'Traceback' not in done.stderr
    assert bench.runs() == []


def test_no_command_is_a_usage_error(bench: Bench) -> None:
    done = bench.run('--no-summary')
    assert (done.returncode, done.stdout) == (2, '')
    assert 'usage: lens-instrument [OPTIONS] [--] COMMAND ARGS...' in done.stderr


@pytest.mark.parametrize(
    ('command', 'code', 'message'),
    [
        ('absent-command', 127, 'absent-command: command not found'),
        ('./absent', 127, './absent: No such file or directory'),
        ('./folder', 126, './folder: Is a directory'),
        ('./file', 126, './file: Permission denied'),
        ('./script', 127, './script: cannot execute: required file not found'),
    ],
)
def test_a_command_that_cannot_run_leaves_no_run_folder(bench: Bench, command: str, code: int, message: str) -> None:
    bench.cwd.joinpath('folder').mkdir()
    bench.cwd.joinpath('file').touch()
    bench.cwd.joinpath('script').write_text('#!/no/such/interpreter\n')
    bench.cwd.joinpath('script').chmod(0o755)
    done = bench.run(command)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (code, '', f'lens-instrument: {message}')
    assert bench.runs() == []


@pytest.mark.parametrize(
    'planted',
    [
        'import lens_auto.settings.resolve as m; m.resolve = None',
        'import lens_auto.rules.plan_cache as m; m.compiled = None',
        'import lens_auto.collect.folder as m; m.open_run = None',
        'import lens_auto.collect.spool as m; m.choose = None',
        'import lens_auto.launch.bootstrap as m; m.folder = None',
        'import lens_auto.launch.recording as m; m.Recording._start = None',
        'import lens_auto.launch.recording as m; m.Recording._finish = None',
        'import lens_auto.launch.signals as m; m.Vigil._reap = None',
        'import lens_auto.collect.collector as m; m.Collector.start = None',
        'import lens_auto.collect.collector as m; m.Collector.finish = None',
        'import lens_auto.launch.collecting as m; m.write = None',
        'import lens_auto.launch.canary as m; m.Canary.start = None',
    ],
)
def test_a_fault_of_ours_is_one_line_and_the_command_runs_and_ends_as_ever(bench: Bench, planted: str) -> None:
    slow = 'import time; time.sleep(0.2); ' if 'Canary' in planted else ''
    done = bench.run(sys.executable, '-c', f'{slow}print("ran"); raise SystemExit(3)', planted=planted)
    assert (done.returncode, done.stdout) == (3, 'ran\n'), done.stderr
    assert 'Traceback' not in done.stderr
    faults = [line for line in done.stderr.splitlines() if 'Error at ' in line or 'Error)' in line]
    assert len(faults) == 1, done.stderr


def test_a_collector_that_hangs_holds_the_exit_up_for_two_seconds_at_most(bench: Bench) -> None:
    planted = 'import time, lens_auto.collect.collector as m; m.Collector.finish = lambda *a: time.sleep(60)'
    done = bench.run(*COMMAND, planted=planted)
    assert (done.returncode, done.stdout) == (3, 'ran\n')
    assert '--replay' in done.stderr


def test_strict_refuses_to_run_without_recording(bench: Bench) -> None:
    done = bench.run('--strict', *COMMAND, planted='import lens_auto.collect.folder as m; m.open_run = None')
    assert (done.returncode, done.stdout) == (2, '')
