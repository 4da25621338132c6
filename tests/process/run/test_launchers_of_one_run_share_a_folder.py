# SPDX-License-Identifier: Apache-2.0
"""A launcher for each rank, a launcher inside a launcher, and the folder a run gets."""

from __future__ import annotations

import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.helpers.run import LENS, Done, Place
from tests.helpers.small_trainer import FILES

# Ranks wait for each other once, as a collective makes them: no launcher ends before all have joined.
RANK = """\
import os, pathlib, sys, time
import trainer
rank, world = os.environ['RANK'], int(os.environ['WORLD_SIZE'])
here = pathlib.Path('met'); here.mkdir(exist_ok=True)
(here / rank).touch()
while len(list(here.iterdir())) < world:
    time.sleep(0.01)
trainer.fit(trainer.Config(), 2)
"""


def as_ranks(place: Place, world: int, *flags: str, env: dict[str, str] | None = None) -> list[Done]:
    """The same command once a rank, as torchrun or srun start it."""
    place.write({'rank.py': RANK})

    def one(rank: int) -> Done:
        own = {'RANK': str(rank), 'LOCAL_RANK': str(rank), 'WORLD_SIZE': str(world)}
        own |= {'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '29511'} | (env or {})
        return place.lens(*flags, 'python', 'rank.py', env=own)

    with ThreadPoolExecutor(world) as pool:
        return list(pool.map(one, range(world)))


@pytest.mark.parametrize('env', [{'LENS_RUN_KEY': 'mine'}, {}], ids=['LENS_RUN_KEY', 'MASTER_ADDR and port'])
def test_four_ranks_are_one_run(place: Place, env: dict[str, str]):
    done = as_ranks(place, 4, env=env)

    assert [one.code for one in done] == [0] * 4
    run = place.run
    assert len(run.named('lens.run')) == 1
    assert len(run.named('job')) == 4
    assert len({span.id for span in run.spans}) == len(run.spans) == 1 + 4 * (1 + 2 * 4)
    assert sorted(span.resource['dl.rank'] for span in run.named('job')) == [0, 1, 2, 3]
    assert {span.resource['dl.world_size'] for span in run.named('job')} == {4}
    root = run.only('lens.run')
    assert {(span.trace, span.parent) for span in run.named('job')} == {(root.trace, root.id)}
    assert len(list(run.path.glob('traces-*.jsonl'))) == 4
    summaries = [one.stderr for one in done if 'lens-auto  run' in one.stderr]
    assert len(summaries) == 1, 'the last one draws the summary'
    assert '36 spans from 4 of 4 processes' in summaries[0]
    assert sum('the last launcher of the run draws the summary' in one.stderr for one in done) == 3
    facts = run.facts
    assert (facts['complete'], len(facts['processes'])) == (True, 4)


def test_two_runs_of_the_same_address_one_after_the_other_are_two(place: Place):
    for _ in range(2):
        as_ranks(place, 2)
        for path in (place.cwd / 'met').iterdir():
            path.unlink()

    assert [len(run.named('job')) for run in place.runs] == [2, 2]
    assert len({run.facts['trace_id'] for run in place.runs}) == 2


def test_a_requeued_job_repeats_its_id_and_gets_a_folder_of_its_own(place: Place):
    for restart in ('0', '1'):
        place.record('python', 'train.py', env={'SLURM_JOB_ID': '77', 'SLURM_RESTART_COUNT': restart})

    assert [run.path.name for run in place.runs] == ['77', '77.1']
    assert [run.only('lens.run').attributes['lens.run.attempt'] for run in place.runs] == [0, 1]


def test_a_launcher_inside_a_launcher_changes_nothing(place: Place):
    show = 'import os, trainer; trainer.fit(trainer.Config(), 1); print(os.environ["PYTHONPATH"])'
    nested = [word for _ in range(3) for word in (LENS, '--no-summary', 'env')]

    once = place.lens('--no-summary', 'python', '-c', show, env={'PYTHONPATH': '/a:/b'})
    deep = place.lens('--no-summary', *nested, 'python', '-c', show, env={'PYTHONPATH': '/a:/b'})

    assert deep.stdout == once.stdout
    path = once.stdout.splitlines()[-1].split(':')
    assert path[1:] == ['/a', '/b']
    assert Path(path[0], 'sitecustomize.py').is_file()
    assert len(place.runs) == 2
    assert [len(run.named('job')) for run in place.runs] == [1, 1]


def test_an_inner_launcher_says_that_its_options_are_ignored(place: Place):
    done = place.lens('--no-summary', LENS, '--span-groups', 'reward', 'python', 'train.py', '1')

    assert 'already: its settings hold, the ones given here are ignored' in done.stderr
    assert 'step' in place.run.names()


def test_run_dir_is_the_folder_itself_and_another_runs_is_refused(place: Place):
    assert place.lens('--run-dir', 'out/mine', 'python', 'train.py').code == 0
    folder = place.cwd / 'out' / 'mine'
    before = sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir())

    again = place.lens('--run-dir', 'out/mine', 'python', 'train.py')

    assert (again.code, again.stdout) == (2, '')
    assert 'belongs to another run' in again.stderr and '--replay' in again.stderr
    assert sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir()) == before
    assert place.runs == []
    (place.cwd / 'full').mkdir()
    (place.cwd / 'full' / 'thesis.tex').touch()
    other = place.lens('--run-dir', 'full', 'python', 'train.py')
    assert (other.code, other.stdout) == (2, '')
    assert 'is not empty and not the folder of a run' in other.stderr


