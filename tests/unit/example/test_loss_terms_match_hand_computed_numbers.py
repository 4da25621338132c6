# SPDX-License-Identifier: Apache-2.0
from math import log

import pytest
import torch
from tiny_grpo.loss import clipped_surrogate, k3_kl, token_mean


def test_k3_is_ratio_minus_one_minus_log_ratio():
    # r = reference / policy = 0.5, 1 and 2.
    policy = torch.tensor([log(0.5), log(0.3), log(0.1)])
    reference = torch.tensor([log(0.25), log(0.3), log(0.2)])
    expected = torch.tensor([0.5 - 1 + log(2), 0.0, 2 - 1 - log(2)])

    torch.testing.assert_close(k3_kl(policy, reference), expected, atol=1e-6, rtol=0)


def test_k3_averages_to_the_true_divergence():
    policy, reference = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.5, 0.25, 0.25])
    truth = (policy * (policy / reference).log()).sum()

    assert (policy * k3_kl(policy.log(), reference.log())).sum().item() == pytest.approx(truth.item(), abs=1e-6)


@pytest.mark.parametrize(
    ('ratio', 'advantage', 'loss'),
    [
        (1.0, 2.0, -2.0),
        (1.1, 2.0, -2.2),
        (1.5, 2.0, -2.4),  # clipped at 1.2: no gain from going further
        (0.5, 2.0, -1.0),
        (0.5, -2.0, 1.6),  # clipped at 0.8
        (1.5, -2.0, 3.0),  # a bad response made likelier is never forgiven
    ],
)
def test_surrogate_takes_the_worse_of_the_plain_and_the_clipped_ratio(ratio: float, advantage: float, loss: float):
    old = torch.tensor([log(0.2)])
    value = clipped_surrogate(old + log(ratio), old, torch.tensor([advantage]), clip=0.2)

    assert value.item() == pytest.approx(loss, abs=1e-5)


def test_token_mean_counts_every_sampled_token_once():
    values = torch.tensor([[1.0, 1.0, 1.0], [5.0, 99.0, 99.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])

    assert token_mean(values, mask).item() == 2.0
