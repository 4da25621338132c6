# SPDX-License-Identifier: Apache-2.0
"""What vLLM measured of a request, once it has finished: as metrics, and as what a span of the request says of it.

All times are vLLM's own. Without its statistics (`LLM` leaves them out by default) only counts and lengths are known.
"""

from __future__ import annotations

import os
import sys

from lens_auto.settings.fields import TRUE
from lens_auto.vllm.engines import PROVIDER, model_of
from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OK = ('stop', 'length')
ABORTED, DEAD = 'abort', 'engine_dead'
_TOKENS, _GENERATIONS, _SECONDS, _REASON = '{token}', '{generation}', 's', 'rl.finish_reason'
# NeMo-RL's own telemetry counts generations and tokens from the engine's registry, where it is on.
_NATIVE, _NATIVE_ON = (
    ('nemo_rl.telemetry', 'nemo.lens', 'opentelemetry.sdk'),
    ('NEMO_RL_OTEL_ENABLED', 'NEMO_LENS_ENABLED'),
)
# Modules of NeMo-RL: with the first alone, its driver counts the tokens and the time of each batch, and its rules
# record them; with the second, requests come one by one and nobody but the engine sees them.
_COUNTED_BY, _UNLESS = 'nemo_rl.models.generation.vllm.vllm_worker', 'nemo_rl.models.generation.vllm.vllm_worker_async'


class Figures:
    """A finished request in numbers; times in seconds, None where the engine kept no statistics.

    Attributes:
        reason: Why it finished: stop, length, abort, error, repetition.
        prompt: Tokens of its prompt.
        generated: Tokens generated.
        cached: Tokens of the prompt found in the prefix cache.
        stats: Whether the rest is known.
        preemptions: How often it was put back.
        total: From its arrival to its end.
        queue: In the queue, until it was first scheduled.
        prefill: From there to the first token.
        decode: From the first token to the last.
        first: From its arrival to the first token.
        each: A token after the first, on average.
    """

    __slots__ = (
        'cached',
        'decode',
        'each',
        'first',
        'generated',
        'preemptions',
        'prefill',
        'prompt',
        'queue',
        'reason',
        'stats',
        'total',
    )

    def __init__(self, state: Any, reason: Any, iteration: Any):
        """See the class.

        Args:
            state: vLLM's `RequestState`.
            reason: Its `FinishReason`, or text.
            iteration: Its `IterationStats`, after they were brought up to date; None without statistics.
        """
        self.reason = str(reason)
        self.prompt = int(state.prompt_len)
        self.cached = int(state.num_cached_tokens or 0)
        detokenizer = state.detokenizer
        self.generated = 0 if detokenizer is None else int(detokenizer.num_output_tokens())
        self.preemptions = 0
        self.total = self.queue = self.prefill = self.decode = self.first = self.each = 0.0
        finished = iteration.finished_requests[-1] if iteration is not None and iteration.finished_requests else None
        self.stats = finished is not None and finished.request_id == state.external_req_id
        if finished is None or not self.stats:
            return
        self.preemptions = int(finished.num_preemptions)
        self.total, self.queue = float(finished.e2e_latency), float(finished.queued_time)
        self.prefill, self.decode = float(finished.prefill_time), float(finished.decode_time)
        self.first = float(state.stats.first_token_latency)
        self.each = float(finished.mean_time_per_output_token)


