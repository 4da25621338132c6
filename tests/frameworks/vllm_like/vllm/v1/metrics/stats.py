# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class RequestStateStats:
    arrival_time: float
    num_generation_tokens: int = 0
    num_preemptions: int = 0
    queued_ts: float = 0.0
    scheduled_ts: float = 0.0
    first_token_ts: float = 0.0
    last_token_ts: float = 0.0
    first_token_latency: float = 0.0


@dataclass
class FinishedRequestStats:
    request_id: str
    finish_reason: Any
    e2e_latency: float
    queued_time: float
    prefill_time: float
    decode_time: float
    mean_time_per_output_token: float
    num_preemptions: int


@dataclass
class IterationStats:
    iteration_timestamp: float = field(default_factory=time.time)
    num_generation_tokens: int = 0
    finished_requests: list[FinishedRequestStats] = field(default_factory=list)

    def update_from_finished_request(self, finish_reason: Any, request_id: str, req_stats: RequestStateStats) -> None:
        decode = req_stats.last_token_ts - req_stats.first_token_ts
        finished = FinishedRequestStats(
            request_id,
            finish_reason,
            self.iteration_timestamp - req_stats.arrival_time,
            req_stats.scheduled_ts - req_stats.queued_ts,
            req_stats.first_token_ts - req_stats.scheduled_ts,
            decode,
            decode / max(1, req_stats.num_generation_tokens - 1),
            req_stats.num_preemptions,
        )
        self.finished_requests.append(finished)
