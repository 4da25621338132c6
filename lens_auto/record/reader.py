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
    Identity = tuple[str, int, int]  # host, pid, start ticks

# One record is at most this long; a longer length word is damage, not data (attributes are bounded far below).
LONGEST = 1 << 20
# What marshal raises on bytes that are not its own.
_DAMAGE = (EOFError, ValueError, TypeError, MemoryError, OverflowError, SystemError)


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


def identity(name: str) -> tuple[Identity, int] | None:
    """Whose segment a file is, and its number; None for any other file.

    Args:
        name: A file name, `<host>-<pid>-<start>-<n>.jnl`.
    """
    if not name.endswith(SUFFIX):
        return None
    try:
        host, pid, started, number = name[: -len(SUFFIX)].rsplit('-', 3)
        return (host, int(pid), int(started)), int(number)
    except ValueError:
        return None


def _order(name: str) -> tuple[str, int]:
    stem, _, number = name[: -len(SUFFIX)].rpartition('-')
    return stem, int(number) if number.isdigit() else 0


def open_segment(path: str) -> tuple[int, int]:
    """A descriptor of a segment, and its size.

    Args:
        path: The segment.

    Raises:
        ForeignSegment: The file is not ours to read.
        OSError: The file cannot be opened.
    """
    # Not blocking, or a pipe of that name would hold us.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    status = os.fstat(fd)
    if S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
        return fd, status.st_size
    os.close(fd)
    if status.st_uid != os.geteuid():
        raise ForeignSegment(f'{path}: owned by uid {status.st_uid}, not by uid {os.geteuid()}')
    raise ForeignSegment(f'{path}: not a file')


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
    fd, size = open_segment(path)
    try:
        data = os.pread(fd, max(0, size - offset), offset)
    finally:
        os.close(fd)
    found: list[tuple[Record, int]] = []
    for record, end in records(data, offset, path):
        if len(record) != FIELDS.get(record[0]):
            break
        found.append((record, end))
    return found


def records(data: bytes, base: int, path: str) -> Iterator[tuple[Record, int]]:
    """Records at the start of some bytes of a segment, each with the offset that follows it.

    Their kinds and fields are for the caller to check.

    Args:
        data: The bytes; they begin where a record does.
        base: Their offset.
        path: The segment.

    Raises:
        ForeignSegment: It is no segment, or one of another format.
    """
    here, end = 0, len(data)
    while here + 4 <= end:
        length = int.from_bytes(data[here : here + 4], 'little')
        if not 0 < length <= LONGEST or here + 4 + length > end:
            return
        record = decode(data[here + 4 : here + 4 + length])
        if record is None:
            return
        if here == base == 0 and record[0] != HEADER:
            raise ForeignSegment(f'{path}: not a journal segment (no header)')
        if record[0] == HEADER and record[1] != FORMAT:
            raise ForeignSegment(f'{path}: journal format {record[1]}, this reader knows {FORMAT}')
        here += 4 + length
        yield record, base + here


def decode(body: bytes) -> Record | None:
    """The record in a frame, or None when it is damaged.

    Args:
        body: A frame without its length.
    """
    # marshal makes room for as many items as a tuple says it has, and fills it: damage in those four bytes must not
    # cost the reader gigabytes. Nearly all records hold no second tuple and pass with one search.
    if body[:1] != b'(' or body[2:5] != b'\0\0\0' or (_holds_more(body) and not _counts_fit(body)):
        return None
    try:
        record: Any = marshal.loads(body)
    except _DAMAGE:
        return None
    return record if len(record) > 1 and type(record[0]) is int else None


def _holds_more(body: bytes) -> bool:
    return body.find(b'(', 5) > 0 or body.find(b'[', 5) > 0


# Bytes that follow a type letter of marshal version 2; for the others they begin with a length.
_FIXED = {b'N': 0, b'T': 0, b'F': 0, b'.': 0, b'i': 4, b'g': 8, b'y': 16}
_SIZED = {b's': 1, b't': 1, b'u': 1, b'a': 1, b'A': 1, b'l': 2}


def _counts_fit(body: bytes) -> bool:
    """True when no tuple or list in a frame says it has more items than there are bytes left."""
    here, end = 0, len(body)
    open_: list[int] = [1]  # items that each open container still wants; a dict wants them until a null
    while open_ and here < end:
        kind = body[here : here + 1]
        here += 1
        open_[-1] -= 1
        if kind in _FIXED:
            here += _FIXED[kind]
        elif kind in _SIZED:
            here += 4 + _SIZED[kind] * abs(int.from_bytes(body[here : here + 4], 'little', signed=True))
        elif kind in (b'(', b'['):
            count = int.from_bytes(body[here : here + 4], 'little')
            here += 4
            if count > end - here:
                return False
            open_.append(count)
        elif kind == b'{':
            open_.append(end)
        elif kind == b'0':
            open_.pop()
        else:
            return False
        while open_ and not open_[-1]:
            open_.pop()
    return not open_
