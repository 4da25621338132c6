# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from vllm.engine.arg_utils import EngineArgs
from vllm.v1.engine.output_processor import FinishReason, OutputProcessor
from vllm.v1.metrics.loggers import StatLoggerManager
from vllm.v1.metrics.stats import IterationStats


class LLMEngine:
    def __init__(self, vllm_config: Any, log_stats: bool) -> None:
        self.model_config = vllm_config.model_config
        self.traceparent = os.environ.get('traceparent')
        tracing = vllm_config.observability_config.otlp_traces_endpoint is not None
        self.output_processor = OutputProcessor(None, log_stats=log_stats, tracing_enabled=tracing)
        self.logger_manager = StatLoggerManager()
        self.log_stats = log_stats
        self.sent: list[Any] = []

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs) -> LLMEngine:
        return cls(engine_args.create_engine_config(), not engine_args.disable_log_stats)

    def add_request(self, number: int, tokens: int, parameters: Any, headers: Any = None) -> str:
        request = SimpleNamespace(
            request_id=f'{number}-0000',
            external_req_id=str(number),
            prompt_token_ids=[1] * (number + 1),
            cached=number % 2,
            sampling_params=parameters,
            lora_request=None,
            trace_headers=headers,
        )
        self.output_processor.add_request(request, None, None, 0)
        self.sent.append(request)
        return request.request_id

    def step(self, finished: dict[str, tuple[FinishReason, int]]) -> None:
        iteration = IterationStats() if self.log_stats else None
        for request_id, (reason, tokens) in finished.items():
            self.output_processor.finish(request_id, reason, tokens, iteration)
        if iteration is None:
            return
        running = len(self.output_processor.request_states)
        prefix = SimpleNamespace(queries=10, hits=4)
        self.logger_manager.record(
            SimpleNamespace(
                num_running_reqs=running, num_waiting_reqs=0, kv_cache_usage=0.5, prefix_cache_stats=prefix
            ),
            iteration,
        )