def test_ranks_share_the_folder_that_run_dir_names(place: Place):
    done = as_ranks(place, 3, '--run-dir', 'shared')

    assert [one.code for one in done] == [0, 0, 0], [one.stderr for one in done]
    assert len(list((place.cwd / 'shared').glob('traces-*.jsonl'))) == 3


def test_where_the_working_directory_cannot_be_written_it_says_where_it_goes(place: Place):
    """A file in the way of `lens-runs` stops root too, which a mode does not."""
    place.write({'lens-runs': 'a file'})

    done = place.lens('python', 'train.py')

    assert (done.code, done.stdout) == (0, place.plain('python', 'train.py').stdout)
    found = re.search(r'the run folder is under (\S+):', done.stderr)
    assert found and Path(found[1]).is_dir()
    [folder] = [path for path in Path(found[1]).iterdir() if path.is_dir()]
    assert list(folder.glob('traces-*.jsonl'))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(not os.path.exists('/proc/version'), reason='needs /proc')
def test_a_working_directory_that_refuses_is_as_good(place: Place):
    done = place.plain('bash', '-c', f'cd /proc && exec {LENS} --no-summary python "{place.cwd}/train.py"')

    assert done.code == 0, done.stderr
    assert done.stdout == place.plain('python', 'train.py').stdout
    assert 'the run folder is under' in done.stderr


@pytest.mark.parametrize(
    'name',
    ['plain', 'two words', 'ends with space ', 'trailing.', 'sitecustomize', 'ünï', '#hash', "quote's", 'a=b', '-x'],
)
def test_working_directories_of_any_name_work(tmp_path: Path, name: str):
    place = Place(tmp_path, name).write(FILES)
    show = 'import os, trainer; trainer.fit(trainer.Config(), 1); print(os.environ["PYTHONPATH"], os.getcwd())'

    done = place.lens('--no-summary', 'python', '-c', show, env={'PYTHONPATH': str(place.cwd)})

    assert done.code == 0, done.stderr
    assert f':{place.cwd} {place.cwd}' in done.stdout
    assert len(place.run.named('job')) == 1


@pytest.mark.parametrize('given', [':/a', '/a:', '/a::/b', ':', ' /a ', '/a/:/b//', '.'])
def test_the_users_python_path_keeps_every_entry_as_it_is(place: Place, given: str):
    """Empty entries mean the working directory: they stay where they are, and none comes from us."""
    done = place.lens(
        '--no-summary', 'python', '-c', 'import os; print(os.environ["PYTHONPATH"])', env={'PYTHONPATH': given}
    )

    assert done.stdout.partition(':')[2] == given + '\n'
