# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""An engine whose model is compiled, given batches of several sizes; prints what torch and vLLM count, as JSON."""

from __future__ import annotations

import json
import sys


def main() -> None:
    from torch._dynamo.utils import counters, get_compilation_metrics
    from vllm import LLM, SamplingParams
    from vllm.compilation.counter import compilation_counter

    engine = LLM(model=sys.argv[1], max_model_len=256, dtype='float32', enforce_eager=False, max_num_seqs=8, seed=0)
    asked = SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True)
    tokens: list[list[int]] = []
    for size in (1, 3, 8, 20):
        outputs = engine.generate([f'number {n} plus' for n in range(size)], asked, use_tqdm=False)
        tokens += [list(each.outputs[0].token_ids) for each in outputs]
    metrics = get_compilation_metrics()
    told = {
        # `stats` counts graphs and calls in them, `graph_break` the reasons of breaks, `inductor` what was made of it.
        'torch': {name: dict(each) for name, each in counters.items()},
        'recompiled': [each.recompile_reason for each in metrics[1:]],
        'compilations': len(metrics),
        'vllm': {name: count for name, count in vars(compilation_counter).items() if count},
        'tokens': tokens,
    }
    print(json.dumps(told), flush=True)


if __name__ == '__main__':
    main()
