# SPDX-License-Identifier: Apache-2.0
"""Every knob of a run, and the command line that sets the useful ones."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar


@dataclass(frozen=True)
class GrpoConfig:
    """One run. The defaults learn to sort six digits in less than a minute."""

    algorithm: ClassVar[str] = 'grpo'

    # Run
    steps: int = 100
    seed: int = 0
    threads: int = 1  # these matrices are too small to gain much from more
    out: str = 'results/grpo'
    save_every: int = 50
    validate_every: int = 20

    # Task
    digits: int = 6
    validation_prompts: int = 256

    # Model
    precision: str = 'float32'
    layers: int = 2
    width: int = 64
    heads: int = 4

    # Rollouts
    prompts_per_step: int = 32
    group_size: int = 16
    temperature: float = 1.0

    engine: str = 'torch'  # or 'vllm'

    # On Ray
    ray: bool = False
    asynchronous: bool = False  # generate ahead while the policy trains
    generation_workers: int = 2
    max_lag: int = 1  # versions that the policy may be ahead of the one that sampled its batch; 0: lockstep

    # Optimisation
    epochs: int = 3
    minibatch: int = 128
    learning_rate: float = 7e-4
    warmup_steps: int = 5
    clip: float = 0.2
    kl_coefficient: float = 0.003
    max_grad_norm: float = 1.0

    # Whoever operates the run may leave settings for their telemetry here. Nothing in this program reads them.
    telemetry: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError('steps must be at least 1')
        if self.group_size < 2:
            raise ValueError('group_size must be at least 2: a response is judged against the others of its group')
        if self.generation_workers < 1:
            raise ValueError('generation_workers must be at least 1')
        if self.max_lag < 0:
            raise ValueError('max_lag must be at least 0')
        if self.engine not in ('torch', 'vllm'):
            raise ValueError('engine must be torch or vllm')
        if self.engine == 'vllm' and self.ray:
            raise ValueError('--engine vllm runs without --ray')
        if self.engine == 'vllm' and self.width // self.heads < 32:
            raise ValueError('--engine vllm needs heads of 32 or more: --heads 2')
        if self.asynchronous and not self.ray:
            raise ValueError('--async needs --ray: generating ahead takes processes of its own')

    @property
    def model_name(self) -> str:
        """Layers by width."""
        return f'tiny-{self.layers}x{self.width}'

    @property
    def prompt_length(self) -> int:
        """The digits and the separator."""
        return self.digits + 1

    @property
    def max_new_tokens(self) -> int:
        """The digits and the end token."""
        return self.digits + 1


def parse_args(argv: Sequence[str]) -> GrpoConfig:
    """Build the config: flags win over the `--config` file, the file over the defaults."""
    parser = argparse.ArgumentParser(description='GRPO on a tiny transformer that learns to sort digits.')
    parser.add_argument('--config', type=Path, help='JSON object with any field of GrpoConfig')
    parser.add_argument('--steps', type=int, help=f'training steps ({GrpoConfig.steps})')
    parser.add_argument('--seed', type=int, help=f'seed of weights, prompts and sampling ({GrpoConfig.seed})')
    parser.add_argument('--out', help=f'folder for checkpoints ({GrpoConfig.out})')
    parser.add_argument('--group-size', type=int, help=f'responses per prompt ({GrpoConfig.group_size})')
    parser.add_argument('--prompts-per-step', type=int, help=f'prompts per step ({GrpoConfig.prompts_per_step})')
    parser.add_argument('--threads', type=int, help=f'torch threads ({GrpoConfig.threads})')
    parser.add_argument('--save-every', type=int, help=f'steps between checkpoints, 0: none ({GrpoConfig.save_every})')
    parser.add_argument(
        '--validate-every', type=int, help=f'steps between validations, 0: none ({GrpoConfig.validate_every})'
    )
    parser.add_argument('--heads', type=int, help=f'attention heads ({GrpoConfig.heads})')
    parser.add_argument('--engine', choices=['torch', 'vllm'], help=f'what generates ({GrpoConfig.engine})')
    parser.add_argument('--ray', action='store_const', const=True, help='generation, reward and training as Ray actors')
    parser.add_argument(
        '--async', dest='asynchronous', action='store_const', const=True, help='with --ray: generate ahead of training'
    )
    parser.add_argument(
        '--generation-workers', type=int, help=f'Ray actors that generate ({GrpoConfig.generation_workers})'
    )
    parser.add_argument(
        '--max-lag', type=int, help=f'with --async: versions a batch may be behind the policy ({GrpoConfig.max_lag})'
    )
    flags = vars(parser.parse_args(argv))
    path: Path | None = flags.pop('config')

    values: dict[str, Any] = json.loads(path.read_text()) if path else {}
    unknown = values.keys() - {f.name for f in fields(GrpoConfig)}
    if unknown:
        parser.error(f'{path}: unknown fields: {", ".join(sorted(unknown))}')
    values.update({name: value for name, value in flags.items() if value is not None})
    try:
        return GrpoConfig(**values)
    except ValueError as error:
        parser.error(str(error))
