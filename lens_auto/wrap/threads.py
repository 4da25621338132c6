# SPDX-License-Identifier: Apache-2.0
"""Carries the current span into threads: into a new one at its start, into a pool's for the time of one job.

Where no span is current, in a worker of Ray, the task goes along instead: its caller is that of the thread's spans.

Our variable alone: a copy of the whole context would bring `np.errstate` and decimal settings along, which stay behind
without us. (`asyncio.to_thread` copies the context itself.)
"""

from __future__ import annotations

import sys

from lens_auto.record.span import Span, current, origin
from lens_auto.wrap.code import AROUND, BEFORE
from lens_auto.wrap.delegated import unseen
from lens_auto.wrap.direct import GIVEN
from lens_auto.wrap.seams import Seams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder

    Carried = Span | tuple[bytes, int]

# A pool's thread belongs to nobody: it starts when the pool is made, or a job handed in, and serves others after that.
_POOLS = ('concurrent.futures.thread', 'multiprocessing.pool')
_MANAGER = 'concurrent.futures.process'  # a thread class of its own there, which calls back for all jobs
SEAMS = {
    'threading': (('Thread.start', BEFORE, 'leaving'), ('Thread._bootstrap_inner', BEFORE, 'arriving')),
    'concurrent.futures.thread': (('_WorkItem.__init__', BEFORE, 'leaving'), ('_WorkItem.run', AROUND, 'working')),
    'multiprocessing.pool': (
        ('Pool.apply_async', GIVEN, 'handing'),
        ('Pool._map_async', GIVEN, 'handing'),
        ('Pool.imap', GIVEN, 'handing'),
        ('Pool.imap_unordered', GIVEN, 'handing'),
    ),
}


def threads(recorder: Recorder, faults: Faults) -> Seams:
    """The seams of the standard library's threads and thread pools.

    Args:
        recorder: The process's recorder.
        faults: Its fault count.
    """
    # By address: an object that is gone without having run leaves its entry to the next one at that address, which
    # replaces or removes it.
    waiting: dict[int, Carried] = {}
    told: dict[str, Any] = {'leaving': Leaving(waiting, recorder), 'arriving': Arriving(waiting)}
    told |= {'working': Working(waiting), 'handing': Handing(recorder)}
    return Seams('threading', SEAMS, told, recorder, faults)


class Leaving:
    """`Thread.start(self)`, `_WorkItem.__init__(self, ...)`: the span that is current here is to be so there."""

    __slots__ = ('_recorder', '_waiting')

    def __init__(self, waiting: dict[int, Carried], recorder: Recorder):
        """See the class.

        Args:
            waiting: What is on its way, by the address of the thread or job.
            recorder: The process's recorder.
        """
        self._waiting = waiting
        self._recorder = recorder

    def before(self, args: tuple[Any, ...]) -> None:
        """A thread is started, or a job made.

        Args:
            args: The thread or job, and the rest.
        """
        carried = _carried(self._recorder)
        if carried is not None and not _serves_a_pool(args[0]):
            self._waiting[id(args[0])] = carried
        elif self._waiting:
            self._waiting.pop(id(args[0]), None)


class Arriving:
    """`Thread._bootstrap_inner(self)`: the first thing a new thread runs. Its context is its own and ends with it."""

    __slots__ = ('_waiting',)

    def __init__(self, waiting: dict[int, Carried]):
        """See the class.

        Args:
            waiting: See `Leaving`.
        """
        self._waiting = waiting

    def before(self, args: tuple[Any, ...]) -> None:
        """A thread begins.

        Args:
            args: The thread.
        """
        carried = self._waiting.pop(id(args[0]), None)
        if carried is not None:
            _arrive(carried)


class Working:
    """`_WorkItem.run(self)`: a job of a pool, in a thread that has run others and will run more."""

    __slots__ = ('_waiting',)

    def __init__(self, waiting: dict[int, Carried]):
        """See the class.

        Args:
            waiting: See `Leaving`.
        """
        self._waiting = waiting

    def before(self, args: tuple[Any, ...]) -> tuple[Span | None, tuple[bytes, int] | None] | None:
        """A job begins; the answer holds what was current in this thread.

        Args:
            args: The job.
        """
        carried = self._waiting.pop(id(args[0]), None)
        if carried is None:
            return None
        outside = (current.get(), origin.get())
        _arrive(carried)
        return outside

    def after(self, args: tuple[Any, ...], outside: tuple[Span | None, tuple[bytes, int] | None]) -> None:
        """It is over.

        Args:
            args: The job.
            outside: From `before`.
        """
        current.set(outside[0])
        origin.set(outside[1])


class Handing:
    """`Pool.apply_async(self, func, ...)` and the like: a job is handed to a `multiprocessing.pool.ThreadPool`.

    What such a pool's threads are given is the function and its arguments, with nothing in between to hang a span on.
    """

    __slots__ = ('_recorder',)

    def __init__(self, recorder: Recorder):
        """See the class.

        Args:
            recorder: The process's recorder.
        """
        self._recorder = recorder

    def before(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """A job is handed in; the answer has one in its place that runs it under the span of here.

        Args:
            args: The pool, the function, and the rest.
        """
        pool, function, *rest = args
        carried = _carried(self._recorder)
        if carried is None or not isinstance(pool, sys.modules['multiprocessing.pool'].ThreadPool):
            return None
        return pool, _Job(function, carried), *rest


class _Job:
    """A job of a thread pool that brings along what was current where it was handed in."""

    __slots__ = ('_carried', '_function')

    def __init__(self, function: Any, carried: Carried):
        self._function = function
        self._carried = carried

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        outside = (current.get(), origin.get())
        _arrive(self._carried)
        try:
            return self._function(*args, **keywords)
        except:
            unseen()
            raise
        finally:
            current.set(outside[0])
            origin.set(outside[1])


def _carried(recorder: Recorder) -> Carried | None:
    """What is current here: a span, or in a worker of Ray the task."""
    here: Carried | None = current.get()
    return recorder.origin() if here is None and recorder.origin is not None else here


def _serves_a_pool(thread: Any) -> bool:
    target = getattr(getattr(thread, '_target', None), '__module__', '')
    return target in _POOLS or type(thread).__module__ == _MANAGER


def _arrive(carried: Carried) -> None:
    if isinstance(carried, Span):
        current.set(carried)
    else:
        origin.set(carried)
