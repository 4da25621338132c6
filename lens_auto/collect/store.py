# SPDX-License-Identifier: Apache-2.0
"""Writes the run folder: OTLP JSON lines, and (with OTLP) the chunks that wait for the sender.

Lines are kept in memory until `flush` has written them all; `state` then says how long each file is. A collector that
is killed between a flush and the checkpoint that names it leaves more than the checkpoint knows: `recover` cuts it off,
and the journals give the same again. Chunks are written under a hidden name and shown by `commit`, after the
checkpoint: one that is in sight is one that no later collector will write again.
"""

from __future__ import annotations

import os
from errno import ENOSPC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRACES, METRICS, LOGS = 'traces', 'metrics', 'logs'
ITEMS = {TRACES: 'spans', METRICS: 'points', LOGS: 'logs'}  # what is sent, by what it is counted in
OUTBOX = 'outbox'
_ENVELOPE = {TRACES: '{"resourceSpans":[%s]}\n', METRICS: '{"resourceMetrics":[%s]}\n', LOGS: '{"resourceLogs":[%s]}\n'}
_LINE = 512 * 1024  # characters of one line, roughly: what one request to a backend holds
SHARE = 0.90  # of the disk, as for the journals: what is left is the program's, for its checkpoints most likely
LIMIT = 8 << 30  # bytes of one run folder: a run that records more is not what its user meant to keep
FULL = f'the run folder holds {LIMIT >> 30} GiB, the most it may'
_MOST_CHUNKS = 2000  # of one signal, its backend down for hours: what comes later goes into the folder's files at once


class NoRoom(OSError):
    """The file system is so full that the rest of it is left to the program: its checkpoints, most likely."""


class Store:
    """The output of one collector.

    Attributes:
        stem: `<host>-<pid>`: tells the files of several launchers apart.
        sending: Whether all goes to the outbox.
        waiting: Characters that are in memory only.
        left: Chunks whose lines are in the folder's files; to be deleted after the next checkpoint.
        dropped: Spans, points and logs that came when the folder had reached `LIMIT`.
    """

    def __init__(self, folder: str, stem: str, sending: bool) -> None:
        """Begin with no files.

        Args:
            folder: The run folder.
            stem: Part of the files' names.
            sending: Put all into the outbox for the sender.
        """
        self.folder = folder
        self.stem = stem
        self.sending = sending
        self.waiting = 0
        self.left: list[str] = []
        self.dropped = 0
        self._entries: dict[str, list[str]] = {TRACES: [], METRICS: [], LOGS: []}
        self._items = {TRACES: 0, METRICS: 0, LOGS: 0}
        self._vital: list[str] = []
        self._lengths: dict[str, int] = {}
        self._chunk = 0  # number of the last chunk written
        self._hidden: list[str] = []

    def put(self, kind: str, entry: str, items: int, vital: bool = False) -> None:
        """Take a ResourceSpans, ResourceMetrics or ResourceLogs.

        Args:
            kind: TRACES, METRICS or LOGS.
            entry: Its JSON.
            items: Spans, points or logs in it.
            vital: It is written also when the folder has reached `LIMIT`.
        """
        if vital:
            self._vital.append(entry)
        self._entries[kind].append(entry)
        self._items[kind] += items
        self.waiting += len(entry)

    def flush(self) -> None:
        """Write all that waits, or nothing of a file that cannot be written.

        Raises:
            OSError: A file could not be written (disk full); what waits stays waiting.
        """
        if any(self._entries.values()):
            self.check_room(self.waiting)
        for kind, entries in self._entries.items():
            if not entries:
                continue
            if self._used() + sum(map(len, entries)) > LIMIT:
                kept = [entry for entry in entries if entry in self._vital]
                self.dropped += self._items[kind] - len(kept)
                self._items[kind] = len(kept)
                self.waiting -= sum(map(len, entries)) - sum(map(len, kept))
                entries[:] = kept
                if not kept:
                    continue
            data = ''.join(_lines(kind, entries)).encode()
            if self.sending and self._room(kind):
                self._write_chunk(kind, data)
            else:
                self.append(f'{kind}-{self.stem}.jsonl', data)
            self.waiting -= sum(map(len, entries))
            entries.clear()
            self._items[kind] = 0
        self._vital.clear()

    def leave(self) -> dict[str, int]:
        """Copy the chunks nobody acknowledged into the folder's files; the answer is how many spans, points, logs.

        A chunk for which there is no room stays where it is: a replay finds it there too.
        """
        unsent: dict[str, int] = {}
        for path in chunks(self.folder, self.stem):
            kind = kind_of(path)
            try:
                self.check_room(os.stat(path).st_size)
                with open(path, 'rb') as file:
                    self.append(f'{kind}-{self.stem}.jsonl', file.read())
                self.left.append(path)
            except OSError:
                pass
            unsent[ITEMS[kind]] = unsent.get(ITEMS[kind], 0) + items_of(path)
        return unsent

    def check_room(self, size: int) -> None:
        """Leave the program the last tenth of its disk.

        Args:
            size: Bytes that are to be written.

        Raises:
            NoRoom: They would fill the disk beyond our share of it.
        """
        disk = os.statvfs(self.folder)
        if disk.f_blocks and disk.f_bavail * disk.f_frsize - size < (1 - SHARE) * disk.f_blocks * disk.f_frsize:
            raise NoRoom(ENOSPC, f'file system of {self.folder} is {SHARE:.0%} full')

    def _used(self) -> int:
        """Bytes of the run folder, other launchers' files included."""
        return _bytes(self.folder) + _bytes(os.path.join(self.folder, OUTBOX))

    def _room(self, kind: str) -> bool:
        # Of each signal: a backend that takes traces and no metrics goes on getting traces.
        try:
            names = os.listdir(os.path.join(self.folder, OUTBOX))
            return sum(kind_of(name) == kind for name in names) < _MOST_CHUNKS
        except FileNotFoundError:
            return True

    def _write_chunk(self, kind: str, data: bytes) -> None:
        outbox = os.path.join(self.folder, OUTBOX)
        os.makedirs(outbox, 0o700, exist_ok=True)
        path = os.path.join(outbox, f'.{self.stem}-{self._chunk + 1:08d}-{self._items[kind]}-{kind}.jsonl')
        try:
            write_whole(path, data)
        except OSError:
            _unlink(path)
            raise
        self._chunk += 1
        self._hidden.append(path)

    def append(self, name: str, data: bytes) -> None:
        """Append to a file of the folder, all or nothing.

        Args:
            name: Its name.
            data: Whole lines.

        Raises:
            OSError: It cannot be written; it is as long as before.
        """
        path = os.path.join(self.folder, name)
        before = self._lengths.get(name)
        if before is None:
            before = _size(path)
        try:
            write_whole(path, data, os.O_APPEND)
        except OSError:
            cut(path, before)
            raise
        self._lengths[name] = before + len(data)

    def state(self) -> list[Any]:
        """What the next checkpoint must know."""
        left = [os.path.basename(path) for path in self.left]
        return [self.stem, dict(self._lengths), self._chunk, left, self.dropped]

    def commit(self) -> None:
        """The checkpoint is written: show the new chunks to the sender, delete those that are in the files."""
        for path in self._hidden:
            os.rename(path, _shown(path))
        self._hidden.clear()
        for path in self.left:
            _unlink(path)
        self.left.clear()

    def recover(self, state: list[Any]) -> None:
        """Bring the folder back to what a checkpoint says.

        Args:
            state: Answer of `state` when it was taken.
        """
        self.stem, lengths, self._chunk, left, self.dropped = state
        for name in left:
            _unlink(os.path.join(self.folder, OUTBOX, name))
        self._lengths = dict(lengths)
        for name, length in self._lengths.items():
            cut(os.path.join(self.folder, name), length)
        for kind in (TRACES, METRICS, LOGS):
            name = f'{kind}-{self.stem}.jsonl'
            if name not in self._lengths:
                _unlink(os.path.join(self.folder, name))
        self._settle_chunks()

    def _settle_chunks(self) -> None:
        outbox = os.path.join(self.folder, OUTBOX)
        try:
            names = os.listdir(outbox)
        except FileNotFoundError:
            return
        for name in names:
            if not name.startswith(f'.{self.stem}-'):
                continue
            path = os.path.join(outbox, name)
            if int(name.rsplit('-', 3)[1]) <= self._chunk:
                os.rename(path, _shown(path))
            else:
                _unlink(path)


