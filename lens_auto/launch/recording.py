# SPDX-License-Identifier: Apache-2.0
"""The collector beside the command, from its start to the summary.

Everything here runs in threads of its own and behind one boundary: an error of ours is one line on stderr, and neither
the command nor its exit code ever hears of it.
"""

from __future__ import annotations

import _thread
import time

from lens_auto.launch.output import fault, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lens_auto.collect.collector import Collector
    from lens_auto.launch.prepare import Prepared
    from lens_auto.launch.progress import Progress

# The launcher ends this long after the command, whatever a disk or a backend does; the rest stays in the spool.
_LIMIT = 2.0


class Recording:
    """The collecting side of one run.

    Attributes:
        doubts: After `end`: what `--strict` counts as a failure, a line each.
    """

    __slots__ = ('_collector', '_prepared', '_progress', '_started', '_steps', '_summary', 'doubts')

    def __init__(self, prepared: Prepared, summary: bool, progress: Progress | None = None, steps: int = 0) -> None:
        self._prepared = prepared
        self._summary = summary
        self._progress = progress
        self._steps = steps
        self._collector: Collector | None = None
        self._started = _thread.allocate_lock()
        self.doubts: list[str] = []

    def begin(self) -> None:
        """Start collecting, without waiting for the imports that takes."""
        self._started.acquire()
        _in_thread(self._start, self._started)

    def end(self, status: int) -> None:
        """Collect what is left and print the summary.

        Args:
            status: The command's wait status.
        """
        done = _thread.allocate_lock()
        done.acquire()
        deadline = time.monotonic() + _LIMIT
        _in_thread(lambda: self._finish(status, deadline), done)
        if not done.acquire(timeout=_LIMIT):
            path = self._prepared.folder.path
            say(f'the run folder is not complete yet; `lens-instrument --replay {path}` finishes it')

    def _start(self) -> None:
        from lens_auto.launch.collecting import collector

        self._collector = collector(self._prepared, self._progress, self._steps)
        if self._progress is not None:
            self._progress.start()

    def _finish(self, status: int, deadline: float) -> None:
        if not self._started.acquire(timeout=deadline - time.monotonic()) or self._collector is None:
            return
        if self._progress is not None:
            self._progress.stop()
        from lens_auto.launch.collecting import finish

        # A fifth for the summary.
        self.doubts = finish(
            self._collector, self._prepared, status, 0.8 * (deadline - time.monotonic()), self._summary
        )


def _in_thread(what: Callable[[], None], done: _thread.LockType) -> None:
    def run() -> None:
        try:
            what()
        except BaseException as error:  # the boundary
            fault('this run is not recorded completely', error)
        finally:
            done.release()

    try:
        _thread.start_new_thread(run, ())
    except RuntimeError as error:  # no more threads for this user
        fault('this run is not collected', error)
        done.release()
