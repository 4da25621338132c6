# SPDX-License-Identifier: Apache-2.0
"""Journals go to a private folder on a local disk: never to memory, never over a network, unless the user says so."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lens_auto.collect import mounts, spool
from lens_auto.collect.folder import open_run
from lens_auto.collect.run import RunError

TABLE = """\
22 1 253:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:26 / /dev/shm rw,nosuid shared:5 - tmpfs tmpfs rw
31 22 0:27 / /tmp rw - tmpfs tmpfs rw
35 22 0:40 / /home rw shared:9 - nfs4 server:/home rw
36 35 253:2 / /home/local\\040disk rw - xfs /dev/vdb rw
37 22 0:41 / /mnt/store rw - fuse.sshfs host:/ rw
38 22 0:42 / /lustre rw - lustre mgs@tcp:/fs rw
39 22 0:43 / /var/tmp rw - ext4 /dev/vdc rw
40 39 0:44 / /var/tmp rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ('path', 'kind'),
    [
        ('/', mounts.DISK),
        ('/homework', mounts.DISK),
        ('/home/me/run', mounts.NETWORK),
        ('/home/local disk/run', mounts.DISK),
        ('/mnt/store/x', mounts.NETWORK),
        ('/lustre/team', mounts.NETWORK),
        ('/dev/shm/x', mounts.RAM),
        ('/tmp/not/there/yet', mounts.RAM),
        ('/var/tmp/x', mounts.RAM),  # the later mount hides the earlier one
    ],
)
def test_the_mount_table_tells_what_a_path_lies_on(tmp_path: Path, path: str, kind: str) -> None:
    table = tmp_path / 'mountinfo'
    table.write_text(TABLE)
    assert mounts.kind_of(path, str(table)) == kind


def test_a_machine_without_a_mount_table_counts_as_a_disk(tmp_path: Path) -> None:
    assert mounts.kind_of('/', str(tmp_path / 'missing')) == mounts.DISK


def kinds(monkeypatch: pytest.MonkeyPatch, table: dict[str, str]) -> None:
    def kind_of(path: str) -> str:
        return next((kind for prefix, kind in table.items() if path.startswith(prefix)), mounts.DISK)

    monkeypatch.setattr(mounts, 'kind_of', kind_of)


def test_a_spool_is_private_and_named_in_the_run_folder(tmp_path: Path) -> None:
    environ = {'TMPDIR': str(tmp_path)}
    run, folder = open_run(environ, str(tmp_path))
    chosen = spool.choose(environ, run, folder)
    assert os.path.dirname(os.path.dirname(chosen.path)) == str(tmp_path)
    for path in (chosen.path, os.path.dirname(chosen.path)):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    assert [(path, alive) for _, path, alive in folder.launchers()] == [(chosen.path, True)]
    folder.unregister()
    assert folder.launchers() == [] and not Path(folder.path, 'launchers').exists()


def test_memory_and_networks_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {'TMPDIR': str(tmp_path / 'ram')}
    run, folder = open_run(environ, str(tmp_path))
    bad = {environ['TMPDIR']: mounts.RAM, '/tmp': mounts.NETWORK, '/var/tmp': mounts.RAM}
    kinds(monkeypatch, {folder.path: mounts.DISK, **bad})
    assert os.path.dirname(spool.choose(environ, run, folder).path) == folder.path


def test_what_the_user_asks_for_is_taken_whatever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {'LENS_SPOOL': str(tmp_path / 'asked')}
    run, folder = open_run(environ, str(tmp_path))
    kinds(monkeypatch, {environ['LENS_SPOOL']: mounts.RAM})
    assert os.path.dirname(spool.choose(environ, run, folder).path) == environ['LENS_SPOOL']


def test_a_spool_that_cannot_be_made_is_the_users_to_know(tmp_path: Path) -> None:
    (tmp_path / 'file').touch()
    environ = {'LENS_SPOOL': str(tmp_path / 'file')}
    run, folder = open_run({}, str(tmp_path))
    with pytest.raises(RunError, match='LENS_SPOOL='):
        spool.choose(environ, run, folder)


def test_a_temporary_folder_of_the_job_is_avoided_when_the_run_folder_is_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {'SLURM_JOB_ID': '41', 'TMPDIR': str(tmp_path / 'job.41')}
    os.mkdir(environ['TMPDIR'])
    run, folder = open_run(environ, str(tmp_path))
    assert os.path.dirname(spool.choose(environ, run, folder).path) == folder.path
    kinds(monkeypatch, {folder.path: mounts.NETWORK})
    chosen = spool.choose(environ, run, folder)
    assert chosen.path.startswith(environ['TMPDIR']) and 'SLURM wipes' in chosen.note


@pytest.mark.parametrize('trap', ['link', 'open to others'])
def test_a_folder_that_others_could_reach_is_not_used(tmp_path: Path, trap: str) -> None:
    base = tmp_path / f'lens-{os.geteuid()}'
    if trap == 'link':
        (tmp_path / 'elsewhere').mkdir(0o700)
        base.symlink_to(tmp_path / 'elsewhere')
    else:
        base.mkdir()
        base.chmod(0o777)
    environ = {'TMPDIR': str(tmp_path)}
    run, folder = open_run(environ, str(tmp_path))
    chosen = spool.choose(environ, run, folder)
    assert not chosen.path.startswith(str(base) + '/')
    assert not (tmp_path / 'elsewhere').exists() or not os.listdir(tmp_path / 'elsewhere')
