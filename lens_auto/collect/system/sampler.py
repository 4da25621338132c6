# SPDX-License-Identifier: Apache-2.0
"""Asks the system for figures at intervals, in a thread of its own: a driver that hangs holds up nobody.

The interval is 1 s at first and grows to 10 s: a hundredth of the time that has passed. However long the asking takes,
it is two hundred times that at least: half a per cent of one CPU.
"""

from __future__ import annotations

import _thread
from collections import deque
from time import monotonic, monotonic_ns

from lens_auto.collect.system.procfs import NodeFigures, ProcessFigures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lens_auto.collect.system.measurement import Measurement
    from lens_auto.collect.system.nvml import Nvml
    from lens_auto.record.reader import Identity

    # (the process, or None for the node; monotonic nanoseconds; the figures)
    Sample = tuple[Identity | None, int, list[Measurement]]

_SHORTEST, _LONGEST, _GROWTH = 1.0, 10.0, 100.0
_REST = 200.0  # times what the asking took
_MOST_WAITING = 10_000  # samples nobody takes: the disk is full


class Sampler:
    """The thread, and what it has found.

    Attributes:
        processes: Whom to ask about; replaced as a whole, from any thread.
        fault: What ended it, None while nothing has.
    """

    def __init__(self, visible: str | None, proc: str = '/proc') -> None:
        """Prepare; nothing is asked before `start`.

        Args:
            visible: CUDA_VISIBLE_DEVICES of the command, None where it is not set.
            proc: Where the kernel's file system is.
        """
        self.processes: Iterable[Identity] = ()
        self.fault: Exception | None = None
        self._visible = visible
        self._proc = proc
        self._figures: dict[Identity, ProcessFigures] = {}
        self._node = NodeFigures(proc)
        self._gpus: Nvml | None = None
        self._found: deque[Sample] = deque(maxlen=_MOST_WAITING)
        self._over = _thread.allocate_lock()

    def start(self) -> None:
        """Begin to ask."""
        self._over.acquire()
        _thread.start_new_thread(self._work, ())

    def stop(self) -> None:
        """Ask no more; the thread ends by itself."""
        if self._over.locked():
            self._over.release()

    def taken(self) -> list[Sample]:
        """What was found since the last call."""
        found: list[Sample] = []
        while self._found:
            found.append(self._found.popleft())
        return found

    def _work(self) -> None:
        try:
            self._ask()
        except Exception as error:
            self.fault = error  # the collector counts and reports it

    def _ask(self) -> None:
        begun = monotonic()
        self._gpus = _gpus(self._visible)
        pause = _SHORTEST
        while not self._over.acquire(timeout=pause):
            now = monotonic()
            self.sample()
            pause = max(min(_LONGEST, max(_SHORTEST, (now - begun) / _GROWTH)), _REST * (monotonic() - now))

    def sample(self) -> None:
        """Ask once about everything."""
        asked: dict[Identity, ProcessFigures] = {}
        for who in tuple(self.processes):
            figures = self._figures.get(who) or ProcessFigures(who[1], who[2], self._proc)
            asked[who] = figures
            at = monotonic_ns()
            self._take(who, at, lambda at=at, figures=figures: figures.read(at))
        self._figures = asked
        self._take(None, monotonic_ns(), self._node.read)
        if self._gpus is not None:
            self._take(None, monotonic_ns(), self._gpus.read)

    def _take(self, who: Identity | None, at: int, read: Callable[[], Iterable[Measurement]]) -> None:
        found: list[Measurement] = []
        try:
            found.extend(read())
        except (OSError, ValueError, IndexError):
            pass  # it has ended, or this kernel writes the file in another way: what was read until then counts
        if found:
            self._found.append((who, at, found))


def _gpus(visible: str | None) -> Nvml | None:
    from lens_auto.collect.system.nvml import Nvml  # ctypes: not before there is something to ask about

    try:
        return Nvml(visible) or None
    except OSError:
        return None  # no NVIDIA driver here
