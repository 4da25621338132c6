# SPDX-License-Identifier: Apache-2.0
"""What an engine's processes do for a call of another one is below that call: weights that are loaded, above all.

A call of the engine goes from its client to the engine core, which may pass it on to its workers. Nothing is sent
along: client and core both know the number that vLLM gives the call, core and workers the queue between them and how
many calls of a method have gone through it. Each journals what it knows, and the collector joins them, as it joins
tasks of Ray.
"""

from __future__ import annotations

from contextvars import ContextVar
from time import monotonic_ns

from lens_auto.record.format import CALLED, TASK
from lens_auto.record.span import current
from lens_auto.vllm.starting import WORKER, name_process
from lens_auto.vllm.steps import Step
from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token
    from typing import Any

    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span

NAME = 'rl.vllm.engine_core.call'
_UTILITY = b'\x03'  # `EngineCoreRequestType.UTILITY`: a call that is no request for tokens
_FIELDS = 4  # client, number of the call, method, arguments
# Each step of the engine is such calls; there is no span in them to be joined.
_STEPS = frozenset(('execute_model', 'sample_tokens', 'execute_dummy_batch', 'take_draft_token_ids'))
# Calls that change nothing, or nothing that anybody waits for.
_QUESTIONS = ('get_', 'is_', 'list_', 'execute_', 'reset_mm_', 'reset_encoder_')
_FUNCTION = '()'  # a function that is sent itself

# The call that this process is at work for.
_served: ContextVar[bytes | None] = ContextVar('lens_vllm_served', default=None)


class CallSite(Site):
    """`SyncMPClient._send_input(self, request_type, request)`, `AsyncMPClient._send_input_message(self, message, ...)`.

    The caller's side.
    """

    __slots__ = ()

    def told(self, args: tuple[Any, ...]) -> None:
        """Something is about to be sent to an engine core.

        Args:
            args: Client, and what is sent.
        """
        up = current.get()
        if up is None:
            return
        kind = args[1]
        if kind.__class__ is tuple:  # the message, encoded: its number is the last that the client has noted
            if kind[0] != _UTILITY:
                return
            number = next(reversed(args[0].utility_results))
        elif kind.value == _UTILITY and len(args[2]) == _FIELDS:
            number = args[2][1]
        else:
            return
        self.figures.calls += 1
        self._recorder.journal.put((CALLED, monotonic_ns(), _call(number), up.trace_id, up.span_id, ''))


class ServeSite(Site):
    """`EngineCoreProc._handle_client_request(self, request_type, request)`: the engine core does what it is told to."""

    __slots__ = ('_before', '_fixed')

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._before: dict[bytes, Token[bytes | None]] = {}
        self._fixed: dict[str, Any] = {'lens.group': args[0]['group'], 'rl.backend': 'vllm'}

    def open(self, args: tuple[Any, ...], attach: bool) -> Any:
        """It is about to. See `Site.open`."""
        kind, request = args[1], args[2]
        if kind.value != _UTILITY or len(request) != _FIELDS or request[2].startswith(_QUESTIONS):
            return None
        self.figures.calls += 1
        before = _serve(self._recorder, _call(request[1]))
        attributes = {**self._fixed, 'rl.vllm.method': request[2][:256]}
        span = self._recorder.open_under(current.get(), self, NAME, self.key, attributes, False, False, attach)
        span.late = None
        self._before[span.span_id] = before
        return span

    def leave(self, span: Span, result: Any) -> None:
        """It has. See `Site.leave`."""
        self._over(span)
        super().leave(span, result)

    def fail(self, span: Span, error: BaseException) -> None:
        """It could not. See `Site.fail`."""
        self._over(span)
        super().fail(span, error)

    def cut(self, span: Span) -> None:
        """See `Site.cut`."""
        self._over(span)
        super().cut(span)

    def _over(self, span: Span) -> None:
        before = self._before.pop(span.span_id, None)
        if before is not None:
            _served.reset(before)


class BroadcastSite(Site):
    """`MultiprocExecutor.collective_rpc(self, method, ...)`: the engine core has its workers do something."""

    __slots__ = ('_counts',)

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._counts: dict[tuple[str, str], int] = {}

    def told(self, args: tuple[Any, ...]) -> None:
        """It is about to.

        Args:
            args: Executor, method, and the rest.
        """
        if args[1] in _STEPS:
            return
        number = _broadcast(args[0], args[1], self._counts)
        if number is None:
            return
        up = current.get()
        if up is not None:
            self.figures.calls += 1
            self._recorder.journal.put((CALLED, monotonic_ns(), number, up.trace_id, up.span_id, ''))


class WorkSite(Site):
    """`WorkerProc._execute_worker_rpc(self, rpc_request)`: a worker does what its engine core has told it to."""

    __slots__ = ('_counts',)

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._counts: dict[tuple[str, str], int] = {}

    def open(self, args: tuple[Any, ...], attach: bool) -> Any:
        """It is about to. See `Site.open`."""
        name_process(self._recorder, WORKER)
        method = args[1][0]
        if method in _STEPS:
            return None
        number = _broadcast(args[0], method, self._counts)
        if number is None:
            return None
        self.figures.calls += 1
        return _Work(self, _serve(self._recorder, number))

    def leave(self, span: Any, result: Any) -> None:
        """It has.

        Args:
            span: From `open`.
            result: None.
        """
        span.epoch = -1
        _served.reset(span.before)

    def fail(self, span: Any, error: BaseException) -> None:
        """It could not.

        Args:
            span: From `open`.
            error: Why.
        """
        self.leave(span, None)

    def cut(self, span: Any) -> None:
        """An exception on its way to the program has cut our part of the call short.

        Args:
            span: From `open`.
        """
        self.leave(span, None)


class _Work(Step):
    """A call that a worker is at work for."""

    __slots__ = ('before',)

    def __init__(self, site: Site, before: Token[bytes | None]):
        super().__init__(site)
        self.before = before


def _serve(recorder: Recorder, number: bytes) -> Token[bytes | None]:
    if not isinstance(recorder.task, _First):
        # The workers may be actors of Ray, whose own tasks count for what is in no call.
        recorder.task = _First(recorder)
    return _served.set(number)


class _First:
    """Told of spans that nothing in their process encloses, as `Recorder.task`."""

    __slots__ = ('_else', '_recorder')

    def __init__(self, recorder: Recorder):
        self._recorder = recorder
        self._else = recorder.task

    def __call__(self, span: Span) -> None:
        served = _served.get()
        if served is not None:
            self._recorder.journal.put((TASK, monotonic_ns(), span.span_id, served, 0))
            span.trace_id = span.trace_id + span.span_id
        elif self._else is not None:
            self._else(span)


def _call(number: int) -> bytes:
    return b'vllm call %d' % number


def _broadcast(holder: Any, method: Any, counts: dict[tuple[str, str], int]) -> bytes | None:
    """A call on its way through the queue of an executor, or of its worker; None where that cannot be known again."""
    buffer = getattr(holder.rpc_broadcast_mq, 'buffer', None)
    queue = getattr(getattr(buffer, 'shared_memory', None), 'name', None)
    if queue is None:
        return None
    word = method if isinstance(method, str) else _FUNCTION
    number = counts[queue, word] = counts.get((queue, word), 0) + 1
    return f'vllm {queue} {word} {number}'.encode()
