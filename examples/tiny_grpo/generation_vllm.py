# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""The same generation by a vLLM engine, which reads the policy's weights from a checkpoint."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt

from .config import GrpoConfig
from .generation import Rollouts
from .gpt2_shape import gpt2_config, gpt2_weights
from .task import END, Problem


class VllmGeneration:
    """Stands in for `Generation`; the engine runs in this process or in its own, as vLLM is told to."""

    def __init__(self, config: GrpoConfig, weights: dict[str, Tensor]) -> None:
        self._config = config
        self._weight_version: int | None = None
        self._folder = tempfile.TemporaryDirectory(prefix='tiny-grpo-')
        self._write(weights)
        (Path(self._folder.name) / 'config.json').write_text(json.dumps(gpt2_config(config)))
        length = config.prompt_length + config.max_new_tokens
        self._engine = LLM(
            model=self._folder.name,
            skip_tokenizer_init=True,
            dtype=config.precision,
            max_model_len=length,
            max_num_seqs=128,
            enforce_eager=True,
            enable_prefix_caching=False,
            seed=config.seed,
            served_model_name=config.model_name,
        )

    def prepare_for_generation(self, weights: dict[str, Tensor], version: int) -> None:
        """Load the weights of policy version `version` into the engine."""
        self._write(weights)
        self._engine.collective_rpc('reload_weights')
        self._weight_version = version

    def generate(self, problems: list[Problem], greedy: bool = False) -> Rollouts:
        """Write one response to each problem; the engine batches them as it sees fit."""
        if self._weight_version is None:
            raise RuntimeError('generate() outside prepare_for_generation() ... finish_generation()')
        asked = SamplingParams(
            max_tokens=self._config.max_new_tokens,
            temperature=0.0 if greedy else self._config.temperature,
            stop_token_ids=[END],
            detokenize=False,
        )
        prompts = [TokensPrompt(prompt_token_ids=list(problem.prompt)) for problem in problems]
        outputs = self._engine.generate(prompts, asked, use_tqdm=False)
        return rollouts(
            problems, [list(each.outputs[0].token_ids) for each in outputs], self._config, self._weight_version
        )

    def finish_generation(self) -> None:
        """End the round."""
        self._weight_version = None

    def _write(self, weights: dict[str, Tensor]) -> None:
        save_file(gpt2_weights(weights), Path(self._folder.name) / 'model.safetensors')


def rollouts(problems: list[Problem], responses: list[list[int]], config: GrpoConfig, version: int) -> Rollouts:
    """Responses of different lengths as one batch, padded with `END`."""
    room = config.max_new_tokens
    tokens = [
        [*problem.prompt, *said, *[END] * (room - len(said))] for problem, said in zip(problems, responses, strict=True)
    ]
    mask = [[0] * config.prompt_length + [1] * len(said) + [0] * (room - len(said)) for said in responses]
    return Rollouts(torch.tensor(tokens), torch.tensor(mask), config.prompt_length, version)
