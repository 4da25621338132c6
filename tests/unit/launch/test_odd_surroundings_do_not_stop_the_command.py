# SPDX-License-Identifier: Apache-2.0
"""Surroundings that are nobody's mistake: too long an environment, no working directory, another tool's lens.yaml."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.launch.launched import Bench

COMMAND = [sys.executable, '-c', 'import os; print("ran", "LENS_SPOOL" in os.environ); raise SystemExit(3)']
RULE = '- {{kind: function, target: "{module}:train", group: step, name: rl.step}}\n'


def rules(folder: Path, count: int, length: int) -> None:
    lines = [RULE.format(module=f'm{number}_' + 'x' * length) for number in range(count)]
    folder.joinpath('many.yaml').write_text('framework: many\nrules:\n' + ''.join(lines))


def test_module_names_too_long_for_a_variable_cost_the_recording_only(bench: Bench) -> None:
    rules(bench.cwd, 1000, 120)
    env = {'LENS_SPOOL': ''}
    done = bench.run('--rules', 'many.yaml', *COMMAND, env=env)
    assert (done.returncode, done.stdout) == (3, 'ran True\n')
    said = re.fullmatch(
        'lens-instrument: the command runs without being recorded: '
        r'the names of the (\d+) modules in the rules are too long for a variable\n',
        done.stderr,
    )
    assert said is not None and int(said[1]) > 1000, done.stderr
    assert bench.runs() == []
    assert bench.run('--strict', '--rules', 'many.yaml', *COMMAND, env=env).returncode == 2


@pytest.mark.parametrize('how', [[], ['--exec']], ids=['beside', 'exec'])
def test_an_environment_that_only_fits_without_ours_is_given_without_ours(bench: Bench, how: list[str]) -> None:
    del bench.env['LENS_SPOOL']
    # A quarter of the stack is what the kernel takes for arguments and environment, but never less than 128 KiB.
    limited = ['sh', '-c', 'ulimit -s 1024; exec "$@"', 'sh']
    used = sum(len(name) + len(value) + 10 for name, value in bench.env.items())
    bench.env |= {f'FILLER{n}': 'x' * 10_000 for n in range((225_000 - used) // 10_000)}
    rules(bench.cwd, 400, 120)
    done = bench.plain(*limited, *bench.launcher(*how, '--rules', 'many.yaml', *COMMAND))
    assert (done.returncode, done.stdout) == (3, 'ran False\n'), done.stderr[-500:]
    assert 'the command runs without being recorded: its environment would be too long' in done.stderr


def test_a_run_in_a_removed_working_directory_is_recorded_elsewhere(bench: Bench, tmp_path: Path) -> None:
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$@"'
    command = [sys.executable, '-c', 'print("ran"); raise SystemExit(3)']
    done = bench.plain('sh', '-c', script, 'sh', *bench.launcher('--span-groups', 'all', *command))
    assert (done.returncode, done.stdout) == (3, 'ran\n'), done.stderr
    assert 'the working directory has been removed' in done.stderr
    assert 'Error' not in done.stderr
    (run,) = tmp_path.glob('lens-runs/*/run.json')
    assert json.loads(run.read_text())['exit_code'] == 3


@pytest.mark.parametrize('text', ['focal_length: 50\n', '- 35\n- 50\n', '', 'model: !lens {f: 1.8\n'])
def test_a_lens_yaml_of_another_tool_is_announced_and_left_alone(bench: Bench, text: str) -> None:
    bench.cwd.joinpath('lens.yaml').write_text(text)
    for _ in range(2):  # the second time out of the cache
        done = bench.run(*COMMAND)
        assert (done.returncode, done.stdout) == (3, 'ran True\n')
        assert 'lens.yaml is no rule file (it has no `framework` and no `rules`): ignored' in done.stderr
    assert bench.run('--rules', 'lens.yaml', *COMMAND).returncode == 2
    assert bench.run('--strict', *COMMAND).returncode == 2


@pytest.mark.parametrize('text', ['framework: mine\nrulse: []\n', 'framework: mine\nrules: [}\n'])
def test_a_slip_in_a_found_rule_file_is_still_refused(bench: Bench, text: str) -> None:
    bench.cwd.joinpath('lens.yaml').write_text(text)
    done = bench.run(*COMMAND)
    assert (done.returncode, done.stdout) == (2, '')


def test_a_group_that_only_the_programs_config_knows_is_announced(bench: Bench) -> None:
    done = bench.run(*COMMAND, 'telemetry.span_groups=per_step,kv_cache')
    assert (done.returncode, done.stdout) == (3, 'ran True\n')
    assert 'telemetry.span_groups=per_step,kv_cache: span group `kv_cache` is not known: ignored' in done.stderr


def test_info_ends_quietly_when_its_reader_has_seen_enough(bench: Bench) -> None:
    command = bench.launcher('--info', planted='import time; time.sleep(0.2)')
    reader = subprocess.Popen(
        command, cwd=bench.cwd, env=bench.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None and reader.stderr is not None
    reader.stdout.close()
    assert reader.stderr.read() == ''
    reader.stderr.close()
    reader.wait()


@pytest.mark.parametrize(
    ('flags', 'env', 'source'),
    [(['--set', 'enabled=no'], {}, '--set enabled=no'), ([], {'LENS_ENABLED': '0'}, 'LENS_ENABLED=0')],
)
def test_off_is_one_line_that_names_who_said_so(
    bench: Bench, flags: list[str], env: dict[str, str], source: str
) -> None:
    done = bench.run(*flags, 'true', env=env)
    assert (done.returncode, done.stderr) == (0, f'lens-instrument: nothing is recorded ({source})\n')
