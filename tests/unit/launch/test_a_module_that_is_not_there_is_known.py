# SPDX-License-Identifier: Apache-2.0
"""A rule's module that nobody imported is for another mode of the program, unless its package has no such module."""

from __future__ import annotations

from pathlib import Path

import pytest

from lens_auto.launch.absent import absent, folders


@pytest.mark.parametrize(
    ('module', 'said'),
    [
        ('tiny', ''),
        ('tiny.actors', ''),
        ('tiny.fast', ''),
        ('tiny.parts.timer', ''),
        ('tiny.actros', 'tiny has no module actros'),
        ('tiny.parts.tim', 'tiny.parts has no module tim'),
        ('tiny.lost.timer', 'tiny has no module lost'),
        ('second.there', ''),
        ('flat', ''),
        ('not_installed.actors', ''),
    ],
)
def test_only_a_package_that_is_there_can_lack_a_module(tmp_path: Path, module: str, said: str) -> None:
    for name in ('a/tiny/__init__.py', 'a/tiny/actors.py', 'a/tiny/fast.cpython-311-x86_64-linux-gnu.so'):
        put(tmp_path / name)
    for name in ('a/tiny/parts/timer.py', 'a/flat.py', 'a/second/here.py', 'b/second/there.py'):
        put(tmp_path / name)
    assert absent(module, [f'{tmp_path}/a', f'{tmp_path}/none', f'{tmp_path}/b']) == said


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_the_scripts_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / 'examples/run.py')
    monkeypatch.chdir(tmp_path)
    assert folders(['python', 'examples/run.py'])[:2] == [f'{tmp_path}/examples', f'{tmp_path}']
