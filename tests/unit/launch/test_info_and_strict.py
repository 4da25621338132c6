# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.launch.launched import Bench

RULES = """\
framework: tiny
when: tiny_trainer
rules:
- kind: function
  target: tiny_trainer:train_step
  group: step
  name: rl.tiny.step
- kind: function
  target: tiny_trainer:{second}
  group: {group}
  name: rl.tiny.second
"""
TRAINER = 'def train_step(): return 1\ndef evaluate(): return 2\n'
COMMAND = [sys.executable, '-c', 'import tiny_trainer as t; print(t.train_step(), t.evaluate())']


def put(folder: Path, second: str = 'evaluate', group: str = 'evaluate') -> None:
    folder.joinpath('tiny.yaml').write_text(RULES.format(second=second, group=group))
    folder.joinpath('tiny_trainer.py').write_text(TRAINER)


def test_info_shows_what_a_run_would_be_and_starts_nothing(bench: Bench) -> None:
    put(bench.cwd, group='optimizer')
    secret = 'hf_abcdefgh12345678ABCD'
    arguments = ['--info', '--rules', 'tiny.yaml', '--exporter', 'console', '--span-groups', 'step']
    done = bench.run(*arguments, *COMMAND, '--token', secret)
    assert (done.returncode, done.stderr) == (0, '')
    shown = [' '.join(line.split()) for line in done.stdout.splitlines()]
    assert 'exporter console --exporter console' in shown
    assert 'service_name tiny default (the active rule file)' in shown
    assert 'tiny.yaml tiny from --rules, where tiny_trainer is importable' in shown
    at = shown.index('hooked')
    # Of the built-in files only Ray's is for a package that is here, and that for HTTP for none in particular.
    assert [line for line in shown[at + 1 :] if not line.startswith(('ray.', 'http.'))] == [
        'rl.tiny.step step tiny_trainer:train_step tiny.yaml:4',
        '',
        'off',
        'rl.tiny.second optimizer tiny_trainer:evaluate tiny.yaml:8',
    ]
    assert secret not in done.stdout
    assert bench.runs() == []


@pytest.mark.parametrize(
    ('second', 'group', 'code', 'said'),
    [
        ('evaluate', 'evaluate', 0, ''),
        ('renamed', 'evaluate', 1, 'rl.tiny.second (tiny.yaml:8) matched nothing'),
        # A rule that is off is not expected to match.
        ('renamed', 'optimizer', 0, ''),
    ],
)
def test_strict_fails_a_good_run_whose_rules_did_not_match(
    bench: Bench, second: str, group: str, code: int, said: str
) -> None:
    put(bench.cwd, second, group)
    arguments = ['--strict', '--no-summary', '--span-groups', 'step,evaluate', '--rules', 'tiny.yaml']
    done = bench.run(*arguments, *COMMAND)
    assert (done.returncode, done.stdout) == (code, '1 2\n'), done.stderr
    assert said in done.stderr.replace(f'{bench.cwd}/', '')


def test_strict_keeps_the_commands_own_failure(bench: Bench) -> None:
    put(bench.cwd, 'renamed')
    done = bench.run(
        '--strict', '--rules', 'tiny.yaml', sys.executable, '-c', 'import tiny_trainer; raise SystemExit(5)'
    )
    assert done.returncode == 5


def test_strict_and_exec_exclude_each_other(bench: Bench) -> None:
    done = bench.run('--strict', '--exec', *COMMAND)
    assert (done.returncode, done.stdout) == (2, '')
    assert '--strict with --exec: nobody is left at the end to judge the run' in done.stderr


def test_strict_fails_a_good_run_of_which_an_attribute_could_not_be_read(bench: Bench) -> None:
    put(bench.cwd)
    rules = bench.cwd / 'tiny.yaml'
    rules.write_text(RULES.format(second='evaluate', group='evaluate') + '  attributes: {rl.x: arg.absent}\n')
    done = bench.run('--strict', '--no-summary', '--span-groups', 'step,evaluate', '--rules', 'tiny.yaml', *COMMAND)
    assert (done.returncode, done.stdout) == (1, '1 2\n'), done.stderr
    assert done.stderr.count('rl.tiny.second (') == 1


def test_the_settings_that_were_made_stand_under_the_first_line(bench: Bench) -> None:
    said = bench.run('--no-summary', '--set', 'export_rank=2', 'true').stderr.splitlines()
    assert said[1] == '    settings: export_rank=2 (--set)'
    assert 'settings: export_rank' not in bench.run('--no-summary', 'true').stderr
