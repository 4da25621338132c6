# SPDX-License-Identifier: Apache-2.0
"""The journal as its process sees it: order, segments, want of room, and what is said about losses."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lens_auto.record import journal as journals
from lens_auto.record.format import ANCHOR, DROPPED, HEADER, RESOURCE
from lens_auto.record.journal import FIRST_SEGMENT, Journal
from lens_auto.record.reader import read, segments

Open = Callable[..., Journal]


def stored(spool: Path) -> list[int]:
    return [r[2]['n'] for path in segments(str(spool)) for r, _ in read(path) if r[0] == RESOURCE]


def losses(spool: Path) -> list[int]:
    records = [r for path in segments(str(spool)) for r, _ in read(path)]
    return [r[3]['records'] for r in records if r[2:3] == (DROPPED,)]


def put(journal: Journal, first: int, last: int) -> None:
    for n in range(first, last):
        journal.put((RESOURCE, n, {'n': n, 'text': 'x' * (n % 200)}))


class Disk:
    """A disk that can be full: `posix_fallocate` fails while it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self.time = 0
        self._allocate = os.posix_fallocate
        monkeypatch.setattr(os, 'posix_fallocate', self.allocate)
        monkeypatch.setattr(journals, 'monotonic_ns', lambda: self.time)

    def allocate(self, fd: int, offset: int, length: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, 'no space left')
        self._allocate(fd, offset, length)


def test_nothing_lies_in_the_spool_before_the_first_record(spool: Path, open_journal: Open) -> None:
    open_journal()
    assert os.listdir(spool) == []


def test_records_come_back_in_order_over_many_segments_of_private_files(spool: Path, open_journal: Open) -> None:
    put(open_journal(), 0, 30_000)
    assert stored(spool) == list(range(30_000))
    files = segments(str(spool))
    assert len(files) > 3
    assert {os.stat(path).st_mode & 0o777 for path in files} == {0o600}
    for number, path in enumerate(files):
        first, second = [record for record, _ in read(path)][:2]
        assert (first[0], first[8], second[0]) == (HEADER, number, ANCHOR)


def test_a_full_disk_keeps_records_waiting_and_loses_none_when_it_is_free_again(
    spool: Path, open_journal: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    journal = open_journal()
    put(journal, 0, 100)
    disk.full = True
    put(journal, 100, 5000)
    assert stored(spool) == list(range(len(stored(spool)))) and len(stored(spool)) < 1000
    # What would be lost if the process were killed now is said in the room kept for it.
    assert losses(spool) and losses(spool)[-1] >= 1
    disk.full = False
    disk.time += 10**12
    put(journal, 5000, 5001)
    assert stored(spool) == list(range(5001))


def test_what_finds_no_place_to_wait_is_counted(
    spool: Path, open_journal: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    monkeypatch.setattr(journals, 'WAITING', 50)
    journal = open_journal()
    put(journal, 0, 100)
    disk.full = True
    put(journal, 100, 5000)
    journal.flush()
    assert len(stored(spool)) + losses(spool)[-1] == 5000
    disk.full = False
    journal.flush()
    assert len(stored(spool)) + losses(spool)[-1] == 5000
    assert losses(spool)[-1] == journal.dropped


def test_the_disk_is_not_asked_again_at_every_record(
    spool: Path, open_journal: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    journal = open_journal()
    put(journal, 0, 1)
    asked: list[int] = []
    monkeypatch.setattr(os, 'statvfs', lambda path: asked.append(1) or _no_room())
    put(journal, 1, 3000)
    assert len(asked) == 1
    disk.time += 10**12
    put(journal, 3000, 3001)
    assert len(asked) == 2


def _no_room() -> None:
    raise OSError(errno.ENOSPC, 'no space left')


def test_a_spool_over_its_limit_takes_no_more_segments(spool: Path, open_journal: Open) -> None:
    (spool / 'other-1-1-0.jnl').write_bytes(bytes(FIRST_SEGMENT))
    journal = open_journal(limit=2 * FIRST_SEGMENT)
    put(journal, 0, 3000)
    journal.flush()
    assert 100 < len(stored(spool)) < 3000
    assert len(stored(spool)) + losses(spool)[-1] == 3000
    assert sum(os.stat(path).st_size for path in segments(str(spool))) <= 2 * FIRST_SEGMENT


def test_a_spool_that_is_not_there_costs_no_exception(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / 'nowhere'), dict)
    put(journal, 0, 20_000)
    journal.flush()
    assert journal.dropped == 20_000 - journals.WAITING


def test_a_record_too_long_for_any_segment_is_counted_and_the_others_are_kept(spool: Path, open_journal: Open) -> None:
    journal = open_journal()
    for n in range(3):
        journal.put((RESOURCE, n, {'n': n}))
        journal.put((RESOURCE, n, {'n': -1, 'text': 'x' * 2_000_000}))
        journal.put((RESOURCE, n, {'n': 10 + n, 'text': 'x' * 60_000}))
    assert stored(spool) == [0, 10, 1, 11, 2, 12]
    assert journal.dropped == 3


def test_a_file_of_that_name_is_stepped_over(spool: Path, open_journal: Open) -> None:
    """What the process was before it called exec has left segments with the same pid and start time."""
    put(open_journal(), 0, 10)
    put(open_journal(), 10, 20)
    assert stored(spool) == list(range(20))
    assert len(segments(str(spool))) == 2


def test_a_link_planted_in_the_spool_is_not_followed(spool: Path, open_journal: Open, tmp_path: Path) -> None:
    put(open_journal(), 0, 1)
    (name,) = os.listdir(spool)
    os.unlink(spool / name)
    target = tmp_path / 'target'
    target.write_text('precious')
    os.symlink(target, spool / name)
    put(open_journal(), 1, 2)
    assert target.read_text() == 'precious'


def test_a_child_starts_a_segment_of_its_own(spool: Path, open_journal: Open) -> None:
    journal = open_journal()
    put(journal, 0, 10)
    journal.hold()
    put(journal, 10, 20)  # between the start of a fork and its end
    assert stored(spool) == list(range(10))
    journal.go_on()
    assert stored(spool) == list(range(20))
    journal.hold()
    put(journal, 90, 95)
    journal.forget()
    put(journal, 20, 30)
    assert stored(spool) == list(range(30))
    assert len(segments(str(spool))) == 2
