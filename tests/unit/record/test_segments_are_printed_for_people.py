# SPDX-License-Identifier: Apache-2.0
"""`python -m lens_auto.record FILE`."""

from __future__ import annotations

from pathlib import Path

import pytest

from lens_auto.record.__main__ import main


@pytest.mark.parametrize('content', [b'root:x:0:0:root:/root:/bin/sh\n', b'', b'\x08\0\0\0notours!'])
def test_a_file_that_is_no_journal_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / 'passwd'
    path.write_bytes(content)
    assert main([str(path)]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ('', f'lens_auto.record: {path}: not a journal segment\n')


def test_a_segment_without_records_yet_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / 'host-1-2-0.jnl'
    path.write_bytes(bytes(4096))
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == f'# {path}\n'
