# SPDX-License-Identifier: Apache-2.0
"""The one call kind without a task id for its caller: an actor's method with `num_returns=0`, which returns no ref.

There the caller's ids go along in `_ray_trace_ctx`. Ray itself declares that parameter on sync and async methods of
every actor class and swallows it in the worker when its own tracing is off, with us there or not; it never reaches user
code. Where it is not declared (generators, static and class methods) or Ray traces, nothing goes along.
"""

from __future__ import annotations

import sys
from time import monotonic_ns

from lens_auto.record.format import CALLED
from lens_auto.record.span import current
from lens_auto.record.standard import FunctionType
from lens_auto.wrap.code import BEFORE, Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.recorder import Recorder

PARAMETER = '_ray_trace_ctx'
_ID = 8


def attach(handle: Any, method: str, kwargs: Any) -> None:
    """Put the current span's ids into a call's keyword arguments, where Ray takes them out again.

    Args:
        handle: The actor's handle.
        method: The method called.
        kwargs: The call's keyword arguments.
    """
    span = current.get()
    if span is None or type(kwargs) is not dict or PARAMETER in kwargs or _ray_traces():
        return
    signature = handle._ray_method_signatures.get(method) or ()
    # Last, or last but one where the method has **kwargs.
    if any(parameter.name == PARAMETER for parameter in signature[-2:]):
        kwargs[PARAMETER] = span.trace_id + span.span_id


def detach(kwargs: Any) -> None:
    """Take them out again: the caller may have passed a dict of its own.

    Args:
        kwargs: See `attach`.
    """
    if kwargs and isinstance(kwargs.get(PARAMETER), bytes):
        del kwargs[PARAMETER]


class Carriers:
    """`_resume_span(self, *_args, _ray_trace_ctx=None, **_kwargs)`, which Ray puts around an actor's methods."""

    __slots__ = ('_recorder', '_sites', 'key', 'patches')

    def __init__(self, recorder: Recorder, sites: dict[str, Any]):
        """See the class.

        Args:
            recorder: The process's recorder.
            sites: The process's sites, by key.
        """
        self.key = 'ray:carrier'
        self.patches: list[Patch] = []
        self._recorder = recorder
        self._sites = sites

    def receive(self, loaded: type) -> None:
        """Have the methods of an actor's class told of what they are sent.

        Args:
            loaded: The class, as Ray has loaded it.
        """
        self._sites[self.key] = self
        for member in vars(loaded).values():
            function = member if isinstance(member, FunctionType) else None
            if function is not None and function.__code__.co_name == '_resume_span':
                self.patches.append(Patch(function, self.key, BEFORE))

    def select(self, on: bool) -> None:
        """Have them told of it, or leave them as Ray made them.

        Args:
            on: This process records spans.
        """
        if on and self.patches:
            self._sites[self.key] = self
        for patch in self.patches:
            (patch.reopen if on else patch.shut)()

    def told(self, args: tuple[Any, ...]) -> None:
        """A method begins: say on the caller's behalf that it called this task.

        Args:
            args: The actor, what was carried, and the rest.
        """
        carried = args[1]
        if type(carried) is not bytes:
            return
        core = getattr(getattr(sys.modules.get('ray._private.worker'), 'global_worker', None), 'core_worker', None)
        task = None if core is None else core.get_current_task_id()
        if task is not None and not task.is_nil():
            self._recorder.journal.put((CALLED, monotonic_ns(), task.binary(), carried[:-_ID], carried[-_ID:], ''))


def _ray_traces() -> bool:
    tracing: Any = sys.modules.get('ray.util.tracing.tracing_helper')
    return tracing is None or bool(tracing._is_tracing_enabled())