class FinishSite(Site):
    """`OutputProcessor._update_stats_from_finished(self, req_state, finish_reason, iteration_stats)`: metrics."""

    __slots__ = ('_labels',)

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._labels: dict[str | None, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {}

    def returned(self, args: tuple[Any, ...], result: Any) -> None:
        """A request has finished.

        Args:
            args: Output processor, state, reason, statistics.
            result: None.
        """
        processor, state, reason, iteration = args
        self.figures.calls += 1
        self.record(processor, Figures(state, reason, iteration), state.detokenizer is not None)

    def record(self, processor: Any, found: Figures, generates: bool) -> None:
        """Store the points of a request.

        Args:
            processor: The output processor.
            found: What is known of the request.
            generates: It is no pooling request.
        """
        request, read, written = self._labels_of(model_of(processor), generates)
        itself = _counts_itself()
        elsewhere = counted_elsewhere()
        points: list[Any] = []
        if generates and not itself:
            outcome = 'rl.vllm.generations.ok' if found.reason in OK else 'rl.vllm.generations.failed'
            points.append((outcome, 'counter', _GENERATIONS, 1, {_REASON: found.reason}))
        if not elsewhere:
            points.append(('gen_ai.client.token.usage', 'histogram', _TOKENS, found.prompt, read))
            points.append(('rl.vllm.prompt_tokens', 'counter', _TOKENS, found.prompt, None))
            if generates:
                points.append(('gen_ai.client.token.usage', 'histogram', _TOKENS, found.generated, written))
                points.append(('rl.vllm.generation_tokens', 'counter', _TOKENS, found.generated, None))
        points.append(('rl.vllm.prompt_length', 'histogram', _TOKENS, found.prompt, None))
        if generates:
            points.append(('rl.vllm.generation_length', 'histogram', _TOKENS, found.generated, None))
        if found.stats:
            if not elsewhere:
                points.append(('gen_ai.server.request.duration', 'histogram', _SECONDS, found.total, request))
            points.append(('rl.vllm.request.queue_time', 'histogram', _SECONDS, found.queue, None))
            if found.preemptions:
                points.append(('rl.vllm.preemptions', 'counter', '{preemption}', found.preemptions, None))
            if generates and found.generated:
                points.append(('gen_ai.server.time_to_first_token', 'histogram', _SECONDS, found.first, request))
                if found.generated > 1:
                    points.append(('gen_ai.server.time_per_output_token', 'histogram', _SECONDS, found.each, request))
                points.append(('rl.vllm.request.prefill_time', 'histogram', _SECONDS, found.prefill, None))
                points.append(('rl.vllm.request.decode_time', 'histogram', _SECONDS, found.decode, None))
        self._recorder.points(self, points)
        self.figures.spans += len(points)

    def failed(self, reason: str) -> None:
        """Count a generation that came to no end of its own.

        Args:
            reason: What ended it.
        """
        self._recorder.point(self, 'rl.vllm.generations.failed', 'counter', _GENERATIONS, 1, {_REASON: reason})
        self.figures.spans += 1

    def _labels_of(self, model: str | None, generates: bool) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        key = model if generates else f'{model}\n'
        found = self._labels.get(key)
        if found is None:
            request: dict[str, Any] = {
                'gen_ai.operation.name': operation(generates),
                'gen_ai.provider.name': PROVIDER,
            }
            if model:
                request['gen_ai.request.model'] = model
            token = 'gen_ai.token.type'
            found = self._labels[key] = (request, {**request, token: 'input'}, {**request, token: 'output'})
        return found


class AbortSite(FinishSite):
    """`OutputProcessor.abort_requests(self, request_ids, internal)`: what was aborted has failed.

    vLLM itself counts no finish for it. Its states are gone when the call returns, so they are looked at before.
    """

    __slots__ = ()

    def told(self, args: tuple[Any, ...]) -> None:
        """Requests are about to be aborted.

        Args:
            args: Output processor, request ids, whether these are the engine's own.
        """
        processor, ids, internal = args
        if isinstance(ids, (list, tuple)):
            for state in states_of(processor, ids, internal):
                self.figures.calls += 1
                if state.detokenizer is not None:
                    self.failed(ABORTED)


class BrokenSite(FinishSite):
    """`OutputProcessor.propagate_error(self, e)`: the engine is dead, and with it all its requests."""

    __slots__ = ()

    def told(self, args: tuple[Any, ...]) -> None:
        """They are about to be told.

        Args:
            args: Output processor, exception.
        """
        for state in list(args[0].request_states.values()):
            self.figures.calls += 1
            if state.detokenizer is not None:
                self.failed(DEAD)


def states_of(processor: Any, ids: Any, internal: bool) -> list[Any]:
    """The states of requests, by their ids; a parent's children come by their own call.

    Args:
        processor: vLLM's `OutputProcessor`.
        ids: Request ids.
        internal: They are the engine's own; else what callers chose, each of which may stand for several.
    """
    if not internal:
        ids = [own for each in ids for own in processor.external_req_ids.get(each, ())]
    return [state for state in (processor.request_states.get(each) for each in ids) if state is not None]


def operation(generates: bool) -> str:
    """`gen_ai.operation.name`, as far as an engine knows it: what was a chat is tokens here.

    Args:
        generates: It is no pooling request.
    """
    return 'text_completion' if generates else 'embeddings'


def _counts_itself() -> bool:
    if not all(name in sys.modules for name in _NATIVE):
        return False
    said = next((os.environ[name] for name in _NATIVE_ON if name in os.environ), '')
    return said.strip().lower() in TRUE


def counted_elsewhere() -> bool:
    """True where NeMo-RL, or its rules at its driver, record the tokens and the time of what is generated."""
    return _counts_itself() or (_COUNTED_BY in sys.modules and _UNLESS not in sys.modules)
