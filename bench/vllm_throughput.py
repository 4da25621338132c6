# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""Throughput of a real vLLM engine with 64 requests at once, recorded and not, and what of a request's CPU is ours.

    lens-instrument --no-summary --span-groups per_step,per_prompt python bench/vllm_throughput.py MODEL [PAIRS]
    python bench/vllm_throughput.py MODEL PAIRS lens-instrument --no-summary --span-groups per_step,per_prompt

The first is in interleaved pairs of one engine: half of the rounds run with our runtime taken out, so that our code
falls through to the program's. The second is in pairs of separate processes, one of which the given command starts.
Beside the ratio stands that of two halves that are both without us: what this machine calls a difference when there is
none. TOKENS in the environment is how many a request generates, 64 if it is not set.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

AT_ONCE, TOKENS = 64, int(os.environ.get('TOKENS', '64'))
WARM_UP, MEASURED, ALONE = 3, 10, 16  # rounds


async def one_round(engine: Any, number: int) -> float:
    """Tokens a second."""
    from vllm import SamplingParams

    asked = SamplingParams(max_tokens=TOKENS, temperature=0.0, ignore_eos=True)

    async def request(n: int) -> None:
        async for _ in engine.generate(f'number {n} plus', asked, f'{number}-{n}'):
            pass

    begun = time.perf_counter()
    await asyncio.gather(*map(request, range(AT_ONCE)))
    return AT_ONCE * TOKENS / (time.perf_counter() - begun)


def interval(ratios: Sequence[float], draws: int = 4000) -> tuple[float, float, float]:
    """Median, and the 95 % interval of it by bootstrap."""
    stream = random.Random(7)
    medians = sorted(median(stream.choices(ratios, k=len(ratios))) for _ in range(draws))
    return median(ratios), medians[int(0.025 * draws)], medians[int(0.975 * draws)]


def said(name: str, found: Sequence[float], plain: Sequence[float]) -> str:
    middle, low, high = interval([a / b for a, b in zip(found, plain, strict=True)])
    return f'{name:14} / without: {middle:.3f} of its tokens a second ({low:.3f} to {high:.3f}, {len(plain)} pairs)'


def orders(names: Sequence[str]) -> Iterator[list[str]]:
    """Each time another order: what comes after another must not always be the same."""
    stream = random.Random(7)
    while True:
        yield stream.sample(names, len(names))


# ----------------------------------------------------------------------------------------------------------- one engine
def timed(runtime: ModuleType, spent: list[int]) -> ModuleType:
    """The same runtime, which adds up the processor time of its calls; that of the clock is in it."""
    made = ModuleType(runtime.__name__)
    clock = time.thread_time_ns

    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any) -> Any:
            begun = clock()
            try:
                return call(*args)
            finally:
                spent[0] += clock() - begun

        return measured

    for name, item in runtime.__dict__.items():
        made.__dict__[name] = around(item) if callable(item) and name != 'is_compiling' else item
    return made


def family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    try:
        for task in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{task}/children') as listed:
                found += [one for child in listed.read().split() for one in family(int(child))]
    except OSError:
        pass
    return found


def seconds_of(pids: Sequence[int]) -> float:
    """Processor time that their threads have had."""
    nanoseconds = 0
    for pid in pids:
        for task in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{task}/schedstat') as stat:
                nanoseconds += int(stat.read().split()[0])
    return nanoseconds / 1e9


async def in_one_engine(engine: Any, pairs: int) -> None:
    runtime: ModuleType = marshal.__dict__['_lens_rt']
    found: dict[str, list[float]] = {'without': [], 'with': [], 'without again': []}
    cost: dict[str, list[float]] = {name: [] for name in found}
    pids = family(os.getpid())
    for number, order in zip(range(pairs), orders(list(found)), strict=False):
        for place, name in enumerate(order):
            if name != 'with':
                del marshal.__dict__['_lens_rt']
            before = seconds_of(pids)
            found[name].append(await one_round(engine, number * 3 + place))
            cost[name].append(1 / (seconds_of(pids) - before))
            marshal.__dict__['_lens_rt'] = runtime
    for name in ('with', 'without again'):
        print(said(name, found[name], found['without']))
        # Which other work on the machine disturbs less.
        print(said(name, cost[name], cost['without']).replace('a second', 'a second of CPU of the whole engine'))
    print(f'without: {median(found["without"]):.0f} tokens a second')
    spent = [0]
    front, everybody = time.process_time(), seconds_of(pids)
    marshal.__dict__['_lens_rt'] = timed(runtime, spent)
    for number in range(MEASURED):
        await one_round(engine, 3 * pairs + number)
    marshal.__dict__['_lens_rt'] = runtime
    requests = MEASURED * AT_ONCE
    front, everybody = time.process_time() - front, seconds_of(pids) - everybody
    ours = spent[0] / 1e9
    print(f'ours: {ours / requests * 1e6:.0f} us of CPU a request')
    for what, whole in ((f'the engine in its {len(pids)} processes', everybody), ('its front end alone', front)):
        print(f'   {ours / whole:.2%} of what {what} takes for it, {whole / requests * 1e6:.0f} us')


async def main(model: str, pairs: int) -> None:
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    options = AsyncEngineArgs(model=model, max_model_len=256, dtype='float32', enforce_eager=True, max_num_seqs=AT_ONCE)
    engine = AsyncLLM.from_engine_args(options)
    for number in range(WARM_UP):
        await one_round(engine, -1 - number)
    if pairs:
        await in_one_engine(engine, pairs)
    else:
        print('tokens a second:', median([await one_round(engine, number) for number in range(ALONE)]))
    engine.shutdown()


# --------------------------------------------------------------------------------------------------- separate processes
def alone(model: str, *command: str) -> float:
    done = subprocess.run(
        [*command, sys.executable, str(Path(__file__).resolve()), model, '0'],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(next(line for line in done.stdout.splitlines() if line.startswith('tokens a second')).split()[-1])


def separately(model: str, pairs: int, command: Sequence[str]) -> None:
    found: dict[str, list[float]] = {'without': [], 'with': [], 'without again': []}
    for _, order in zip(range(pairs), orders(list(found)), strict=False):
        for name in order:
            found[name].append(alone(model, *(command if name == 'with' else ())))
        print({name: round(rates[-1]) for name, rates in found.items()}, file=sys.stderr)
    for name in ('with', 'without again'):
        print(said(f'{name}, apart', found[name], found['without']))


if __name__ == '__main__':
    _model, _pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    if sys.argv[3:]:
        separately(_model, _pairs, sys.argv[3:])
    else:
        asyncio.run(main(_model, _pairs))
