# SPDX-License-Identifier: Apache-2.0
"""One run, one folder: made whole, joined by the launchers of the run, refused to everybody else."""

from __future__ import annotations

import multiprocessing
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lens_auto.collect import folder as module
from lens_auto.collect.folder import open_run
from lens_auto.collect.run import RunError, identify
from lens_auto.collect.spool import choose

RANKS = {'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '29500', 'WORLD_SIZE': '2'}


def test_a_folder_is_private_and_hidden_from_git_and_ray(tmp_path: Path) -> None:
    run, folder = open_run({'LENS_RUN_ID': 'night shift/7'}, str(tmp_path))
    path = Path(folder.path)
    assert path == tmp_path / 'lens-runs' / 'night_shift_7'
    assert run.run_id == 'night shift/7'
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for place in (path, path.parent):
        assert (place / '.gitignore').read_text() == (place / '.rayignore').read_text() == '*\n'
    assert folder.created and not folder.note


def test_git_sees_nothing_of_a_run(tmp_path: Path) -> None:
    subprocess.run(['git', 'init', '-q', str(tmp_path)], check=True)
    open_run({}, str(tmp_path))
    done = subprocess.run(['git', 'status', '--porcelain'], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == ''


def test_a_repeated_run_id_gets_a_folder_and_a_trace_of_its_own(tmp_path: Path) -> None:
    first, one = open_run({'SLURM_JOB_ID': '41'}, str(tmp_path))
    second, two = open_run({'SLURM_JOB_ID': '41'}, str(tmp_path))
    assert first.run_id == second.run_id == '41'
    assert (os.path.basename(one.path), os.path.basename(two.path)) == ('41', '41.1')
    assert first.trace_id != second.trace_id


@pytest.mark.parametrize(
    ('environ', 'expected'),
    [
        ({'LENS_RUN_ID': 'a', 'NEMO_RL_OTEL_RUN_ID': 'b', 'SLURM_JOB_ID': 'c'}, 'a'),
        ({'NEMO_RL_OTEL_RUN_ID': 'b', 'NEMO_LENS_RUN_ID': 'd', 'SLURM_JOB_ID': 'c'}, 'b'),
        ({'NEMO_GYM_OTEL_RUN_ID': 'g', 'SLURM_JOB_ID': 'c'}, 'g'),
        ({'NEMO_LENS_RUN_ID': 'd', 'SLURM_JOB_ID': 'c'}, 'd'),
        ({'SLURM_JOB_ID': 'c'}, 'c'),
    ],
)
def test_the_strongest_name_gives_the_run_id(environ: dict[str, str], expected: str) -> None:
    assert identify(environ).run_id == expected


def test_a_nameless_run_gets_twelve_hex_digits() -> None:
    run_id = identify({}).run_id
    assert len(run_id) == 12 and int(run_id, 16) >= 0


def open_and_register(arguments: tuple[dict[str, str], str, str | None]) -> tuple[str, bool, str, str]:
    environ, cwd, run_dir = arguments
    run, folder = open_run(environ, cwd, run_dir)
    choose({**environ, 'TMPDIR': cwd}, run, folder)
    return folder.path, folder.created, run.run_key, run.root


@pytest.mark.parametrize('run_dir', [None, 'here'])
@pytest.mark.parametrize(
    'environ',
    [
        {'LENS_RUN_KEY': 'tuesday'},
        {'SLURM_JOB_ID': '41', 'SLURM_STEP_ID': '0', 'SLURM_NTASKS': '8'},
        {'TORCHELASTIC_RUN_ID': '5b1c', 'TORCHELASTIC_RESTART_COUNT': '0', **RANKS},
        {'TORCHELASTIC_RUN_ID': 'none', 'TORCHELASTIC_RESTART_COUNT': '0', **RANKS},
        RANKS,
    ],
)
def test_launchers_of_one_run_share_a_folder(tmp_path: Path, environ: dict[str, str], run_dir: str | None) -> None:
    # Processes that all live until all have joined, as ranks do.
    with multiprocessing.get_context('spawn').Pool(4) as pool:
        asked = [({**environ, 'RANK': str(rank)}, str(tmp_path), run_dir) for rank in range(8)]
        joined = pool.map(open_and_register, asked, chunksize=1)
    assert len({path for path, _, _, _ in joined}) == 1
    assert sum(created for _, created, _, _ in joined) == 1
    assert len({(key, root) for _, _, key, root in joined}) == 1


def test_a_restart_is_another_run(tmp_path: Path) -> None:
    keys = [
        open_run({'TORCHELASTIC_RUN_ID': '5b', 'TORCHELASTIC_RESTART_COUNT': count}, str(tmp_path))[0].run_key
        for count in '01'
    ]
    assert keys[0] != keys[1]


def test_commands_of_one_batch_script_are_runs_of_their_own(tmp_path: Path) -> None:
    batch = {'SLURM_JOB_ID': '41', 'SLURM_NTASKS': '8'}
    assert open_run(batch, str(tmp_path))[1].path != open_run(batch, str(tmp_path))[1].path


def test_the_next_run_on_the_same_port_does_not_join_the_last_one(tmp_path: Path) -> None:
    code = f'import sys; from lens_auto.collect.folder import open_run; print(open_run({RANKS!r}, sys.argv[1])[1].path)'
    paths = [
        subprocess.run(
            [sys.executable, '-c', code, str(tmp_path)], cwd=Path.cwd(), capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert paths[0] != paths[1]


def test_the_folder_named_by_the_user_is_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / 'mine').mkdir()
    _, folder = open_run({}, str(tmp_path), 'mine')
    assert folder.path == str(tmp_path / 'mine')
    assert not (tmp_path / 'lens-runs').exists()


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    open_run({'LENS_RUN_ID': 'first'}, str(tmp_path), 'mine')
    with pytest.raises(RunError, match=r'belongs to another run \(id first\)\n.*--run-dir'):
        open_run({'LENS_RUN_ID': 'first'}, str(tmp_path), 'mine')


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'results').mkdir()
    (tmp_path / 'results' / 'model.pt').touch()
    with pytest.raises(RunError, match='is not empty and not the folder of a run'):
        open_run({}, str(tmp_path), 'results')
    assert os.listdir(tmp_path / 'results') == ['model.pt']


def test_an_unwritable_working_directory_falls_back_and_says_so(tmp_path: Path) -> None:
    (tmp_path / 'cwd').mkdir()
    (tmp_path / 'cwd' / 'lens-runs').write_text('a file where the folder should be')
    (tmp_path / 'tmp').mkdir()
    _, folder = open_run({'TMPDIR': str(tmp_path / 'tmp')}, str(tmp_path / 'cwd'))
    assert os.path.dirname(folder.path) == str(tmp_path / 'tmp' / 'lens-runs')
    assert str(tmp_path / 'tmp') in folder.note and 'cwd/lens-runs' in folder.note


def test_a_network_working_directory_falls_back_to_a_place_slurm_does_not_wipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = str(tmp_path / 'home')
    monkeypatch.setattr(
        module.mounts, 'kind_of', lambda path: 'network file system' if path.startswith(network) else 'disk'
    )
    environ = {'SLURM_JOB_ID': '41', 'TMPDIR': str(tmp_path / 'job.41'), 'XDG_CACHE_HOME': str(tmp_path / 'cache')}
    for path in (network, environ['TMPDIR']):
        os.mkdir(path)
    _, folder = open_run(environ, network)
    assert folder.path == str(tmp_path / 'cache' / 'lens-auto' / 'lens-runs' / '41')
    assert 'network file system' in folder.note
