# SPDX-License-Identifier: Apache-2.0
"""A job may run for weeks; caches are cleaned, and lie on disks of their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lens_auto.collect import spool
from tests.unit.launch.launched import Bench

READ = """
import os, shutil, sys
path, _, digest = os.environ['LENS_PLAN_REF'].partition('#')
shutil.rmtree(os.environ['XDG_CACHE_HOME'])
sys.path[:0] = [os.path.dirname(os.environ['LENS_HOME'])]
from lens_auto.rules.plan import load
print(oct(os.stat(path).st_mode & 0o777), sorted(load(path, digest)))
"""


def test_processes_find_the_plan_after_the_cache_was_cleaned(bench: Bench) -> None:
    done = bench.run('--no-summary', sys.executable, '-S', '-c', READ)
    assert done.stdout == "0o600 ['agent', 'files', 'format', 'rules']\n", done.stderr
    assert not os.listdir(bench.env['LENS_SPOOL'])


def test_without_a_cache_only_the_spool_has_it(bench: Bench, tmp_path: Path) -> None:
    nowhere = tmp_path / 'file'
    nowhere.touch()
    temporary = tmp_path / 'tmp'
    temporary.mkdir()
    env = {'XDG_CACHE_HOME': str(nowhere), 'HOME': str(nowhere), 'TMPDIR': str(temporary)}
    done = bench.run(
        '--no-summary', sys.executable, '-S', '-c', 'import os; print(os.environ["LENS_PLAN_REF"])', env=env
    )
    assert done.stdout.partition('#')[0].endswith('/plan'), done.stderr
    assert not [name for name in os.listdir(temporary) if name.startswith('lens-plan-')]


def test_on_another_disk_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, 'Invalid cross-device link')

    plan = tmp_path / 'x.plan'
    plan.write_bytes(b'the plan')
    monkeypatch.setattr(os, 'link', refuse)
    kept = spool.keep_plan(str(tmp_path), str(plan))
    assert Path(kept).read_bytes() == b'the plan'
    assert os.stat(kept).st_mode & 0o777 == 0o600
