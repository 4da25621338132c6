# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""Sixty-four rollouts at once in one AsyncLLM, each in a task of its own; one is given up in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

import trainer


async def rollout(engine: Any, number: int) -> dict[str, Any]:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    asked = SamplingParams(
        max_tokens=4 + number % 13, temperature=0.0, ignore_eos=True, output_kind=RequestOutputKind.CUMULATIVE
    )
    if number >= 63:  # one that is given up, and those that a killed engine must not have answered
        asked.max_tokens = 200
    last: Any = None
    async for output in engine.generate(f'number {number} plus', asked, f'r{number}'):
        last = output
        if number == 63:
            break
    times = last.metrics
    return {
        'id': last.request_id,
        'prompt': len(last.prompt_token_ids),
        'generated': len(last.outputs[0].token_ids),
        'tokens': list(last.outputs[0].token_ids),
        'first': times.first_token_latency,
        'queue': times.scheduled_ts - times.queued_ts,
        'each': (times.last_token_ts - times.first_token_ts) / max(1, times.num_generation_tokens - 1),
    }


async def main() -> None:
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    engine = AsyncLLM.from_engine_args(
        AsyncEngineArgs(model=sys.argv[1], max_model_len=256, dtype='float32', enforce_eager=True, max_num_seqs=16)
    )
    found = await trainer.collect([trainer.rollout(n, lambda n: rollout(engine, n)) for n in range(64)])
    print(json.dumps(found), flush=True)
    await asyncio.gather(*(trainer.rollout(n, lambda _: engine.collective_rpc('reload_weights')) for n in (70, 71)))
    if sys.argv[2:] == ['kill']:
        [core] = [p for p in children() if b'EngineCore' in name_of(p)]
        waiting = asyncio.gather(*(rollout(engine, n + 100) for n in range(8)), return_exceptions=True)
        await asyncio.sleep(0.02)
        os.kill(core, signal.SIGKILL)
        print(json.dumps([type(each).__name__ for each in await waiting]), flush=True)
    engine.shutdown()


def children() -> list[int]:
    with open(f'/proc/self/task/{os.getpid()}/children') as listed:
        return [int(pid) for pid in listed.read().split()]


def name_of(pid: int) -> bytes:
    with open(f'/proc/{pid}/cmdline', 'rb') as line:
        return line.read()


if __name__ == '__main__':
    asyncio.run(main())
