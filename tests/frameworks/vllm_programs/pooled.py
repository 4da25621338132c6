# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""Embeddings and scores: prints what vLLM says of each, as JSON lines."""

from __future__ import annotations

import json
import sys


def main() -> None:
    from vllm import LLM

    engine = LLM(model=sys.argv[1], runner='pooling', convert='embed', max_model_len=128, dtype='float32', seed=0)
    embedded = engine.embed(['one two', 'reward'], use_tqdm=False)
    print(json.dumps([[len(output.prompt_token_ids), output.outputs.embedding] for output in embedded]))
    scored = engine.score('one', ['two', 'reward', 'policy'], use_tqdm=False)
    print(json.dumps([output.outputs.score for output in scored]))


if __name__ == '__main__':
    main()
