# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""Makes a tiny Llama with random weights and a tokenizer of 1,000 tokens, with no network."""

from __future__ import annotations

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL = ['<|end|>', '<|start|>', '<|stop|>', '<|pad|>']
TEMPLATE = "{% for m in messages %}<|start|>{{ m['role'] }} {{ m['content'] }}<|stop|>{% endfor %}<|start|>assistant"
TEXT = [
    f'the answer of question number {n} is reward {n * 7 % 31} for policy {n % 13} one two plus' for n in range(900)
]


def main(folder: str) -> None:
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1000, special_tokens=SPECIAL, initial_alphabet=alphabet)
    tokens.train_from_iterator(TEXT, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokens, bos_token=SPECIAL[0], eos_token=SPECIAL[2], pad_token=SPECIAL[3], model_max_length=2048
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=3,
    )
    LlamaForCausalLM(config).to(torch.float32).save_pretrained(folder)


if __name__ == '__main__':
    main(sys.argv[1])
