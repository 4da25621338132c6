# SPDX-License-Identifier: Apache-2.0
"""Torn, damaged, foreign and hostile files: the records before the damage, or a refusal that says why."""

from __future__ import annotations

import marshal
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lens_auto.record.format import FIELDS, FORMAT, HEADER, RESOURCE
from lens_auto.record.journal import Journal
from lens_auto.record.reader import ForeignSegment, identity, read, segments

Open = Callable[..., Journal]
BOUNDED = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def segment(spool: Path, open_journal: Open) -> Path:
    journal = open_journal()
    for n in range(20):
        journal.put((RESOURCE, n, {'n': n, 'text': 'x' * n}))
    (path,) = segments(str(spool))
    return Path(path)


def frame(value: Any) -> bytes:
    body = marshal.dumps(value, 2)
    return struct.pack('<I', len(body)) + body


HEAD = frame((HEADER, FORMAT, {}, 0, 0, '', 1, 1, 0, {}))


def test_a_segment_cut_anywhere_reads_up_to_the_last_whole_record(segment: Path) -> None:
    data = segment.read_bytes()
    records = read(str(segment))
    for cut in range(0, records[-1][1] + 8):
        segment.write_bytes(data[:cut])
        assert [r for r, _ in read(str(segment))] == [r for r, end in records if end <= cut]


def test_a_record_whose_length_is_not_there_yet_is_the_end(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    records = read(str(segment))
    data[records[10][1] : records[10][1] + 4] = bytes(4)
    segment.write_bytes(data)
    assert read(str(segment)) == records[:11]


def test_reading_goes_on_where_it_stopped(segment: Path) -> None:
    records = read(str(segment))
    offset = records[4][1]
    assert read(str(segment), offset) == records[5:]
    assert read(str(segment), records[-1][1]) == []


@BOUNDED
@given(st.binary(max_size=300))
def test_any_bytes_after_a_header_end_the_segment(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / 'host-1-1-0.jnl'
    path.write_bytes(HEAD + garbage)
    found = [record for record, _ in read(str(path))]
    assert found[0][0] == HEADER
    assert all(len(record) == FIELDS[record[0]] for record in found if record[:2] != (HEADER, FORMAT))


@BOUNDED
@given(st.integers(0, 2**32 - 1), st.sampled_from(b'([{}<>ulyligsztTaAcR\xa8\xdb\xfb\xe3'), st.binary(max_size=60))
def test_any_frame_is_a_record_or_the_end(tmp_path: Path, length: int, kind: int, rest: bytes) -> None:
    """Lengths that promise gigabytes, code objects, references to nowhere: whatever marshal may raise."""
    path = tmp_path / 'host-1-1-0.jnl'
    for stated in (length, 1 + len(rest)):
        path.write_bytes(HEAD + struct.pack('<I', stated) + bytes([kind]) + rest)
        assert [record for record, _ in read(str(path))][1:] == []


@BOUNDED
@given(st.recursive(st.none() | st.integers() | st.text() | st.floats(), lambda inner: st.lists(inner).map(tuple)))
def test_a_tuple_without_the_fields_of_its_kind_is_the_end(tmp_path: Path, value: object) -> None:
    path = tmp_path / 'host-1-1-0.jnl'
    path.write_bytes(HEAD + frame(value))
    if isinstance(value, tuple) and len(value) > 1 and type(value[0]) is int:
        if value[0] == HEADER or len(value) == FIELDS.get(value[0]):
            return
    assert len(read(str(path))) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can give a file away')
def test_a_file_of_another_user_is_refused(segment: Path) -> None:
    os.chown(segment, 12345, -1)
    with pytest.raises(ForeignSegment, match='owned by uid 12345'):
        read(str(segment))


@pytest.mark.parametrize('other', [1, FORMAT + 1])
def test_another_format_is_refused_by_number(other: int, segment: Path) -> None:
    segment.write_bytes(frame((HEADER, other, {}, 'of another shape')))
    with pytest.raises(ForeignSegment, match=f'journal format {other}, this reader knows {FORMAT}'):
        read(str(segment))


def test_what_has_no_header_is_refused(segment: Path) -> None:
    segment.write_bytes(frame((RESOURCE, 1, {})))
    with pytest.raises(ForeignSegment, match='no header'):
        read(str(segment))


def test_links_and_pipes_are_not_opened(segment: Path) -> None:
    link = segment.with_name('host-1-1-1.jnl')
    link.symlink_to(segment)
    with pytest.raises(OSError):
        read(str(link))
    pipe = segment.with_name('host-1-1-2.jnl')
    os.mkfifo(pipe)
    with pytest.raises(ForeignSegment, match='not a file'):
        read(str(pipe))


def test_names_say_which_process_and_sort_by_number(tmp_path: Path) -> None:
    for number in (10, 9, 0):
        (tmp_path / f'node.a-7-99-{number}.jnl').touch()
    (tmp_path / 'processes.tsv').touch()
    assert [identity(os.path.basename(path)) for path in segments(str(tmp_path))] == [
        (('node.a', 7, 99), n) for n in (0, 9, 10)
    ]
    assert [identity(name) for name in ('some.jnl', 'a-b-c-d.jnl', 'processes.tsv')] == [None] * 3


def shown(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, '-m', 'lens_auto.record', *arguments],
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[3],
    )


def test_printed_for_people_a_file_and_a_folder_are_alike(segment: Path) -> None:
    file, folder = shown(str(segment)), shown(str(segment.parent))
    assert file.stdout == folder.stdout and file.returncode == folder.returncode == 0
    lines = file.stdout.splitlines()
    assert lines[0] == f'# {segment}'
    assert lines[1].startswith("header   format=2 resource={'process.command': 'test'}")
    assert lines[-1] == f'resource time=19 attributes={ {"n": 19, "text": "x" * 19} }'


def test_printing_names_what_cannot_be_read_and_goes_on(segment: Path, tmp_path: Path) -> None:
    other = tmp_path / 'other.jnl'
    other.write_bytes(frame((RESOURCE, 1, {})))
    done = shown(str(tmp_path / 'nowhere'), str(other), str(segment))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f'lens_auto.record: {tmp_path / "nowhere"}: No such file or directory',
        f'lens_auto.record: {other}: not a journal segment (no header)',
    ]
    assert 'resource time=19' in done.stdout


def test_printing_into_a_pipe_that_closes_is_no_error(segment: Path) -> None:
    command = f'{sys.executable} -m lens_auto.record {segment} {segment} | true'
    done = subprocess.run(
        ['bash', '-c', command], capture_output=True, text=True, cwd=Path(__file__).resolve().parents[3]
    )
    assert done.stderr == ''
