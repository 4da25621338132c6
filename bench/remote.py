# SPDX-License-Identifier: Apache-2.0
"""What a call of an actor costs its caller: with a span around it, against the same call of a Ray we have left alone.

Processor time of the calling thread. First what our own code takes, around a submit that does nothing, over the whole
of a bare call. Then whole calls, our patches of Ray in and out by turns, and the bare call against itself: what this
machine does to equal things. Then the time from the call to its result; and our code where no span is around the call.

usage: python bench/remote.py [python ...]    each with ray; the one that runs it by default
"""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = 60
CALLS = 200
REFS: list[Any] = []


def parent(pythons: list[str]) -> None:
    import ratio
    import traced

    for python in pythons or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            environ = traced.environment(Path(folder), [traced.rule(1, 'subject:spent')])
            environ['RAY_AUTH_MODE'] = 'disabled'
            run = subprocess.run([python, __file__, '--child'], env=environ, check=True, capture_output=True, text=True)
        figures = json.loads(run.stdout.splitlines()[-1])
        name = f'ray {figures["ray"]}'
        bare = [median(figures['bare'])] * len(figures['own'])
        print(ratio.line(f'our own cpu time in a call with context, {name}', figures['own'], bare))
        print(ratio.line(f'actor call with context, caller cpu, {name}', figures['ours'], figures['bare']))
        print(ratio.line(f'bare actor call against itself, {name}', figures['again'], figures['bare']))
        print(ratio.line(f'round trip with context, {name}', figures['trip'], figures['bare trip']))
        print(f'{f"our code around a stubbed submit, no span, {name}":<58} {min(figures["stub"]) * 1000:6.0f} ns more')
        print(f'{f"nothing recorded, {name}":<58} {figures["off"]}')


def child() -> None:
    import ray
    import subject  # its rule has stage 2 record

    import lens_auto

    # Private names: what is to be compared is this process with and without our patches.
    seams: Any = sys.meta_path[0].loader.__self__._known_ray()  # pyright: ignore
    assert subject and seams.tasks is not None
    method: Any = sys.modules['ray.actor'].ActorHandle._actor_method_call
    while hasattr(method, '__wrapped__'):
        method = method.__wrapped__
    ours = method.__code__
    seams.select(False)
    bare = method.__code__
    assert ours is not bare and ours.co_name == bare.co_name
    ray.init(address='local', num_cpus=1, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)

    @ray.remote(num_cpus=0)
    class Actor:
        def nothing(self) -> None:
            pass

    actor = Actor.remote()
    ray.get(actor.nothing.remote())
    call = actor.nothing.remote

    def submit() -> float:
        began = time.thread_time_ns()
        refs = [call() for _ in range(CALLS)]
        took = time.thread_time_ns() - began
        ray.get(refs)
        return took / CALLS / 1000

    def trip() -> float:
        began = time.perf_counter_ns()
        for _ in range(CALLS // 4):
            ray.get(call())
        return (time.perf_counter_ns() - began) / (CALLS // 4) / 1000

    def recorded(measure: Any) -> float:
        seams.select(True)
        try:
            with lens_auto.span('phase'):
                return measure()
        finally:
            seams.select(False)

    figures: dict[str, Any] = {name: [] for name in ('ours', 'bare', 'again', 'trip', 'bare trip', 'stub')}
    measures = {
        'ours': lambda: recorded(submit),
        'bare': submit,
        'again': submit,
        'trip': lambda: recorded(trip),
        'bare trip': trip,
    }
    for round in range(ROUNDS + 3):
        for name in random.sample(list(measures), len(measures)):
            figure = measures[name]()
            if round >= 3:
                figures[name].append(figure)
    ref = call()
    ray.get(ref)
    with lens_auto.span('phase'):
        figures['own'] = [stubbed(seams, ref) for _ in range(ROUNDS // 4)]
    figures['stub'] = [stubbed(seams, ref) for _ in range(ROUNDS // 4)]
    figures['off'] = 'same function, same code' if method.__code__ is bare else 'CHANGED'
    figures['ray'] = ray.__version__
    ray.shutdown()
    print(json.dumps(figures))


def stub(handle: Any, name: str, args: Any = None, kwargs: Any = None, task: str = '', num_returns: int = 1) -> Any:
    return REFS[0]


def stubbed(seams: Any, ref: Any) -> float:
    """Microseconds of processor time that our code adds to a call whose submit only returns this ref."""
    from lens_auto.wrap.direct import BOTH, Direct

    def took() -> float:
        best = float('inf')
        for _ in range(5):
            began = time.thread_time_ns()
            for _ in range(5_000):
                stub(None, 'nothing')
            best = min(best, (time.thread_time_ns() - began) / 5_000 / 1000)
        return best

    REFS[:] = [ref]
    plain = took()
    told = seams._told['methods']
    after = seams._guarded_after('bench', told.after)
    patch = Direct(stub, BOTH, told.before, after, told.condition)
    ours = took()
    patch.shut()
    return ours - plain


if __name__ == '__main__':
    if '--child' in sys.argv:
        child()
    else:
        parent(sys.argv[1:])
