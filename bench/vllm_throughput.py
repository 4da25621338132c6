# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""Throughput of a real vLLM engine with 64 requests at once, recorded and not, in interleaved pairs of one engine.

    lens-instrument --no-summary --span-groups per_step,per_prompt python bench/vllm_throughput.py MODEL [PAIRS]

Half of the rounds run with our runtime taken out, so that our code falls through to the program's. Beside the ratio
stands that of two halves that are both without it: what this machine calls a difference when there is none.
"""

from __future__ import annotations

import asyncio
import marshal
import random
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

AT_ONCE, TOKENS = 64, 16


async def one_round(engine: Any, number: int) -> tuple[float, float]:
    """Tokens a second, and CPU seconds of this process a request."""
    from vllm import SamplingParams

    asked = SamplingParams(max_tokens=TOKENS, temperature=0.0, ignore_eos=True)

    async def request(n: int) -> None:
        async for _ in engine.generate(f'number {n} plus', asked, f'{number}-{n}'):
            pass

    begun, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(request, range(AT_ONCE)))
    return AT_ONCE * TOKENS / (time.perf_counter() - begun), (time.process_time() - cpu) / AT_ONCE


def interval(ratios: Sequence[float], draws: int = 4000) -> tuple[float, float, float]:
    """Median, and the 95 % interval of it by bootstrap."""
    stream = random.Random(7)
    medians = sorted(median(stream.choices(ratios, k=len(ratios))) for _ in range(draws))
    return median(ratios), medians[int(0.025 * draws)], medians[int(0.975 * draws)]


async def main() -> None:
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    options = AsyncEngineArgs(
        model=sys.argv[1], max_model_len=256, dtype='float32', enforce_eager=True, max_num_seqs=AT_ONCE
    )
    engine = AsyncLLM.from_engine_args(options)
    for number in range(3):
        await one_round(engine, -1 - number)
    found: dict[str, list[tuple[float, float]]] = {'without': [], 'with': [], 'without again': []}
    order = list(found)
    for number in range(pairs):
        order = order[1:] + order[:1]  # none has always the same neighbours
        for name in order:
            runtime = None if name == 'with' else marshal.__dict__.pop('_lens_rt', None)
            found[name].append(await one_round(engine, number * 3 + order.index(name)))
            if runtime is not None:
                marshal.__dict__['_lens_rt'] = runtime
    plain = found['without']
    for name in ('with', 'without again'):
        middle, low, high = interval([a / b for (a, _), (b, _) in zip(found[name], plain, strict=True)])
        print(f'{name:14} / without: {middle:.3f} of its tokens a second ({low:.3f} to {high:.3f}, {pairs} pairs)')
    print(f'without: {median(each for each, _ in plain):.0f} tokens a second')
    cpu = {name: median(each for _, each in rounds) * 1e6 for name, rounds in found.items()}
    print('CPU of the front end a request: ' + ', '.join(f'{name} {each:.0f} us' for name, each in cpu.items()))
    engine.shutdown()


if __name__ == '__main__':
    asyncio.run(main())
