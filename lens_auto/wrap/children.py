# SPDX-License-Identifier: Apache-2.0
"""Tells a child process which span it is started under: in that one child's environment, never in `os.environ`.

A child that multiprocessing makes with `spawn` or `forkserver` gets it in the configuration of its own process object,
since it has this process's environment, or the fork server's. A forked one has the span in memory. What goes on after
that span, or for others, is no part of it: workers of a pool are told nothing.
"""

from __future__ import annotations

import sys

from lens_auto.record.span import current, origin
from lens_auto.record.starter import parsed, spelled
from lens_auto.wrap.builtin import IN_PLACE
from lens_auto.wrap.code import AFTER, BEFORE
from lens_auto.wrap.direct import GIVEN
from lens_auto.wrap.programs import Becoming, Spawning, Started, Starting
from lens_auto.wrap.seams import Seams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder

SEAMS = {
    'os': (
        ('posix_spawn', IN_PLACE, 'spawning'),
        ('posix_spawnp', IN_PLACE, 'spawning'),
        ('execv', IN_PLACE, 'becoming'),
        ('execve', IN_PLACE, 'becoming'),
    ),
    'subprocess': (('Popen._execute_child', GIVEN, 'starting'), ('Popen.__init__', AFTER, 'started')),
    'multiprocessing.process': (
        ('BaseProcess.start', BEFORE, 'leaving'),
        ('BaseProcess._bootstrap', BEFORE, 'arriving'),
    ),
}
_CONFIG = 'lens_parent'
# Those serve everybody, for as long as they live.
_POOLS = ('concurrent.futures.process', 'multiprocessing.pool')


def children(recorder: Recorder, faults: Faults) -> Seams:
    """The seams of the standard library's ways to start a process.

    Args:
        recorder: The process's recorder.
        faults: Its fault count.
    """
    spawning = Spawning(recorder)
    told: dict[str, Any] = {'starting': Starting(recorder), 'started': Started(spawning)}
    told |= {'leaving': Leaving(recorder), 'arriving': Arriving(recorder)}
    told |= {'spawning': spawning, 'becoming': Becoming(recorder)}
    return Seams('subprocess', SEAMS, told, recorder, faults)


class Leaving:
    """`BaseProcess.start(self)`: a process of multiprocessing is started."""

    __slots__ = ('_recorder',)

    def __init__(self, recorder: Recorder):
        """See the class.

        Args:
            recorder: The process's recorder.
        """
        self._recorder = recorder

    def before(self, args: tuple[Any, ...]) -> None:
        """Put the current span into what the child gets.

        Args:
            args: The process object.
        """
        process = args[0]
        trace_id, span_id = self._recorder.here()
        if span_id and not _serves_a_pool(process):
            process._config[_CONFIG] = spelled(trace_id, span_id)
        else:
            process._config.pop(_CONFIG, None)  # copied from this process's own


class Arriving:
    """`BaseProcess._bootstrap(self, ...)`: the first thing a child does, if this process was there before it."""

    __slots__ = ('_recorder',)

    def __init__(self, recorder: Recorder):
        """See the class.

        Args:
            recorder: The process's recorder.
        """
        self._recorder = recorder

    def before(self, args: tuple[Any, ...]) -> None:
        """A child begins.

        Args:
            args: The process object, and the rest.
        """
        if _serves_a_pool(args[0]):
            current.set(None)
            origin.set(None)
            if self._recorder.beside is not None:
                self._recorder.beside.leave()


def of_multiprocessing() -> tuple[bytes, bytes] | None:
    """The span that the process object of this child names, or None."""
    module: Any = sys.modules.get('multiprocessing.process')
    ask = None if module is None else getattr(module, 'current_process', None)
    config: Any = None if ask is None else getattr(ask(), '_config', None)
    text = config.get(_CONFIG) if config else None
    return parsed(text) if text else None


def _serves_a_pool(process: Any) -> bool:
    return getattr(getattr(process, '_target', None), '__module__', '') in _POOLS
