# SPDX-License-Identifier: Apache-2.0
"""Our own bytecode cache: rewritten code by what it was made from, so that a second start neither parses nor rewrites.

The interpreter's cache stays the program's: it holds the code of the unchanged source. Ours is a private folder of the
user (0700, owner checked, no links followed). One that cannot be read or written costs time and nothing else.

An entry is known by what is in the source. Beside it a note says which entry a file has while it is the same file:
then its source is not even read. A plain .pyc goes by size and modification time in whole seconds; a note by these in
nanoseconds, by the time of the last change, which no program can set, and by which file it is.
"""

from __future__ import annotations

import _imp
import marshal
import os
import stat
import sys
import time
from _frozen_importlib_external import MAGIC_NUMBER

from lens_auto import __version__
from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_FORMAT = 2
_LARGEST = 64 << 20
_DAY = 86_400
_KEPT_DAYS = 30
_SUFFIX, _NOTE = '.code', '.seen'
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
# The coarsest clock of a file system (FAT's) has steps of two seconds.
_SETTLED = 2.0


def variant(filename: str, edits: Any) -> str:
    """What names code but for the source: the same only where one source gives the same code.

    Args:
        filename: What the code names as its file.
        edits: What is done to it; the same in every process that does the same.
    """
    made_by = (_FORMAT, __version__, _rewriter(), sys.implementation.cache_tag, MAGIC_NUMBER)
    # Code without columns is made where they were not wanted, and would be given to those who want them.
    columns = 'no_debug_ranges' not in sys._xoptions  # pyright: ignore[reportPrivateUsage]
    of = (*made_by, sys.flags.optimize, columns, filename, edits)
    return _hash(repr(of).encode('utf-8', 'surrogateescape'))


def entry(source: bytes, variant: str) -> str:
    """The name of a cache entry: the same only for code that would come out the same.

    Args:
        source: The source file's bytes.
        variant: See `variant`.
    """
    # The interpreter's own hash of sources, as in its hash-based .pyc files: hashlib would load OpenSSL.
    return f'{_hash(source)}-{len(source):x}-{variant}{_SUFFIX}'


def state(path: str) -> str:
    """What a file is the same file by, to be asked before it is read; '' where that cannot be told.

    Args:
        path: The file.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        if foreign(error):
            raise
        return ''  # in an archive, or gone
    # What changes within the clock's resolution, right after it was looked at, would look the same.
    if time.time() - max(found.st_ctime, found.st_mtime) < _SETTLED:
        return ''
    return f'{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}-{found.st_ctime_ns:x}'


def noted(folder: str, variant: str, state: str) -> str:
    """The name of the entry that a file in a certain state has, '' if nobody has noted it.

    Args:
        folder: The cache.
        variant: See `variant`.
        state: From `state`.
    """
    if not state:
        return ''
    try:
        descriptor = os.open(os.path.join(folder, variant + _NOTE), _READ)
        try:
            was, _, name = os.read(descriptor, 512).decode().partition(' ')
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        if foreign(error):
            raise
        return ''
    return name if was == state and name.endswith(f'-{variant}{_SUFFIX}') and os.sep not in name else ''


def note(folder: str, variant: str, state: str, name: str) -> None:
    """Note which entry a file has.

    Args:
        folder: The cache.
        variant: See `variant`.
        state: From `state`, before the file was read.
        name: From `entry`.
    """
    if state:
        _put(folder, variant + _NOTE, f'{state} {name}'.encode())


def fetch(folder: str, name: str) -> tuple[CodeType, Any] | None:
    """The code of an entry, and what was kept with it; None if it is not there or cannot be trusted.

    Args:
        folder: The cache.
        name: From `entry`.
    """
    path = os.path.join(folder, name)
    try:
        if not _private(folder):
            return None
        descriptor = os.open(path, _READ)
        try:
            found = os.fstat(descriptor)
            # marshal is not safe against crafted input: nobody else may have been able to write it.
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                return None
            data = memoryview(os.read(descriptor, min(found.st_size, _LARGEST)))
        finally:
            os.close(descriptor)
        # A disk that filled up or failed leaves bytes that marshal would crash on.
        if bytes(data[:16]) != _hash(data[16:]).encode():
            return None
        code, kept = marshal.loads(data[16:])
        if time.time() - found.st_mtime > _DAY:
            os.utime(path)  # in use, for `_prune`
    except (OSError, ValueError, EOFError, TypeError) as error:
        if foreign(error):
            raise
        return None
    return code, kept


def store(folder: str, name: str, code: CodeType, kept: Any) -> None:
    """Keep code, whole or not at all: other processes read meanwhile.

    Args:
        folder: The cache; made if need be.
        name: From `entry`.
        code: The code.
        kept: Plain values that go with it.
    """
    try:
        data = marshal.dumps((code, kept))
    except ValueError as error:
        if foreign(error):
            raise
        return
    if _put(folder, name, _hash(data).encode() + data):
        _prune(folder)


def _put(folder: str, name: str, data: bytes) -> bool:
    """Write a file, whole or not at all; whether it is there."""
    temporary = ''
    try:
        if not os.path.isdir(os.path.dirname(os.path.dirname(folder))):
            return False  # of a machine that is not this one
        os.makedirs(folder, 0o700, exist_ok=True)
        if not _private(folder):
            return False
        path = os.path.join(folder, name)
        scratch = f'{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp'
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(scratch, flags, 0o600), 'wb') as file:
            temporary = scratch
            file.write(data)
        os.replace(temporary, path)
        temporary = ''
    except (OSError, ValueError) as error:
        if foreign(error):
            raise
        return False
    finally:
        if temporary:
            _remove(temporary)
    return True


def _hash(data: bytes | memoryview) -> str:
    return _imp.source_hash(_FORMAT, data).hex()


def _private(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError as error:
        if foreign(error):
            raise
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


_known: list[tuple[tuple[str, int, int], ...]] = []


def _rewriter() -> tuple[tuple[str, int, int], ...]:
    """Which state of the rewriter: a checkout keeps its version while its code changes."""
    if not _known:
        folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'rewrite')
        with os.scandir(folder) as found:
            files = [(one.name, one.stat()) for one in found if one.name.endswith('.py')]
        _known.append(tuple(sorted((name, status.st_size, status.st_mtime_ns) for name, status in files)))
    return _known[0]


def _prune(folder: str) -> None:
    """Remove what no process has used for a month; of notes, what none has made."""
    limit = time.time() - _KEPT_DAYS * _DAY
    ours = (_SUFFIX, _NOTE, '.tmp')
    try:
        with os.scandir(folder) as found:
            old = [one.path for one in found if one.name.endswith(ours) and one.stat().st_mtime < limit]
    except OSError as error:
        if foreign(error):
            raise
        return
    for path in old:
        _remove(path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:  # another process was quicker, or the folder is read-only by now
        if foreign(error):
            raise
