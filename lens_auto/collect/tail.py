# SPDX-License-Identifier: Apache-2.0
"""Follows the segments of one process's journal, from one to the next, a piece at a time."""

from __future__ import annotations

import os

from lens_auto.record.format import SUFFIX
from lens_auto.record.reader import LONGEST, open_segment, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.record.reader import Identity, Record

PIECE = 128 * 1024


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
            ForeignSegment: The file is another user's, or of another format.
            OSError: It cannot be read.
        """
        while True:
            found = self._read_here()
            if found:
                return found
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

    def _read_here(self) -> list[Record]:
        if self._fd < 0:
            if self.number not in self.numbers:
                return []
            self._fd, _ = open_segment(self.path(self.number))
        # One system call answers the usual question ("anything new?"): a mapped store changes neither size nor mtime.
        head = os.pread(self._fd, 4, self.offset)
        if len(head) < 4 or head == b'\0\0\0\0':
            return []
        size = PIECE
        while True:
            data = os.pread(self._fd, size, self.offset)
            found = list(records(data, self.offset, self.path(self.number)))
            if found:
                self.offset = found[-1][1]
            if found or size > LONGEST:
                return [record for record, _ in found]
            size = LONGEST + 5  # the first record alone is longer than a piece
