# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from lens_auto.launch import bootstrap


@pytest.fixture
def stage_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stage 1 of one line in a folder of its own, in the place of the installed one."""
    folder = tmp_path / 'installed here'
    folder.mkdir()
    folder.joinpath('sitecustomize.py').write_text('import sys; sys.stage_one = __file__, __cached__\n')
    monkeypatch.setattr(bootstrap, 'source', lambda: str(folder))
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    return folder


def loaded(folder: str) -> tuple[str, bool]:
    """Where a new Python finds stage 1, and whether it took the bytecode as it was (`-v` says so)."""
    done = subprocess.run(
        [sys.executable, '-v', '-c', 'import sys; print(sys.stage_one[0])'],
        env={'PYTHONPATH': folder, 'PYTHONDONTWRITEBYTECODE': '1'},
        capture_output=True,
        text=True,
        check=True,
    )
    path = done.stdout.strip()
    return path, f'{importlib.util.cache_from_source(path)} matches {path}' in done.stderr


def cached(folder: Path | str) -> Path:
    return Path(importlib.util.cache_from_source(f'{folder}/sitecustomize.py'))


def test_missing_or_stale_bytecode_is_written_beside_it(stage_one: Path) -> None:
    assert bootstrap.folder({}) == str(stage_one)
    assert loaded(str(stage_one)) == (f'{stage_one}/sitecustomize.py', True)

    stage_one.joinpath('sitecustomize.py').write_text('import sys; sys.stage_one = __file__, 2\n')
    assert bootstrap.folder({}) == str(stage_one)
    assert loaded(str(stage_one)) == (f'{stage_one}/sitecustomize.py', True)
    assert [path.name for path in cached(stage_one).parent.iterdir()] == [cached(stage_one).name]


def test_bytecode_checked_by_hash_is_left_alone(stage_one: Path) -> None:
    py_compile.compile(
        f'{stage_one}/sitecustomize.py', invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH, doraise=True
    )
    before = cached(stage_one).read_bytes()
    assert bootstrap.folder({}) == str(stage_one)
    assert cached(stage_one).read_bytes() == before


def test_where_bytecode_cannot_be_written_a_private_copy_is_used(stage_one: Path, tmp_path: Path) -> None:
    # Root writes where modes forbid it, so a file stands in the way.
    stage_one.joinpath('__pycache__').write_text('')
    environ = {'XDG_CACHE_HOME': str(tmp_path / 'cache')}

    folder = bootstrap.folder(environ)

    assert folder.startswith(f'{tmp_path}/cache/lens-auto/stage1-')
    assert loaded(folder) == (f'{folder}/sitecustomize.py', True)
    assert oct(os.stat(f'{tmp_path}/cache/lens-auto').st_mode & 0o777) == '0o700'
    assert bootstrap.folder(environ) == folder


def test_a_folder_with_a_colon_in_its_name_is_never_put_on_the_path(
    stage_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = stage_one.rename(tmp_path / 'a:b')
    monkeypatch.setattr(bootstrap, 'source', lambda: str(odd))
    folder = bootstrap.folder({'XDG_CACHE_HOME': str(tmp_path / 'cache')})
    assert ':' not in folder
    assert loaded(folder) == (f'{folder}/sitecustomize.py', True)


def test_a_cache_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / 'cache'
    base.joinpath('lens-auto').mkdir(parents=True)
    monkeypatch.setattr(os, 'getuid', lambda: os.stat(base).st_uid + 1)
    with pytest.raises(bootstrap.NoBootstrap):
        bootstrap.cache_folder({'XDG_CACHE_HOME': str(base), 'TMPDIR': str(tmp_path)})