def chunks(folder: str, stem: str = '') -> list[str]:
    """Paths of the chunks the sender may send, oldest first.

    Args:
        folder: The run folder.
        stem: Only those of this collector.
    """
    outbox = os.path.join(folder, OUTBOX)
    try:
        names = sorted(os.listdir(outbox))
    except FileNotFoundError:
        return []
    return [os.path.join(outbox, name) for name in names if not name.startswith('.') and name.startswith(stem)]


def remove_outbox(folder: str) -> None:
    """Remove the outbox when nothing is in it.

    Args:
        folder: The run folder.
    """
    try:
        os.rmdir(os.path.join(folder, OUTBOX))
    except OSError:
        pass  # another launcher's chunks are in it, or there is none


def kind_of(path: str) -> str:
    """TRACES, METRICS or LOGS, from a chunk's name.

    Args:
        path: The chunk.
    """
    return os.path.basename(path).removesuffix('.jsonl').rpartition('-')[2]


def items_of(path: str) -> int:
    """Spans, points or logs in a chunk, from its name.

    Args:
        path: The chunk.
    """
    return int(path.rsplit('-', 2)[1])


def _lines(kind: str, entries: list[str]) -> list[str]:
    lines: list[str] = []
    here: list[str] = []
    size = 0
    for entry in entries:
        if here and size + len(entry) > _LINE:
            lines.append(_ENVELOPE[kind] % ','.join(here))
            here, size = [], 0
        here.append(entry)
        size += len(entry)
    lines.append(_ENVELOPE[kind] % ','.join(here))
    return lines


def write_whole(path: str, data: bytes, how: int = os.O_TRUNC) -> None:
    """Write a file that only its owner may read, in spite of interrupted writes.

    Args:
        path: The file.
        data: All of it, or what is to be appended.
        how: O_TRUNC, O_APPEND or O_EXCL.

    Raises:
        OSError: It could not be written, or only in part.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | how, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def replace(path: str, fresh: str, data: bytes) -> None:
    """Put new contents in a file's place in one step.

    Args:
        path: The file.
        fresh: A name beside it, for the time it takes.
        data: The contents.

    Raises:
        OSError: They cannot be written; the file is as it was.
    """
    try:
        write_whole(fresh, data)
        os.rename(fresh, path)
    except OSError:
        _unlink(fresh)
        raise


def cut(path: str, length: int) -> None:
    """Shorten a file, when it is there and longer.

    Args:
        path: The file.
        length: Bytes to keep.
    """
    if _size(path) > length:
        os.truncate(path, length)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _bytes(folder: str) -> int:
    used = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    used += entry.stat(follow_symlinks=False).st_size
                except FileNotFoundError:
                    continue  # a chunk that has just been sent
    except FileNotFoundError:
        pass
    return used


def _shown(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, name.lstrip('.'))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
