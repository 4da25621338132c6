# SPDX-License-Identifier: Apache-2.0
import torch
from tiny_grpo.advantage import group_relative_advantages


def test_advantages_are_deviations_from_the_groups_mean_in_its_standard_deviations():
    # First group: mean 0.5, sample standard deviation sqrt((0.25 + 0.25 + 0 + 0) / 3) = 0.408248.
    rewards = torch.tensor([0.0, 1.0, 0.5, 0.5, 10.0, 10.0, 10.0, 14.0])
    advantages = group_relative_advantages(rewards, group_size=4)

    expected = torch.tensor([-1.224745, 1.224745, 0.0, 0.0, -0.5, -0.5, -0.5, 1.5])
    torch.testing.assert_close(advantages, expected, atol=1e-5, rtol=0)


def test_a_group_of_equal_rewards_teaches_nothing():
    assert group_relative_advantages(torch.tensor([0.25, 0.25, 0.25]), group_size=3).tolist() == [0.0, 0.0, 0.0]
