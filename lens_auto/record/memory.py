# SPDX-License-Identifier: Apache-2.0
"""Maps a file into memory without keeping a file descriptor.

`mmap.mmap` duplicates the descriptor it is given and closes the number when it goes. After the user's `os.closerange`
that number may be the user's next file, and we would close it under them. Python 3.13 can leave the descriptor out
(`trackfd=False`); before that what is behind ctypes calls mmap(2) itself.
"""

from __future__ import annotations

import os
import sys

from lens_auto.record.standard import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Mapped:
    """A mapped file of frames.

    Attributes:
        size: Its length in bytes.
        words: The file as 32-bit words: storing one makes no slice and is a single store of the machine.
        bodies: Its bytes from the second word on: by the offset of a frame, `words` finds its length and this its body.
            To add four instead would cost a record 20 ns.
    """

    __slots__ = ('_bytes', '_unmap', 'bodies', 'size', 'words')

    def __init__(self, view: memoryview, unmap: Callable[[], Any]):
        """See the class.

        Args:
            view: Its bytes, writable.
            unmap: Takes it out of the address space; called once the views are released.
        """
        self._bytes = view
        self.words = view.cast('I')
        self.bodies = view[4:]
        self.size = len(view)
        self._unmap = unmap

    def store(self, at: int, body: bytes) -> int:
        """Store a record where nobody else writes.

        Args:
            at: Its offset, a multiple of 4.
            body: The record, marshalled.

        Returns:
            The offset behind it.
        """
        frame = len(body) + 7 & -4
        self.bodies[at : at + len(body)] = body
        self.words[at >> 2] = frame - 4
        return at + frame

    def unmap(self) -> None:
        """Take it out of the address space."""
        self.words.release()
        self.bodies.release()
        self._bytes.release()
        self._unmap()


def map_shared(fd: int, size: int) -> Mapped:
    """Map the first bytes of a file, shared and writable.

    Args:
        fd: A descriptor open for reading and writing; the caller closes it.
        size: Length in bytes; the file must have that many allocated (a store into a hole of a full disk is a SIGBUS).

    Raises:
        OSError: The file cannot be mapped.
    """
    return _map(fd, size)


def _map_by_mmap(fd: int, size: int) -> Mapped:
    mmap = compiled('mmap')
    if sys.version_info >= (3, 13):
        mapping = mmap.mmap(fd, size, trackfd=False)
        return Mapped(memoryview(mapping), mapping.close)
    # No ctypes in this build. The descriptor kept inside can only be leaked: closing it later may close the user's.
    mapping = mmap.mmap(fd, size)
    _kept.append(mapping)
    return Mapped(memoryview(mapping), bool)


_kept: list[Any] = []
_FAILED = (1 << 64) - 1  # (void *) -1


class _Calls:
    """mmap(2) and munmap(2), and the types they take: made once, as classes are never freed at once."""

    __slots__ = ('char', 'errno', 'map', 'unmap')

    def __init__(self, c: Any):
        self.char, self.errno = _simple(c, 'c'), c.get_errno
        self.map, self.unmap = _functions(c)


_calls: list[_Calls] = []


def _map_by_ctypes(fd: int, size: int) -> Mapped:
    if not _calls:
        try:
            _calls.append(_Calls(compiled('_ctypes')))
        except ImportError:
            return _map_by_mmap(fd, size)
    calls = _calls[0]
    read_write, shared = 3, 1
    address = calls.map(None, size, read_write, shared, fd, 0)
    if address is None or address == _FAILED:
        code = calls.errno()
        raise OSError(code, os.strerror(code))
    view = memoryview((calls.char * size).from_address(address)).cast('B')
    unmap = calls.unmap
    return Mapped(view, lambda: unmap(address, size))


def _functions(c: Any) -> tuple[Any, Any]:
    pointer, length, number, offset = (_simple(c, code) for code in 'PLil')

    class Library:
        _handle = c.dlopen(None, 0)

    # Prototypes of our own: setting them on the shared `libc.mmap` would be seen by everybody who uses the same handle.
    class Map(c.CFuncPtr):
        _flags_ = c.FUNCFLAG_CDECL | c.FUNCFLAG_USE_ERRNO
        _restype_ = pointer
        _argtypes_ = (pointer, length, number, number, number, offset)

    class Unmap(c.CFuncPtr):
        _flags_ = c.FUNCFLAG_CDECL
        _restype_ = number
        _argtypes_ = (pointer, length)

    return Map(('mmap', Library)), Unmap(('munmap', Library))


def _simple(c: Any, code: str) -> Any:
    """A C type by the letter of `struct`."""
    return type(c._SimpleCData)('Simple', (c._SimpleCData,), {'_type_': code})


_map = _map_by_mmap if sys.version_info >= (3, 13) else _map_by_ctypes
