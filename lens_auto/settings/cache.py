# SPDX-License-Identifier: Apache-2.0
"""Parsed config files, kept as marshal beside their size and times, so that a warm start imports no PyYAML."""

from __future__ import annotations

import _imp
import marshal
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypedDict

    Raw: TypeAlias = tuple[str, int, int]
    """text, line, shape"""

    class Document(TypedDict, total=False):
        """What is kept of one file."""

        block: dict[str, Raw]
        line: int
        defaults: list[tuple[str, str]]
        fault: str


_FORMAT = 1
_LARGEST = 1 << 20
# A file changed again within one tick of the file system's clock would look unchanged.
_TICK_NS = 20_000_000


def fetch(folder: str | None, path: str, status: os.stat_result, whole: bool) -> Document | None:
    """The parsed form of a file, if the cache has it for the file as it is now."""
    if folder is None or not _private(folder):
        return None
    try:
        fd = os.open(_entry(folder, path, whole), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        entry = os.fstat(fd)
        # marshal is not safe against crafted input: nobody else may have been able to write it.
        if not stat.S_ISREG(entry.st_mode) or entry.st_uid != os.geteuid() or entry.st_mode & 0o022:
            return None
        if entry.st_size > _LARGEST:
            return None
        key, document = marshal.loads(os.read(fd, entry.st_size))
    except (OSError, ValueError, EOFError, TypeError):
        return None
    finally:
        os.close(fd)
    return document if key == _key(path, status, whole) else None


def store(folder: str | None, path: str, status: os.stat_result, whole: bool, document: Document) -> None:
    """Keep the parsed form of a file. A cache that cannot be written costs time, nothing else."""
    if folder is None or time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < _TICK_NS:
        return
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not _private(folder):
            return
        target = _entry(folder, path, whole)
        temporary = f'{target}.{os.getpid()}'
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(temporary, flags, 0o600)
    except OSError:
        return
    entry: Any = (_key(path, status, whole), document)
    try:
        with open(fd, 'wb') as file:
            file.write(marshal.dumps(entry, 2))
        os.replace(temporary, target)
    except OSError:
        os.unlink(temporary)


def _key(path: str, status: os.stat_result, whole: bool) -> tuple[int, str, int, int, int, int, bool]:
    # The change time too: `rsync -t` and `cp -p` bring a file of equal size and modification time.
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (_FORMAT, os.path.abspath(path), status.st_size, *times, status.st_ino, whole)


def _entry(folder: str, path: str, whole: bool) -> str:
    # The interpreter's own hash of sources (siphash): hashlib would load OpenSSL. A clash only costs a parse, the key
    # holds the path.
    digest = _imp.source_hash(_FORMAT + whole, os.fsencode(os.path.abspath(path))).hex()
    return os.path.join(folder, f'settings-{digest}')


def _private(folder: str) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
