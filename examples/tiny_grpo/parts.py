# SPDX-License-Identifier: Apache-2.0
"""The parts of a run, built from its config, all in this process. `parts_ray.py` builds them as actors."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch

from .checkpoint import CheckpointManager
from .config import GrpoConfig
from .generation import Generation
from .logger import Logger
from .model import TinyTransformer
from .policy import Policy
from .reward import Reward
from .roles import GenerationRole, PolicyRole, RewardRole
from .task import VOCABULARY, SortTask
from .timer import Timer


@dataclass(frozen=True)
class Parts:
    """Everything `grpo_train` works with."""

    task: SortTask
    generation: GenerationRole
    reward: RewardRole
    policy: PolicyRole
    checkpoints: CheckpointManager
    timer: Timer
    logger: Logger


def build(config: GrpoConfig) -> Parts:
    """Seed, then build: the first random numbers are the weights."""
    prepare_process(config, config.seed, config.threads)
    return Parts(
        task=SortTask(config.digits, config.validation_prompts),
        policy=Policy(build_model(config), config),
        generation=build_generation(config),
        reward=Reward(),
        checkpoints=CheckpointManager(config.out),
        timer=Timer(),
        logger=Logger(),
    )


def build_generation(config: GrpoConfig) -> GenerationRole:
    """What samples the rollouts. vLLM is imported for nothing else."""
    model = build_model(config)
    if config.engine == 'vllm':
        from .generation_vllm import VllmGeneration

        return VllmGeneration(config, model.state_dict())
    return Generation(model, config.max_new_tokens, config.temperature)


def prepare_process(config: GrpoConfig, seed: int, threads: int = 1) -> None:
    """What every process that computes does first: same arithmetic everywhere, random numbers of its own."""
    torch.set_num_threads(threads)
    torch.set_default_dtype(getattr(torch, config.precision))
    torch.use_deterministic_algorithms(True)
    seed_everything(seed)


def build_model(config: GrpoConfig) -> TinyTransformer:
    """A freshly initialised model of the configured size."""
    return TinyTransformer(
        vocabulary=VOCABULARY,
        context=config.prompt_length + config.max_new_tokens,
        layers=config.layers,
        width=config.width,
        heads=config.heads,
    )


def seed_everything(seed: int) -> None:
    """One seed for prompts (`random`), weights and sampling (torch)."""
    random.seed(seed)
    torch.manual_seed(seed)
