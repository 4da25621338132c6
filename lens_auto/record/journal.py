# SPDX-License-Identifier: Apache-2.0
"""The journal of one process: records stored in memory-mapped segments, where they outlive the process.

A store into a shared mapping is in the page cache at once: SIGKILL, `os._exit` and a fork lose nothing, and there is no
system call (an `os.write` gives the GIL away, 2-10 ms a record beside one busy thread). Nothing here takes a lock that
a signal handler or another thread could wait for, and no thread is started.
"""

from __future__ import annotations

import os
from errno import EFBIG, ENOSPC
from marshal import dumps
from time import monotonic_ns, time_ns

from lens_auto.record import process
from lens_auto.record.foreign import foreign
from lens_auto.record.format import ANCHOR, DROPPED, FORMAT, HEADER, MARSHAL_VERSION, REPORT, SUFFIX
from lens_auto.record.memory import Mapped, map_shared
from lens_auto.record.span import ENDED_ALREADY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from lens_auto.record.reader import Record
    from lens_auto.record.span import Span

    Resource = dict[str, str | int | float | bool]
else:
    from _collections import deque  # the package around it takes half a millisecond to import

PAGE = 4096
FIRST_SEGMENT = 64 * 1024  # most processes never fill it
SEGMENT = 1024 * 1024
RESERVE = 512  # kept free at the end of a segment, to say there what was lost when no other can be had
LONGEST = SEGMENT // 2  # a record above this is dropped: attributes are bounded, so it can only be a mistake
WAITING = 10_000  # records kept in memory while no segment can be had
DISK_SHARE = 0.90  # stop when the file system is this full
SPOOL_LIMIT = 8 * 1024**3  # bytes of journals on one node, over all processes of the run
FIRST_RETRY_NS = 50_000_000
LONGEST_RETRY_NS = 60_000_000_000
NO_ROOM = 'no room'


