# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lens_auto.launch.command import CommandError, as_script, find


@pytest.fixture
def bin_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders `a` and `b`, an empty working directory beside them."""
    for name in ('a', 'b', 'cwd'):
        tmp_path.joinpath(name).mkdir()
    monkeypatch.chdir(tmp_path / 'cwd')
    return tmp_path


def put(path: Path, text: str = '#!/bin/sh\n', mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def path_of(*folders: Path | str) -> dict[str, str]:
    return {'PATH': ':'.join(str(folder) for folder in folders)}


def test_the_first_executable_in_path_wins_and_folders_and_plain_files_are_passed_over(bin_folders: Path) -> None:
    first, second = bin_folders / 'a', bin_folders / 'b'
    first.joinpath('tool').mkdir()
    expected = put(second / 'tool')
    assert find('tool', path_of(first, second)) == str(expected)

    first.joinpath('tool').rmdir()
    put(first / 'tool', mode=0o644)
    assert find('tool', path_of(first, second)) == str(expected)


def test_the_working_directory_counts_only_where_path_names_it(bin_folders: Path) -> None:
    put(bin_folders / 'cwd' / 'tool')
    with pytest.raises(CommandError, match='tool: command not found'):
        find('tool', path_of(bin_folders / 'a'))
    assert find('tool', path_of(bin_folders / 'a', '.')) == './tool'
    assert find('tool', path_of('', bin_folders / 'a')) == './tool'


@pytest.mark.parametrize(
    ('command', 'message', 'code'),
    [
        ('absent', 'absent: command not found', 127),
        ('', ': command not found', 127),
        ('./absent', './absent: No such file or directory', 127),
        ('./file/x', './file/x: Not a directory', 126),
        ('./folder', './folder: Is a directory', 126),
        ('folder', 'folder: command not found', 127),
        ('./file', './file: Permission denied', 126),
        ('file', 'file: Permission denied', 126),
    ],
)
def test_what_cannot_be_run_is_said_in_the_shells_words_and_codes(
    bin_folders: Path, command: str, message: str, code: int
) -> None:
    here = bin_folders / 'cwd'
    put(here / 'file', mode=0o644)
    here.joinpath('folder').mkdir()
    environ = path_of(bin_folders / 'a', here)

    with pytest.raises(CommandError) as raised:
        find(command, environ)
    assert (str(raised.value), raised.value.code) == (message, code)

    shell = subprocess.run(['/bin/bash', '-c', '"$0"', command], env=environ, capture_output=True, text=True)
    assert shell.returncode == code
    assert shell.stderr.rstrip().endswith(message)


def test_a_script_without_a_first_line_goes_to_sh_and_a_foreign_binary_is_refused(bin_folders: Path) -> None:
    script = put(bin_folders / 'a' / 'script', 'echo "$0" "$@"\n')
    arguments = as_script('script', str(script), ['x y', 'z'])
    assert subprocess.check_output(arguments, text=True) == f'{script} x y z\n'

    script.write_bytes(b'\x7fELF\x00\x00')
    with pytest.raises(CommandError) as raised:
        as_script('script', str(script), [])
    assert (str(raised.value), raised.value.code) == ('script: cannot execute binary file: Exec format error', 126)


def test_without_path_the_systems_own_is_searched() -> None:
    assert os.path.basename(find('sh', {})) == 'sh'
