# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from vllm.engine.arg_utils import EngineArgs
from vllm.v1.engine.llm_engine import LLMEngine
from vllm.v1.engine.output_processor import FinishReason


class LLM:
    def __init__(self, model: str, **options: Any) -> None:
        options.setdefault('disable_log_stats', True)
        self.llm_engine = LLMEngine.from_engine_args(EngineArgs(model, **options))
        self.model_config = self.llm_engine.model_config

    def generate(self, prompts: list[int], sampling_params: Any = None, *, use_tqdm: bool = True) -> list[Any]:
        """Each prompt generates as many tokens as it says, 0 standing for an error; the last one first."""
        engine = self.llm_engine
        parameters = sampling_params or SimpleNamespace(temperature=0.5, top_p=1.0, max_tokens=9, n=1, seed=None)
        ids = [engine.add_request(number, tokens, parameters) for number, tokens in enumerate(prompts)]
        for number, request_id in reversed(list(enumerate(ids))):
            time.sleep(0.002)
            tokens = prompts[number]
            reason = FinishReason.LENGTH if tokens else FinishReason.ERROR
            engine.step({request_id: (reason, tokens)})
        return [SimpleNamespace(outputs=[tokens]) for tokens in prompts]
