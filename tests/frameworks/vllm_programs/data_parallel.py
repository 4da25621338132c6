# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""Two engines behind one AsyncLLM; prints the numbers of tokens generated, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import trainer


async def rollout(engine: Any, number: int) -> int:
    from vllm import SamplingParams

    asked = SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True)
    last: Any = None
    async for output in engine.generate(f'number {number} plus', asked, f'r{number}'):
        last = output
    return len(last.outputs[0].token_ids)


async def main() -> None:
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    options = AsyncEngineArgs(
        model=sys.argv[1],
        max_model_len=256,
        dtype='float32',
        enforce_eager=True,
        max_num_seqs=8,
        data_parallel_size=2,
    )
    engine = AsyncLLM.from_engine_args(options)
    found = await trainer.collect([trainer.rollout(n, lambda n: rollout(engine, n)) for n in range(16)])
    print(json.dumps(found), flush=True)
    engine.shutdown()


if __name__ == '__main__':
    asyncio.run(main())
