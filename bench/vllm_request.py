# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""What recording costs a request of a vLLM engine, in microseconds of CPU.

    cd tests/frameworks/vllm_like
    PYTHONPATH=. lens-instrument --no-summary --span-groups per_step,per_prompt python ../../../bench/vllm_request.py

The engine is the small one of the tests, which does nothing but the bookkeeping, so the difference is ours. The runtime
is taken out and put back between rounds of one process: both halves of a pair have the same machine under them.
"""

from __future__ import annotations

import gc
import marshal
import time
from statistics import median
from types import SimpleNamespace
from typing import Any

from vllm.entrypoints.llm import LLM
from vllm.v1.engine.output_processor import FinishReason

ROUNDS, REQUESTS = 15, 128


def one_round(engine: Any, asked: Any) -> float:
    begun = time.process_time()
    ids = [engine.add_request(number, 8, asked) for number in range(REQUESTS)]
    for request_id in ids:
        engine.step({request_id: (FinishReason.LENGTH, 8)})
    return (time.process_time() - begun) / REQUESTS * 1e6


def main() -> None:
    engine = LLM('tiny', disable_log_stats=False).llm_engine
    engine.sent = SimpleNamespace(append=lambda request: None)
    asked = SimpleNamespace(temperature=0.5, top_p=0.9, max_tokens=9, n=1, seed=7)
    gc.disable()
    found: dict[str, list[float]] = {'without': [], 'with': [], 'without again': []}
    for _ in range(ROUNDS):
        for name, times in found.items():
            runtime = None if name == 'with' else marshal.__dict__.pop('_lens_rt', None)
            times.append(one_round(engine, asked))
            if runtime is not None:
                marshal.__dict__['_lens_rt'] = runtime
    base = median(found['without'])
    print(f'a request of an engine that does nothing: {base:.1f} us')
    print(f'recorded: {median(found["with"]) - base:+.1f} us, control: {median(found["without again"]) - base:+.1f} us')


if __name__ == '__main__':
    main()
