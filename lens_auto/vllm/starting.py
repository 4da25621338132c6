# SPDX-License-Identifier: Apache-2.0
"""The start of an engine: the span of what makes it, and below it those of the processes that it starts meanwhile.

A child gets the id of the span it is started under in its environment, which spawned and forked processes inherit
alike. It counts for what begins with nothing current, and only at the functions named here: what an engine's process
does later has other parents.
"""

from __future__ import annotations

import os
import sys

from lens_auto.record.span import current
from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span

PARENT = 'LENS_VLLM_PARENT'
_NAMES = {
    'LLMEngine.__init__': 'rl.vllm.load_model',
    'AsyncLLM.__init__': 'rl.vllm.load_model',
    'EngineCoreProc.__init__': 'rl.vllm.engine_core.start',
    'WorkerProc.__init__': 'rl.vllm.worker.start',
    'DPCoordinatorProc.__init__': 'rl.vllm.coordinator.start',
    # The engine core asks for these when the worker has started.
    'Worker.compile_or_warm_up_model': 'rl.vllm.worker.warm_up',
    'CPUWorker.compile_or_warm_up_model': 'rl.vllm.worker.warm_up',
}
CORE, WORKER = 'vllm engine core', 'vllm worker'
_CORE = 'EngineCoreProc.__init__'
_ROLES = {
    _CORE: CORE,
    'WorkerProc.__init__': WORKER,
    'DPCoordinatorProc.__init__': 'vllm coordinator',
}
_SERVER, _SERVER_NAME = 'vllm api server', 'ApiServer'
_ENGINE = 'rl.vllm.engine'  # which one of several; the metrics of the front end have it as a label
_named = 0  # the process that has been
_SPAN, _TRACES = 8, (16, 24)


class StartSite(Site):
    """One of the functions that start what an engine is made of."""

    __slots__ = ('_before', '_fixed', '_qualname', '_span_name')

    def __init__(self, qualname: str, *args: Any):
        """See `Site`.

        Args:
            qualname: The function.
            args: See `Site`.
        """
        super().__init__(*args)
        self._qualname = qualname
        self._span_name = _NAMES[qualname]
        self._before: dict[bytes, str | None] = {}
        self._fixed: dict[str, Any] = {'lens.group': args[0]['group'], 'rl.backend': 'vllm'}

    def open(self, args: tuple[Any, ...], attach: bool) -> Any:
        """Something is about to be started. See `Site.open`."""
        self.figures.calls += 1
        role = _ROLES.get(self._qualname) or _role_by_name()
        fixed = self._fixed.copy()
        if self._qualname == _CORE:
            fixed[_ENGINE] = _index(args)
        if role is not None:
            name_process(self._recorder, role, fixed.get(_ENGINE))
        up = current.get()
        span = self._recorder.open_under(up, self, self._span_name, self.key, fixed, False, False, attach)
        span.late = None
        if up is not None and up.epoch != self._recorder.epoch:
            # Forked in the middle of its parent's start: what this process does when it has started is no part of that.
            span.up = None
        before = os.environ.get(PARENT)
        if up is None and before:
            _adopt(span, before)
        self._recorder.announce(span, self.key)
        self._before[span.span_id] = before
        os.environ[PARENT] = f'{span.trace_id.hex()}-{span.span_id.hex()}'
        return span

    def leave(self, span: Span, result: Any) -> None:
        """It has started. See `Site.leave`."""
        self._restore(span)
        super().leave(span, result)

    def fail(self, span: Span, error: BaseException) -> None:
        """It could not start. See `Site.fail`."""
        self._restore(span)
        super().fail(span, error)

    def cut(self, span: Span) -> None:
        """See `Site.cut`."""
        self._restore(span)
        super().cut(span)

    def _restore(self, span: Span) -> None:
        before = self._before.pop(span.span_id, None)
        if before is None:
            os.environ.pop(PARENT, None)
        else:
            os.environ[PARENT] = before


def name_process(recorder: Recorder, role: str, engine: int | None = None) -> None:
    """Say what this process is, once.

    Args:
        recorder: Its recorder.
        role: One of `CORE`, `WORKER` and their like.
        engine: Which of several engines.
    """
    global _named
    if _named == os.getpid():  # a fork is another one
        return
    _named = os.getpid()
    recorder.resource({'lens.role': role} if engine is None else {'lens.role': role, _ENGINE: engine})


def _role_by_name() -> str | None:
    """One of several processes of `vllm serve` that answer requests; they make their engine's client as others do."""
    multiprocessing: Any = sys.modules.get('multiprocessing')
    name = '' if multiprocessing is None else str(multiprocessing.current_process().name)
    return _SERVER if name.startswith(_SERVER_NAME) else None


def _index(args: tuple[Any, ...]) -> int:
    """`engine_index`, the last parameter of `EngineCoreProc.__init__`; 0 where there is one engine."""
    last = args[-1]
    if last.__class__ is dict:
        last = last.get('engine_index')
    return last if last.__class__ is int else 0


def _adopt(span: Span, text: str) -> None:
    trace, _, parent = text.partition('-')
    try:
        trace_id, parent_id = bytes.fromhex(trace), bytes.fromhex(parent)
    except ValueError:
        return
    if len(parent_id) == _SPAN and len(trace_id) in _TRACES:
        span.trace_id, span.parent_id = trace_id, parent_id
