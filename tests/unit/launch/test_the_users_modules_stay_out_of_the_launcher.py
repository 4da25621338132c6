# SPDX-License-Identifier: Apache-2.0
"""PYTHONPATH and the working directory are the command's: nothing of the user's is executed in the launcher."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.unit.launch.launched import REPOSITORY, Bench

NAMES = ('yaml', 'shutil', 'json', 'datetime', 'resource', 'random', 'difflib', 'tempfile', 'fcntl', 'mmap', 'array')
TELL = 'import os\nopen(os.environ["TELL"], "a").write(__name__ + "\\n")\nraise SystemExit(9)\n'
RULES = """\
framework: mine
when: mine_trainer
rules: [{kind: function, target: "mine_trainer:train", group: step, name: rl.step}]
"""


def plant(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        folder.joinpath(f'{name}.py').write_text(TELL)


@pytest.mark.parametrize('where', ['src', '', '.'])
def test_modules_of_the_users_that_exit_keep_neither_the_command_nor_the_recording_from_starting(
    bench: Bench, tmp_path: Path, where: str
) -> None:
    plant(bench.cwd / where)
    bench.cwd.joinpath('lens.yaml').write_text(RULES)
    told = tmp_path / 'told'
    env = {'PYTHONPATH': f'{where}:{REPOSITORY}', 'TELL': str(told)}
    program = 'import time; time.sleep(0.1); print("ran")'
    # As a console script has it: Python itself has made the path.
    start = 'from lens_auto.launch.main import main; main()'
    done = bench.plain(
        sys.executable, '-c', start, '--set', 'export_rank=1', sys.executable, '-S', '-c', program, env=env
    )
    assert (done.returncode, done.stdout) == (0, 'ran\n'), done.stderr
    assert not told.exists(), told.read_text()
    assert 'Error at' not in done.stderr and 'SystemExit' not in done.stderr
    assert len(bench.runs()) == 1
    assert '"exit_code": 0' in bench.runs()[0].joinpath('run.json').read_text()


def test_the_command_gets_pythonpath_as_the_user_wrote_it(bench: Bench) -> None:
    plant(bench.cwd / 'src')
    done = bench.run(
        sys.executable,
        '-c',
        'import os; print(os.environ["PYTHONPATH"].split(":", 1)[1])',
        env={'PYTHONPATH': 'src::x'},
    )
    assert done.stdout == 'src::x\n'


def test_a_framework_on_pythonpath_still_names_the_service(bench: Bench) -> None:
    bench.cwd.joinpath('src').mkdir()
    bench.cwd.joinpath('src/mine_trainer.py').touch()
    folder = bench.cwd / 'src' / 'mine_rules-1.0.dist-info'
    folder.mkdir()
    folder.joinpath('METADATA').write_text('Metadata-Version: 2.1\nName: mine_rules\nVersion: 1.0\n')
    folder.joinpath('entry_points.txt').write_text('[lens_auto.rules]\nmine = mine_rules\n')
    bench.cwd.joinpath('src/mine_rules').mkdir()
    bench.cwd.joinpath('src/mine_rules/__init__.py').touch()
    bench.cwd.joinpath('src/mine_rules/mine.yaml').write_text(RULES)
    done = bench.run('--info', env={'PYTHONPATH': str(bench.cwd / 'src')})
    assert 'mine_rules/mine.yaml  mine  from entry point mine of mine_rules' in done.stdout, done.stdout + done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines() if 'service_name ' in line] == ['mine']


def test_what_our_own_imports_raise_is_one_line_and_the_command_runs(bench: Bench) -> None:
    planted = 'import lens_auto.launch.plan as m; m.obtain = lambda *a: sys.exit(7)'
    done = bench.run(sys.executable, '-c', 'print("ran"); raise SystemExit(3)', planted=planted)
    assert (done.returncode, done.stdout) == (3, 'ran\n')
    assert done.stderr.startswith('lens-instrument: the command runs without being recorded: SystemExit')
    assert len(done.stderr.splitlines()) == 1


def test_site_packages_named_in_pythonpath_stay_ours(bench: Bench) -> None:
    import yaml

    bench.cwd.joinpath('lens.yaml').write_text(RULES)
    done = bench.run('true', env={'PYTHONPATH': os.path.dirname(os.path.dirname(yaml.__file__))})
    assert (done.returncode, len(bench.runs())) == (0, 1), done.stderr
