# SPDX-License-Identifier: Apache-2.0
"""This transformer in GPT-2's words: the two compute the same, and an inference engine knows GPT-2."""

from __future__ import annotations

import torch
from torch import Tensor

from .config import GrpoConfig
from .task import END, VOCABULARY

_LAYER = {
    'attention_norm': 'ln_1',
    'qkv': 'attn.c_attn',
    'projection': 'attn.c_proj',
    'mlp_norm': 'ln_2',
    'mlp.0': 'mlp.c_fc',
    'mlp.2': 'mlp.c_proj',
}


def gpt2_config(config: GrpoConfig) -> dict[str, object]:
    """The model, in GPT-2's words."""
    return {
        'architectures': ['GPT2LMHeadModel'],
        'model_type': 'gpt2',
        'vocab_size': VOCABULARY,
        'n_positions': config.prompt_length + config.max_new_tokens,
        'n_embd': config.width,
        'n_layer': config.layers,
        'n_head': config.heads,
        'activation_function': 'gelu',
        'layer_norm_epsilon': 1e-5,
        'tie_word_embeddings': False,
        'bos_token_id': END,
        'eos_token_id': END,
        'torch_dtype': config.precision,
    }


def gpt2_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights under GPT-2's names: matrices the other way round, and biases also where this model has none."""
    found = {
        'transformer.wte.weight': weights['token_embedding.weight'],
        'transformer.wpe.weight': weights['position_embedding'],
        'transformer.ln_f.weight': weights['norm.weight'],
        'transformer.ln_f.bias': weights['norm.bias'],
        'lm_head.weight': weights['head.weight'],
    }
    layers = {name.split('.')[1] for name in weights if name.startswith('blocks.')}
    for layer in layers:
        for ours, theirs in _LAYER.items():
            matrix = weights[f'blocks.{layer}.{ours}.weight']
            bias = weights.get(f'blocks.{layer}.{ours}.bias')
            prefix = f'transformer.h.{layer}.{theirs}'
            found[f'{prefix}.weight'] = matrix if matrix.dim() == 1 else matrix.t()
            found[f'{prefix}.bias'] = torch.zeros(matrix.shape[0]) if bias is None else bias
    return {name: tensor.contiguous() for name, tensor in found.items()}
