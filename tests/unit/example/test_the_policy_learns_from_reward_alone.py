# SPDX-License-Identifier: Apache-2.0
import re
from collections.abc import Callable
from statistics import mean


def test_the_policy_learns_from_reward_alone(run_grpo: Callable[..., list[str]]):
    lines = run_grpo('--steps', '25', '--prompts-per-step', '16', '--group-size', '16')

    rewards = [float(found[1]) for line in lines if (found := re.search(r'^train .* reward +([\d.]+)', line))]
    assert mean(rewards[:3]) < 0.12, 'an untrained policy guesses'
    assert mean(rewards[-3:]) > 0.3
