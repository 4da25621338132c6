# SPDX-License-Identifier: Apache-2.0
"""Follows the segments of one process's journal, from one to the next, a piece at a time."""

from __future__ import annotations

import marshal
import os
from typing import Any

from lens_auto.record.format import SUFFIX
from lens_auto.record.reader import LONGEST, ForeignSegment

Record = tuple[Any, ...]
Identity = tuple[str, int, int]  # host, pid, start ticks

PIECE = 128 * 1024


def identity(name: str) -> tuple[Identity, int] | None:
    """Whose segment a file is, and its number; None for any other file.

    Args:
        name: A file name.
    """
    if not name.endswith(SUFFIX):
        return None
    try:
        host, pid, started, number = name[: -len(SUFFIX)].rsplit('-', 3)
        return (host, int(pid), int(started)), int(number)
    except ValueError:
        return None


class Tail:
    """A reading position in one process's journal.

    Attributes:
        number: The segment being read.
        offset: Where its next record starts.
        consumed: Paths read to their end, to be deleted once what came from them is safe.
    """

    __slots__ = ('_fd', '_folder', '_stem', 'consumed', 'number', 'numbers', 'offset')

    def __init__(self, folder: str, who: Identity, number: int = 0, offset: int = 0) -> None:
        """Begin at a position.

        Args:
            folder: Where the segments lie.
            who: The process.
            number: Segment to begin with.
            offset: Where in it.
        """
        self._folder = folder
        self._stem = '{}-{}-{}'.format(*who)
        self._fd = -1
        self.number = number
        self.offset = offset
        self.numbers: set[int] = set()  # those seen in the folder
        self.consumed: list[str] = []

    def path(self, number: int) -> str:
        """The file of a segment.

        Args:
            number: Which one.
        """
        return os.path.join(self._folder, f'{self._stem}-{number}{SUFFIX}')

    def read(self) -> list[Record]:
        """The next records, at most about `PIECE` bytes of them; empty when there are none yet.

        Raises:
            ForeignSegment: The file is another user's.
            OSError: It cannot be read.
        """
        while True:
            records = self._read_here()
            if records:
                return records
            # The end of this segment is final only when a later one exists: the list of files is older than this read.
            later = [number for number in self.numbers if number > self.number]
            if not later:
                return []
            self.finish()
            self.number, self.offset = min(later), 0

    def finish(self) -> None:
        """Nothing more comes from the current segment."""
        self.close()
        if self.number in self.numbers:
            self.numbers.discard(self.number)
            self.consumed.append(self.path(self.number))

    def close(self) -> None:
        """Give the descriptor back; the next read opens the file again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def is_open(self) -> bool:
        """Whether a descriptor is held."""
        return self._fd >= 0

    def _read_here(self) -> list[Record]:
        if self._fd < 0:
            if self.number not in self.numbers:
                return []
            self._fd = self._open(self.path(self.number))
        # One system call answers the usual question ("anything new?"): a mapped store changes neither size nor mtime.
        head = os.pread(self._fd, 4, self.offset)
        if len(head) < 4 or head == b'\0\0\0\0':
            return []
        size = PIECE
        while True:
            data = os.pread(self._fd, size, self.offset)
            records, used = _decode(data)
            if used or size > LONGEST:
                self.offset += used
                return records
            size = LONGEST + 5  # the first record alone is longer than a piece

    @staticmethod
    def _open(path: str) -> int:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        owner = os.fstat(fd).st_uid
        if owner != os.geteuid():
            os.close(fd)
            raise ForeignSegment(f'{path}: owned by uid {owner}, not by uid {os.geteuid()}')
        return fd


def _decode(data: bytes) -> tuple[list[Record], int]:
    """Whole records at the start of `data`, and the bytes they take; a torn or damaged one is the end."""
    records: list[Record] = []
    here, end = 0, len(data)
    while here + 4 <= end:
        length = int.from_bytes(data[here : here + 4], 'little')
        stop = here + 4 + length
        if not 0 < length <= LONGEST or stop > end:
            break
        try:
            record: Any = marshal.loads(data[here + 4 : stop])
        except (EOFError, ValueError, TypeError):
            break
        if not isinstance(record, tuple) or not record:
            break
        records.append(record)  # pyright: ignore[reportUnknownArgumentType]
        here = stop
    return records, here
