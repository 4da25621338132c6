# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import time
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

from vllm.v1.metrics.stats import IterationStats, RequestStateStats


class FinishReason(enum.IntEnum):
    STOP = 0
    LENGTH = 1
    ABORT = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()


class Detokenizer:
    def __init__(self) -> None:
        self.count = 0

    def num_output_tokens(self) -> int:
        return self.count


class OutputProcessor:
    def __init__(self, tokenizer: Any, *, log_stats: bool, tracing_enabled: bool = False) -> None:
        self.log_stats = log_stats
        self.tracing_enabled = tracing_enabled
        self.request_states: dict[str, Any] = {}
        self.external_req_ids: defaultdict[str, list[str]] = defaultdict(list)

    def add_request(
        self, request: Any, prompt: str | None, parent_req: Any = None, request_index: int = 0, queue: Any = None
    ) -> None:
        stats = RequestStateStats(time.time(), queued_ts=time.monotonic()) if self.log_stats else None
        self.request_states[request.request_id] = SimpleNamespace(
            request_id=request.request_id,
            external_req_id=request.external_req_id,
            prompt_len=len(request.prompt_token_ids),
            num_cached_tokens=request.cached,
            detokenizer=None if request.sampling_params is None else Detokenizer(),
            stats=stats,
            queue=queue,
        )
        self.external_req_ids[request.external_req_id].append(request.request_id)

    def finish(self, request_id: str, reason: FinishReason, tokens: int, iteration: IterationStats | None) -> None:
        """As process_outputs does with the last tokens of a request."""
        state = self.request_states.pop(request_id)
        self.external_req_ids.pop(state.external_req_id, None)
        if state.detokenizer is not None:
            state.detokenizer.count = tokens
        if state.stats is not None:
            stats, now = state.stats, time.monotonic()
            stats.num_generation_tokens, stats.num_preemptions = tokens, 1
            stats.scheduled_ts = stats.queued_ts + 0.25 * (now - stats.queued_ts)
            stats.first_token_ts = stats.queued_ts + 0.5 * (now - stats.queued_ts)
            stats.last_token_ts = now
            stats.first_token_latency = stats.first_token_ts - stats.queued_ts
        self._update_stats_from_finished(state, reason, iteration)

    def abort_requests(self, request_ids: Any, internal: bool) -> list[str]:
        ids = request_ids if internal else [own for each in request_ids for own in self.external_req_ids.pop(each, ())]
        return [each for each in ids if self.request_states.pop(each, None) is not None]

    def propagate_error(self, e: Exception) -> None:
        for _ in self.request_states.values():
            pass

    def _update_stats_from_finished(
        self, req_state: Any, finish_reason: FinishReason | None, iteration_stats: IterationStats | None
    ) -> None:
        if iteration_stats is None:
            return
        iteration_stats.update_from_finished_request(finish_reason, req_state.external_req_id, req_state.stats)
