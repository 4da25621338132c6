# SPDX-License-Identifier: Apache-2.0
"""What a call costs where nothing is recorded: over its budget, against wrapt's pass-through wrapper; and off.

A function whose rule has spent its budget still runs through our code, which only counts. wrapt's `FunctionWrapper`
(its C extension) with a wrapper that just calls on is what most instrumentation is made of. A function of a rule that
is off is compared with itself: it must be the same object with the same code, so there is nothing to time.

usage: python bench/call.py [python3.12 ...]
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 60
CALLS = 2000


def parent(names: list[str]) -> None:
    import interpreters
    import ratio
    import traced

    pythons, skipped = interpreters.with_peers()
    for name, python in pythons.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            rules = [
                traced.rule(1, 'subject:spent', budget=0, attributes={'work.a': ('arg', 'a')}),
                traced.rule(2, 'subject:off', group='off'),
            ]
            environ = traced.environment(Path(folder), rules)
            run = subprocess.run([python, __file__, '--child'], env=environ, check=True, capture_output=True, text=True)
        figures = json.loads(run.stdout.splitlines()[-1])
        print(ratio.line(f'call over its budget against wrapt, {name}', figures['ours'], figures['theirs'], 'ns'))
        print(f'{f"call that is off, {name}":<58} {figures["off"]}')
    for reason in skipped:
        print(f'skipped: {reason}')


def child() -> None:
    # What the function is before the agent has heard of it: the same source, compiled under another name.
    import importlib.util

    import subject
    import wrapt

    spec = importlib.util.spec_from_file_location('untouched', subject.__file__)
    assert spec is not None and spec.loader is not None
    untouched = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(untouched)
    assert sys.modules['_lens_rt']
    assert subject.spent.__code__ != untouched.spent.__code__, 'the rule has not been applied'
    assert subject.off.__code__ == untouched.off.__code__

    def passing(wrapped: object, instance: object, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        return wrapped(*args, **kwargs)  # type: ignore[operator]

    theirs = wrapt.FunctionWrapper(untouched.spent, passing)

    def block(function: object) -> float:
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            function(1, 2.0, 'three')  # type: ignore[operator]
        return (time.perf_counter_ns() - start) / CALLS

    found: dict[str, object] = {'off': 'its own code: nothing is put around it'}
    kinds = [('ours', subject.spent), ('theirs', theirs), ('bare', untouched.spent)]
    times: dict[str, list[float]] = {name: [] for name, _ in kinds}
    for turn in range(-5, ROUNDS):
        random.shuffle(kinds)
        for name, function in kinds:
            took = block(function)
            if turn >= 0:
                times[name].append(took)
    print(json.dumps({**found, **times}))


if __name__ == '__main__':
    child() if sys.argv[1:] == ['--child'] else parent(sys.argv[1:])
