# SPDX-License-Identifier: Apache-2.0
"""Reads journal segments, live or dead: whole records up to the first that is not there yet."""

from __future__ import annotations

import marshal
import os
from stat import S_ISREG

from lens_auto.record.format import FIELDS, FORMAT, HEADER, SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Record = tuple[Any, ...]

# One record is at most this long; a longer length word is damage, not data (attributes are bounded far below).
LONGEST = 1 << 20
# What marshal raises on bytes that are not its own.
DAMAGE = (EOFError, ValueError, TypeError, MemoryError, OverflowError, SystemError)


class ForeignSegment(Exception):
    """The file is no segment of ours: another owner, another format, or not a journal at all."""


def segments(spool: str) -> list[str]:
    """Paths of all segments in a spool, ordered by process and then by number.

    Args:
        spool: The folder journals lie in.
    """
    try:
        names = os.listdir(spool)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [os.path.join(spool, name) for name in sorted((n for n in names if n.endswith(SUFFIX)), key=_order)]


def identity(path: str) -> tuple[str, int, int, int]:
    """Host, pid, start ticks and number of a segment, from its name.

    Raises:
        ForeignSegment: The name is not of the form `<host>-<pid>-<start>-<n>.jnl`.
    """
    stem = os.path.basename(path)[: -len(SUFFIX)]
    try:
        host, pid, start, number = stem.rsplit('-', 3)
        return host, int(pid), int(start), int(number)
    except ValueError:
        raise ForeignSegment(f'{path}: not a journal segment (name)') from None


def _order(name: str) -> tuple[str, int]:
    stem, _, number = name[: -len(SUFFIX)].rpartition('-')
    return stem, int(number) if number.isdigit() else 0


def read(path: str, offset: int = 0) -> list[tuple[Record, int]]:
    """All whole records from `offset` on, each with the offset that follows it.

    A torn record (a process killed between its two stores leaves a zero length word; a damaged one fails to decode)
    reads as the end: nothing after it is trusted.

    Args:
        path: A segment.
        offset: Where to start: 0 or an offset this function returned.

    Raises:
        ForeignSegment: The file is not ours to read.
        OSError: The file cannot be opened.
    """
    # Not blocking, or a pipe of that name would hold us.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(fd)
        if not S_ISREG(status.st_mode):
            raise ForeignSegment(f'{path}: not a file')
        if status.st_uid != os.geteuid():
            raise ForeignSegment(f'{path}: owned by uid {status.st_uid}, not by uid {os.geteuid()}')
        data = os.pread(fd, max(0, status.st_size - offset), offset) if status.st_size > offset else b''
    finally:
        os.close(fd)
    return list(_records(data, offset, path))


def has_more(path: str, offset: int) -> bool:
    """True when a record's length word stands at `offset`: the cheap question a poller asks."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        word = os.pread(fd, 4, offset)
    finally:
        os.close(fd)
    return len(word) == 4 and word != b'\0\0\0\0'


def _records(data: bytes, base: int, path: str) -> Iterator[tuple[Record, int]]:
    here, end = 0, len(data)
    while here + 4 <= end:
        length = int.from_bytes(data[here : here + 4], 'little')
        if not 0 < length <= LONGEST or here + 4 + length > end:
            return
        try:
            record = marshal.loads(data[here + 4 : here + 4 + length])
        except DAMAGE:
            return
        if not whole(record):
            return
        if here == base == 0 and record[0] != HEADER:
            raise ForeignSegment(f'{path}: not a journal segment (no header)')
        if record[0] == HEADER and record[1] != FORMAT:
            raise ForeignSegment(f'{path}: journal format {record[1]}, this reader knows {FORMAT}')
        here += 4 + length
        yield record, base + here


def whole(record: Any) -> bool:
    """True for a tuple that has the fields of its kind. A header of another format may have others.

    Args:
        record: What marshal made of a frame.
    """
    if not isinstance(record, tuple):
        return False
    fields: tuple[Any, ...] = (*record,)
    if len(fields) < 2 or type(fields[0]) is not int:
        return False
    return len(fields) == FIELDS.get(fields[0]) or (fields[0] == HEADER and fields[1] != FORMAT)
