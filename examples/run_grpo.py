# SPDX-License-Identifier: Apache-2.0
"""A small, complete GRPO: teach a 100k-parameter transformer to sort digits, from reward alone.

python examples/run_grpo.py                          # 100 steps, less than a minute
python examples/run_grpo.py --steps 20 --seed 7      # same seed, same lines
"""

from __future__ import annotations

import sys

from tiny_grpo.config import parse_args
from tiny_grpo.parts import build
from tiny_grpo.trainer import grpo_train


def main(argv: list[str]) -> None:
    config = parse_args(argv)
    parts = build(config)
    result = grpo_train(config, parts)
    # Durations differ from run to run, so they go to stderr: stdout is the same for the same seed.
    print(parts.timer.summary(), file=sys.stderr)
    print(
        f'done: {config.steps} steps, reward {result.rewards[0]:.3f} -> {result.rewards[-1]:.3f}, '
        f'validation accuracy {result.accuracy:.3f}'
    )


if __name__ == '__main__':
    main(sys.argv[1:])
