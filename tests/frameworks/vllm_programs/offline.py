# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""Offline generation: prints what vLLM says of each request, as JSON lines."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def told(output: Any) -> dict[str, Any]:
    times = output.metrics
    return {
        'prompt': len(output.prompt_token_ids),
        'tokens': [list(each.token_ids) for each in output.outputs],
        'reasons': [each.finish_reason for each in output.outputs],
        'first': times and times.first_token_latency,
        'queue': times and times.scheduled_ts - times.queued_ts,
        'decode': times and times.last_token_ts - times.first_token_ts,
    }


def main() -> None:
    from vllm import LLM, SamplingParams

    engine = LLM(model=sys.argv[1], max_model_len=256, dtype='float32', enforce_eager=True, max_num_seqs=8, seed=0)
    greedy = SamplingParams(max_tokens=16, temperature=0.0)
    seeded = [SamplingParams(max_tokens=6 + n, temperature=0.9, seed=n, ignore_eos=True) for n in range(12)]
    batches: list[Any] = [
        engine.generate(['the question is', 'reward policy', 'one two'], greedy, use_tqdm=False),
        engine.generate([f'number {n} plus' for n in range(12)], seeded, use_tqdm=False),
        engine.chat([{'role': 'user', 'content': 'hi'}], SamplingParams(max_tokens=4, n=2, seed=3), use_tqdm=False),
    ]
    for batch in batches:
        print(json.dumps([told(output) for output in batch]), flush=True)
    engine.collective_rpc('reload_weights')
    print(json.dumps({'pid': os.getpid(), 'otel': sorted(name for name in os.environ if name.startswith('OTEL_'))}))


if __name__ == '__main__':
    main()
