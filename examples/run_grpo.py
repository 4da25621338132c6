# SPDX-License-Identifier: Apache-2.0
"""A small, complete GRPO: teach a 100k-parameter transformer to sort digits, from reward alone.

python examples/run_grpo.py                          # 100 steps, less than a minute
python examples/run_grpo.py --steps 20 --seed 7      # same seed, same lines
python examples/run_grpo.py --engine vllm --heads 2  # rollouts by a vLLM engine; needs vLLM
python examples/run_grpo.py --ray                    # generation, reward and training as Ray actors
python examples/run_grpo.py --ray --async            # ... and generating ahead while the policy trains
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tiny_grpo.config import GrpoConfig, parse_args
from tiny_grpo.parts import Parts, build
from tiny_grpo.trainer import Result, grpo_train


def main(argv: list[str]) -> None:
    config = parse_args(argv)
    train = ray_training() if config.ray else grpo_train
    parts = build(config)
    result = train(config, parts)
    # Durations differ from run to run, so they go to stderr: stdout is the same for the same seed.
    print(parts.timer.summary(), file=sys.stderr)
    print(
        f'done: {config.steps} steps, reward {result.rewards[0]:.3f} -> {result.rewards[-1]:.3f}, '
        f'validation accuracy {result.accuracy:.3f}'
    )


def ray_training() -> Callable[[GrpoConfig, Parts], Result]:
    """The training on Ray, which is imported for nothing else."""
    try:
        import ray  # noqa: F401
    except ModuleNotFoundError:
        sys.exit('run_grpo.py: --ray needs Ray, which is not installed: pip install "ray>=2.40"')
    from tiny_grpo.cluster import train_on_ray

    return train_on_ray


if __name__ == '__main__':
    main(sys.argv[1:])
