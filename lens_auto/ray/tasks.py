# SPDX-License-Identifier: Apache-2.0
"""Ray's task ids: the caller has one from the ref it is given, the worker from its core worker, and they are the same.

Each side stores what it knows and the collector joins them. So nothing travels with the call: no argument, no changed
signature or pickle, and a worker without us cannot notice. Both answers were checked on Ray 2.40, 2.48 and 2.60 for
tasks, generators, `__init__`, sync, async and threaded methods, static and class methods, and retries.
"""

from __future__ import annotations

import sys
from time import monotonic_ns

from lens_auto.ray.identity import Identity
from lens_auto.record.foreign import foreign
from lens_auto.record.format import CALLED, TASK
from lens_auto.record.ranks import in_ray_worker
from lens_auto.record.span import current, origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span

# Names of submitted tasks kept for `ray.get` to say what it waits for; the older half goes when there are this many.
_REMEMBERED = 20_000


class Tasks:
    """The Ray task this code runs in, and the tasks it submits.

    Attributes:
        names: What each task submitted from here runs ('Class.method' or 'function'), by task id. None while nobody
            wants to know.
    """

    __slots__ = ('_alone', '_assigned', '_faults', '_identity', '_put', '_recorder', '_worker', 'names')

    def __init__(self, recorder: Recorder, faults: Faults, ranked: Callable[[], None]):
        """See the class.

        Args:
            recorder: The process's recorder.
            faults: Its fault count.
            ranked: See `Identity`.
        """
        self._recorder = recorder
        self._faults = faults
        self._worker = in_ray_worker()
        self._identity = Identity(recorder, ranked)
        self.names: dict[bytes, str] | None = None
        self._put = recorder.journal.put
        # Nobody wants to know of a call without a span around it.
        self._alone = not self._worker
        self._assigned: Any = None

    def select(self, on: bool) -> None:
        """Tell the recorder whether to ask for the task of a span that nothing encloses.

        Args:
            on: This process records spans.
        """
        self._recorder.task = self._first if on and self._worker else None
        self._recorder.origin = self._origin if on and self._worker else None

    def creating(self, actor_class: str) -> None:
        """Ray has loaded an actor's class; see `Identity.creating`.

        Args:
            actor_class: Its name.
        """
        if self._worker:
            self._identity.creating(actor_class)

    def _first(self, span: Span) -> None:
        """A span begins that nothing here encloses: its parent is whoever submitted the task; the collector knows."""
        try:
            core = self._core()
            if core is None:
                return
            self._identity.tell(core)
            found = origin.get() or _current_task(core)
            if found is None:
                return
            task, attempt = found
            self._recorder.journal.put((TASK, monotonic_ns(), span.span_id, task, attempt))
            span.trace_id = span.trace_id + span.span_id
        except Exception as error:
            if foreign(error):
                raise
            self._recorder.task = None
            self._faults.take('ray task', '', error)

    def _origin(self) -> tuple[bytes, int] | None:
        """The task whose code starts a thread while no span is current, with its attempt."""
        core = self._core()
        return None if core is None else origin.get() or _current_task(core)

    def _core(self) -> Any:
        """Ray's core worker, once this worker has a job.

        A worker runs code before it has one: a hook that sets up tracing or the process, modules loaded ahead. A core
        worker that is asked for its task then ends the process, which nothing can catch.
        """
        core = core_worker()
        if core is not None and core is not self._assigned:
            if core.get_current_job_id().is_nil():
                return None
            self._assigned = core
        return core

    def submitted(self, result: Any, name: Callable[[Any], str], target: Any) -> None:
        """Ray has taken a call: note its task, and under which span it was made.

        Asked for by every call of the run, so what nobody wants to know is not found out.

        Args:
            result: What the `.remote()` call returned.
            name: Says what the task runs, of `target`.
            target: What was called.
        """
        up = current.get()
        if up is None and self._alone:
            return
        ask = getattr(result, 'task_id', None)
        task = task_of(result) if ask is None else ask().binary()
        if task is not None:
            self.note(task, up, name, target)

    def note(self, task: bytes, up: Span | None, name: Callable[[Any], str], target: Any) -> None:
        """Note a task that this process has submitted.

        Args:
            task: Its id.
            up: The span it belongs to, or None.
            name: See `submitted`.
            target: See `submitted`.
        """
        if up is not None:
            self._put((CALLED, monotonic_ns(), task, up.trace_id, up.span_id, ''))
        elif self._worker:
            # No span here, but this is a task itself: who called it is who called that one.
            outer = self._origin()
            if outer is not None:
                self._put((CALLED, monotonic_ns(), task, b'', outer[0], ''))
        names = self.names
        if names is not None:
            if len(names) >= _REMEMBERED:
                for old in list(names)[: _REMEMBERED // 2]:
                    names.pop(old, None)
            names[task] = name(target)

    def remember(self) -> None:
        """From here on, keep what each submitted task runs."""
        if self.names is None:
            self.names = {}
        self._alone = False


def _current_task(core: Any) -> tuple[bytes, int] | None:
    task = core.get_current_task_id()
    if task.is_nil():
        return None
    number = getattr(core, 'get_current_task_attempt_number', None)
    return task.binary(), max(0 if number is None else int(number()), 0)


def core_worker() -> Any:
    """Ray's core worker of this process, or None while there is none."""
    worker: Any = getattr(sys.modules.get('ray._private.worker'), 'global_worker', None)
    return getattr(worker, 'core_worker', None)


def task_of(result: Any) -> bytes | None:
    """The id of the task behind what a `.remote()` call returned; None for `num_returns=0`.

    Args:
        result: A ref, a list of them, a generator of refs, or None.
    """
    kind: object = result.__class__
    first: Any = result
    if kind is list:
        first = result[0] if result else None
    ask = getattr(getattr(first, '_generator_ref', first), 'task_id', None)
    return None if ask is None else ask().binary()
