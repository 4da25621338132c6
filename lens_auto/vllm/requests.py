# SPDX-License-Identifier: Apache-2.0
"""A span for each request of an engine, from its registration to its end, under what was current where it was made.

Not around `generate`: that is one call for many requests with `LLM`, and a generator that its reader holds up with
`AsyncLLM`. An engine's output processor sees every request begin and end, whichever way it came.
"""

from __future__ import annotations

import atexit
from time import monotonic_ns

from lens_auto.record.format import STATUS_ERROR, STATUS_UNSET
from lens_auto.record.span import ENDED_ALREADY, Span, current
from lens_auto.vllm.engines import PROVIDER, model_of
from lens_auto.vllm.finished import ABORTED, DEAD, OK, Figures, operation, states_of
from lens_auto.vllm.tail import Tail
from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = 'rl.vllm.request'
# The requests at work, by the engine's own ids, of each rule that makes spans of them.
_at_work: list[dict[str, Span]] = []
# Sampling parameters that differ from what they are when nobody sets them; names of the semantic conventions.
_PARAMETERS = (
    ('temperature', 'gen_ai.request.temperature', None),
    ('top_p', 'gen_ai.request.top_p', 1.0),
    ('top_k', 'gen_ai.request.top_k', 0),
    ('max_tokens', 'gen_ai.request.max_tokens', None),
    ('seed', 'gen_ai.request.seed', None),
    ('n', 'gen_ai.request.choice.count', 1),
    ('frequency_penalty', 'gen_ai.request.frequency_penalty', 0.0),
    ('presence_penalty', 'gen_ai.request.presence_penalty', 0.0),
)


def span_of(request_id: str) -> Span | None:
    """The span of a request that has not ended.

    Args:
        request_id: The engine's own id of it.
    """
    for requests in _at_work:
        span = requests.get(request_id)
        if span is not None:
            return span
    return None


class RequestSite(Site):
    """`OutputProcessor.add_request(self, request, ...)`: a request begins. Told of ends by the sites below.

    Attributes:
        at_work: The spans of requests that have not ended, by the engine's own ids.
    """

    __slots__ = ('_fixed', '_tail', 'at_work')

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._fixed: dict[str, Any] = {'lens.group': args[0]['group'], 'gen_ai.provider.name': PROVIDER}
        self._tail = Tail(self._keep)
        self.at_work: dict[str, Span] = {}
        _at_work.append(self.at_work)
        atexit.register(self._at_exit)

    def told(self, args: tuple[Any, ...]) -> None:
        """A request is about to be registered; of a streaming one, each part is.

        Args:
            args: Output processor, request, and the rest.
        """
        processor, request = args[0], args[1]
        if request.request_id in self.at_work or request.request_id in processor.request_states:
            return
        self.figures.calls += 1
        attributes = self._fixed.copy()
        parameters = request.sampling_params
        attributes['gen_ai.operation.name'] = operation(parameters is not None)
        model = model_of(processor)
        if model:
            attributes['gen_ai.request.model'] = model
        if parameters is not None:
            for name, attribute, default in _PARAMETERS:
                value = getattr(parameters, name, None)
                if value is not None and value != default and value.__class__ in (int, float):
                    attributes[attribute] = value
        lora = request.lora_request
        if lora is not None:
            attributes['rl.vllm.lora'] = str(lora.lora_name)[:256]
        up = current.get()
        span = self._recorder.open_under(up, self, NAME, self.key, attributes, self._root, False, False)
        span.late = None
        self.at_work[request.request_id] = span

    def finish(self, request_id: str, found: Figures, stats: Any, external: str | None) -> None:
        """A request has ended.

        Args:
            request_id: The engine's own id of it.
            found: What is known of it.
            stats: Its times on the engine's clock, or None.
            external: What its caller calls it.
        """
        span = self.at_work.pop(request_id, None)
        if span is None or span.epoch == ENDED_ALREADY:
            return
        end = monotonic_ns()
        assert span.attributes is not None
        attributes = span.attributes
        if external:
            attributes['gen_ai.response.id'] = str(external)[:256]
        attributes['gen_ai.response.finish_reasons'] = (found.reason,)
        answered = attributes.get('rl.vllm.lora') or attributes.get('gen_ai.request.model')
        if answered:
            attributes['gen_ai.response.model'] = answered
        attributes['gen_ai.usage.input_tokens'] = found.prompt
        attributes['gen_ai.usage.output_tokens'] = found.generated
        if found.cached:
            attributes['gen_ai.usage.cache_read.input_tokens'] = found.cached
        if found.stats:
            attributes['rl.vllm.queue_time'] = found.queue
            attributes['rl.vllm.prefill_time'] = found.prefill
            attributes['rl.vllm.decode_time'] = found.decode
            attributes['rl.vllm.time_to_first_token'] = found.first
            if found.generated > 1:
                attributes['rl.vllm.time_per_output_token'] = found.each
            if found.preemptions:
                attributes['rl.vllm.preemptions'] = found.preemptions
        if stats is not None:
            span.events = _events(stats)
        failed = found.reason not in OK
        ended = (span, end, STATUS_ERROR if failed and found.reason != ABORTED else STATUS_UNSET)
        figures = self.figures
        if figures.left:
            if figures.left > 0:
                figures.left -= 1
            self._keep(*ended)
        else:
            figures.over += self._tail.offer(ended, found.generated, failed, not self.at_work)

    def _keep(self, span: Span, end: int, status: int) -> None:
        self.figures.spans += 1
        self.figures.errors += status == STATUS_ERROR
        self.figures.nanoseconds += end - span.start
        self._recorder.close(span, end, self.key, status)

    def _at_exit(self) -> None:
        """What the engine never ended (it died, or the program is over) ends with the process."""
        self._tail.flush()
        end = monotonic_ns()
        for span in list(self.at_work.values()):
            if span.attributes is not None:
                span.attributes['lens.truncated'] = True
                self._keep(span, end, STATUS_ERROR)
        self.at_work.clear()