class Journal:
    """Appends records to this process's segments; opens the first one at the first record.

    Attributes:
        dropped: Records that found no room (disk full, file size limit, spool over its share) and no place to wait.
        flags: What the collector shall know of how this process records.
        limit: Bytes all journals of the node may take together.
    """

    __slots__ = (
        '_bodies',
        '_end',
        '_held',
        '_number',
        '_pos',
        '_resource',
        '_retry_after',
        '_retry_at',
        '_rolling',
        '_room',
        '_segment',
        '_spool',
        '_stem',
        '_waiting',
        '_words',
        'dropped',
        'flags',
        'limit',
    )

    def __init__(
        self, spool: str, resource: Callable[[], dict[str, str | int | float | bool]], limit: int = SPOOL_LIMIT
    ):
        """See the class.

        Args:
            spool: The run's folder for journals (0700, made by the launcher).
            resource: Called once per process, at the first record: what the collector shall know of this process.
            limit: Bytes all journals of the node may take together.
        """
        self._spool = spool
        self._resource = resource
        self.limit = limit
        self.flags: dict[str, int] = {}
        self.forget()

    def forget(self) -> None:
        """Start anew, without touching what is mapped: what a forked child does with its parent's journal."""
        # The old mapping is left alone: the child's copy of the address space goes with the child.
        self._end = 0
        self._pos = 0
        self._held = False
        self._bodies = memoryview(b'')
        self._words = memoryview(b'')
        self._segment: tuple[Mapped | None, Mapped | None] = (None, None)
        self._rolling = False
        self._room = 0
        self._waiting: deque[bytes] = deque()
        self._stem = ''
        self._number = 0
        self._retry_at = 0
        self._retry_after = FIRST_RETRY_NS
        self.dropped = 0

    @property
    def begun(self) -> bool:
        """True once this process has stored a record, or tried to."""
        return self._number > 0 or bool(self._waiting)

    def put(self, record: Record, ending: Span | None = None) -> None:
        """Store a record; never raises for want of room.

        Args:
            record: A tuple of `format`, holding plain scalars, strings, tuples and dicts only.
            ending: The span whose end it tells; marked as ended in the same breath, so that a KeyboardInterrupt finds
                either both done or neither.
        """
        body = dumps(record, MARSHAL_VERSION)
        length = len(body)
        frame = length + 7 & -4  # its length word, itself, zeros up to a whole word: marshal ignores those
        # No call from here to the last store: under the GIL neither another thread nor a signal handler gets in
        # between, so a reader sees the whole record or none of it. (On 3.10 and 3.11 making the slice may collect
        # garbage, and a finalizer may record. It then writes behind us, and a segment it rolls away stays mapped:
        # hence the two locals.)
        here = self._pos
        end = here + frame
        if end <= self._end:
            self._pos = end
            bodies, words = self._bodies, self._words
            bodies[here : here + length] = body
            words[here >> 2] = frame - 4  # one aligned store makes it visible
            if ending is not None:
                ending.epoch = ENDED_ALREADY
            return
        self._put_slowly(body, ending)

    def _put_slowly(self, body: bytes, ending: Span | None) -> None:
        waiting = self._waiting
        kept = len(body) <= LONGEST and len(waiting) < WAITING
        # Until all is stored everybody comes this way: an end must not overtake its span's beginning.
        self._end = 0
        if ending is not None:
            ending.epoch = ENDED_ALREADY
        if kept:
            waiting.append(body)
        else:
            self.dropped += 1
        if not self._held:
            self._store_waiting()

    def _store_waiting(self) -> None:
        # One stores for all. A signal handler that interrupts it finds it at work and returns: to wait would be to wait
        # for ourselves. A flag and no lock: between the test that finds it free and the `try`, nothing is called, so no
        # thread and no KeyboardInterrupt gets in; between a lock's `acquire` and the `try` one does, and it stays shut.
        while self._waiting:
            if not self._rolling:
                self._rolling = True
                try:
                    if not self._drain():
                        return
                finally:
                    self._rolling = False
            else:
                return

    def _drain(self) -> bool:
        """Store what waits, in its order; False when there is no room for it. The caller has set the flag."""
        waiting = self._waiting
        while True:
            if not waiting:
                if not self._held:
                    self._end = self._room
                return True
            body = waiting[0]
            length = len(body)
            frame = length + 7 & -4
            if self._pos + frame > self._room:
                if not self._roll():
                    return False
                if self._number > 1 and self._pos + frame > self._room:
                    # Not the small first segment, so files may be no longer than a few pages: it has no place at all.
                    waiting.popleft()
                    self.dropped += 1
                continue
            here = self._pos
            self._pos = here + frame
            bodies, words = self._bodies, self._words
            bodies[here : here + length] = body
            words[here >> 2] = frame - 4
            waiting.popleft()

    def _roll(self) -> bool:
        """Go on in a new segment; False when none can be had."""
        now = monotonic_ns()
        if now < self._retry_at:
            return False
        waiting = self._waiting
        try:
            mapped, pos = self._open_segment()
        except OSError as error:
            if foreign(error):  # a TimeoutError of the program is an OSError too
                raise
            self._retry_at = now + self._retry_after
            self._retry_after = min(2 * self._retry_after, LONGEST_RETRY_NS)
            self._tell_loss(False)
            return False
        if waiting is not self._waiting:
            return False  # a signal handler forked, and this is the child: the segment is its parent's
        # The segment before the last goes. Not the last one: see `put`.
        oldest = self._segment[0]
        self._segment = (self._segment[1], mapped)
        self._bodies, self._words = mapped.bodies, mapped.words
        self._pos = pos
        self._room = mapped.size - RESERVE
        self._retry_after = FIRST_RETRY_NS
        if oldest is not None:
            oldest.unmap()
        if self.dropped:
            self._waiting.append(self._loss(0))
        return True

    def _loss(self, waiting: int) -> bytes:
        return dumps((REPORT, monotonic_ns(), DROPPED, {'records': self.dropped + waiting, 'reason': NO_ROOM}), 2)

    def _tell_loss(self, last: bool) -> None:
        """Say in the room reserved at the end of the full segment what would be lost if the process died now.

        Args:
            last: It does die now; until then the place for this word is kept.
        """
        mapped = self._segment[1]
        if mapped is None:
            return
        body = self._loss(len(self._waiting))
        if self._pos + (len(body) + 8) * (1 if last else 2) <= mapped.size:
            self._pos = mapped.store(self._pos, body)

    def flush(self) -> None:
        """Try once more to store what waits, and say what cannot be: the process ends."""
        try:
            if self._waiting:
                self._retry_at = 0
                self._store_waiting()
            if self._waiting:
                self._tell_loss(True)
        except Exception:  # called as Python ends, where it would be printed among the program's own output
            self.dropped += len(self._waiting)

    def hold(self) -> None:
        """A fork begins: records wait, so that no hook that runs before ours in the child writes into our segment."""
        self._held = True
        self._end = 0

    def go_on(self) -> None:
        """The fork is over, and this is the parent."""
        self._held = False
        if not self._waiting:
            self._end = self._room
        self._store_waiting()

    def _open_segment(self) -> tuple[Mapped, int]:
        pid = os.getpid()
        started = process.start_ticks()
        if not self._stem:
            self._stem = f'{process.hostname()}-{pid}-{started}'
        size = _allowed(SEGMENT if self._number else FIRST_SEGMENT)
        self._check_room(size)
        path, fd = self._create()
        try:
            # Never sparse: a store into a hole of a full disk is a SIGBUS.
            os.posix_fallocate(fd, 0, size)
            mapped = map_shared(fd, size)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        header = (
            HEADER,
            FORMAT,
            self._resource(),
            time_ns(),
            monotonic_ns(),
            process.boot_id(),
            pid,
            started,
            self._number,
            self.flags,
        )
        self._number += 1
        pos = mapped.store(0, dumps(header, MARSHAL_VERSION))
        return mapped, mapped.store(pos, dumps((ANCHOR, time_ns(), monotonic_ns()), MARSHAL_VERSION))

    def _create(self) -> tuple[str, int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            path = os.path.join(self._spool, f'{self._stem}-{self._number}{SUFFIX}')
            try:
                return path, os.open(path, flags, 0o600)
            except FileExistsError:
                self._number += 1  # this process has been another program before it called exec

    def _check_room(self, size: int) -> None:
        """Raises OSError (ENOSPC) when the disk or the run's share of it is used up."""
        disk = os.statvfs(self._spool)
        if disk.f_blocks and disk.f_bavail * disk.f_frsize - size < (1 - DISK_SHARE) * disk.f_blocks * disk.f_frsize:
            raise OSError(ENOSPC, f'file system of {self._spool} is {DISK_SHARE:.0%} full')
        used = 0
        with os.scandir(self._spool) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX):
                    try:
                        used += entry.stat().st_size
                    except FileNotFoundError:
                        continue  # the collector has just deleted it
        if used + size > self.limit:
            raise OSError(ENOSPC, f'journals in {self._spool} hold {used} bytes, the limit is {self.limit}')


def _allowed(size: int) -> int:
    """The size of a segment under this process's limit of file sizes, in whole pages.

    Asked rather than tried: going over it is a SIGXFSZ, which the program may have a handler for.

    Args:
        size: The size it should have.

    Raises:
        OSError: (EFBIG) Not even a page is allowed.
    """
    limit = process.file_size_limit()
    if limit is not None and limit < size:
        size = limit // PAGE * PAGE
        if not size:
            raise OSError(EFBIG, f'files may hold no more than {limit} bytes')
    return size
