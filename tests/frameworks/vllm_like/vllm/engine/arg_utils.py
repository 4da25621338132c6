# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import vllm.tracing


@dataclass
class EngineArgs:
    model: str = 'tiny'
    disable_log_stats: bool = False
    otlp_traces_endpoint: str | None = None

    def create_engine_config(self, usage_context: Any = None, headless: bool = False) -> Any:
        if self.otlp_traces_endpoint is not None and not vllm.tracing.is_tracing_available():
            raise ValueError('OpenTelemetry is not available')
        return SimpleNamespace(
            model_config=SimpleNamespace(model=self.model, served_model_name=None),
            observability_config=SimpleNamespace(otlp_traces_endpoint=self.otlp_traces_endpoint),
        )