class _EndSite(Site):
    __slots__ = ('_request',)

    def __init__(self, request: RequestSite, *args: Any):
        """See `Site`.

        Args:
            request: What made the spans.
            args: See `Site`.
        """
        super().__init__(*args)
        self._request = request


class RequestEndSite(_EndSite):
    """`OutputProcessor._update_stats_from_finished(self, req_state, finish_reason, iteration_stats)`."""

    __slots__ = ()

    def returned(self, args: tuple[Any, ...], result: Any) -> None:
        """A request has finished.

        Args:
            args: Output processor, state, reason, statistics.
            result: None.
        """
        _, state, reason, iteration = args
        if state.request_id in self._request.at_work:
            self._request.finish(
                state.request_id, Figures(state, reason, iteration), state.stats, state.external_req_id
            )


class RequestAbortSite(_EndSite):
    """`OutputProcessor.abort_requests(self, request_ids, internal)`."""

    __slots__ = ()

    def told(self, args: tuple[Any, ...]) -> None:
        """Requests are about to be aborted.

        Args:
            args: Output processor, request ids, whether these are the engine's own.
        """
        processor, ids, internal = args
        if isinstance(ids, (list, tuple)):
            for state in states_of(processor, ids, internal):
                self._request.finish(
                    state.request_id, Figures(state, ABORTED, None), state.stats, state.external_req_id
                )


class RequestBrokenSite(_EndSite):
    """`OutputProcessor.propagate_error(self, e)`: the engine is dead."""

    __slots__ = ()

    def told(self, args: tuple[Any, ...]) -> None:
        """All its requests are about to be told.

        Args:
            args: Output processor, exception.
        """
        for state in list(args[0].request_states.values()):
            self._request.finish(state.request_id, Figures(state, DEAD, None), state.stats, state.external_req_id)


def _events(stats: Any) -> list[Any] | None:
    """When what happened: vLLM keeps monotonic seconds, the clock that all processes of a node share and we use too."""
    found = (
        ('queued', stats.queued_ts),
        ('scheduled', stats.scheduled_ts),
        ('first_token', stats.first_token_ts),
        ('last_token', stats.last_token_ts),
    )
    return [(int(at * 1e9), name, None) for name, at in found if at] or None
