# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import torch
from tiny_grpo.config import GrpoConfig
from tiny_grpo.gpt2_shape import gpt2_config, gpt2_weights
from tiny_grpo.parts import build_model
from torch import Tensor
from torch.nn import functional


def gpt2(weights: dict[str, Tensor], shape: dict[str, object], tokens: Tensor) -> Tensor:
    """GPT-2 as its paper and its checkpoints have it: matrices are [in, out]."""
    width, heads = int(str(shape['n_embd'])), int(str(shape['n_head']))

    def norm(x: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x, (width,), weights[f'{name}.weight'], weights[f'{name}.bias'])

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ weights[f'{name}.weight'] + weights[f'{name}.bias']

    x = weights['transformer.wte.weight'][tokens] + weights['transformer.wpe.weight'][: tokens.shape[1]]
    for layer in range(int(str(shape['n_layer']))):
        at = f'transformer.h.{layer}'
        parts = linear(norm(x, f'{at}.ln_1'), f'{at}.attn.c_attn').split(width, dim=-1)
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + linear(mixed, f'{at}.attn.c_proj')
        x = x + linear(functional.gelu(linear(norm(x, f'{at}.ln_2'), f'{at}.mlp.c_fc')), f'{at}.mlp.c_proj')
    return norm(x, 'transformer.ln_f') @ weights['lm_head.weight'].T


def test_gpt2_with_these_weights_says_what_the_policy_says() -> None:
    config = GrpoConfig(engine='vllm', heads=2, layers=3)
    torch.manual_seed(1)
    model = build_model(config)
    tokens = torch.randint(0, 12, (4, config.prompt_length + config.max_new_tokens))
    with torch.no_grad():
        expected = model(tokens)
        found = gpt2(gpt2_weights(model.state_dict()), gpt2_config(config), tokens)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
