# SPDX-License-Identifier: Apache-2.0
"""One recorded span with start, end and three attributes, against the OpenTelemetry SDK's.

The SDK: `start_as_current_span` with a `BatchSpanProcessor` and an exporter that does nothing. Ours: a function named
by a rule that reads three of its arguments. Both inside an enclosing span, in blocks of shuffled order in one process;
the SDK's batch is flushed before each of our blocks, so that its thread does not work in our time. Then both again
beside a thread that computes, where what counts is the median: a span must not give the GIL away.

usage: python bench/span.py [python3.12 ...]
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

ROUNDS = 60
SPANS = 1000  # a block stays below the batch queue of 2,048: a queue that overflows is cheaper than one that does not
BUSY_SPANS = 200


def parent(names: list[str]) -> None:
    import interpreters
    import ratio
    import traced

    pythons, skipped = interpreters.with_peers()
    for name, python in pythons.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            attributes = {f'work.{letter}': ('arg', letter) for letter in 'abc'}
            rules = [
                traced.rule(1, 'subject:recorded', attributes=attributes),
                traced.rule(2, 'subject:outer'),
            ]
            environ = traced.environment(Path(folder), rules)
            run = subprocess.run([python, __file__, '--child'], env=environ, check=True, capture_output=True, text=True)
        figures = json.loads(run.stdout.splitlines()[-1])
        print(ratio.line(f'span, {name}', figures['ours'], figures['theirs']))
        print(ratio.line(f'span, processor time, {name}', figures['ours_cpu'], figures['theirs_cpu']))
        print(ratio.line(f'span beside a busy thread (median), {name}', figures['ours_busy'], figures['theirs_busy']))
    for reason in skipped:
        print(f'skipped: {reason}')


def child() -> None:
    import subject
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Null(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    batch = BatchSpanProcessor(Null())
    provider.add_span_processor(batch)
    trace.set_tracer_provider(provider)
    tracer = trace.get_tracer('bench')

    def theirs(a: int, b: float, c: str) -> None:
        with tracer.start_as_current_span('recorded', attributes={'work.a': a, 'work.b': b, 'work.c': c}):
            pass

    def block() -> None:
        with tracer.start_as_current_span('outer'):
            for _ in range(SPANS):
                theirs(1, 2.0, 'three')

    def our_block() -> None:
        subject.outer(subject.recorded, SPANS)

    assert '_lens_rt' in sys.modules
    found: dict[str, list[float]] = {'ours': [], 'theirs': [], 'ours_cpu': [], 'theirs_cpu': []}
    kinds = [('ours', our_block), ('theirs', block)]
    for turn in range(-3, ROUNDS):
        random.shuffle(kinds)
        for name, run in kinds:
            if run is our_block:
                batch.force_flush()
            wall, used = time.perf_counter_ns(), time.process_time_ns()
            run()
            wall, used = time.perf_counter_ns() - wall, time.process_time_ns() - used
            if turn >= 0:
                found[name].append(wall / SPANS / 1000)
                found[name + '_cpu'].append(used / SPANS / 1000)
    found.update(busy(subject.recorded, theirs, batch))
    print(json.dumps(found))


def busy(ours: object, theirs: object, batch: object) -> dict[str, list[float]]:
    """Median span of a block while another thread computes."""
    running = True

    def compute() -> None:
        number = 0
        while running:
            number = (number * 3 + 1) % 1000003

    def one(function: object) -> float:
        times: list[int] = []
        for _ in range(BUSY_SPANS):
            start = time.perf_counter_ns()
            function(1, 2.0, 'three')  # type: ignore[operator]
            times.append(time.perf_counter_ns() - start)
        return median(times) / 1000

    thread = threading.Thread(target=compute)
    thread.start()
    found: dict[str, list[float]] = {'ours_busy': [], 'theirs_busy': []}
    kinds = [('ours_busy', ours), ('theirs_busy', theirs)]
    for _ in range(9):
        random.shuffle(kinds)
        for name, function in kinds:
            batch.force_flush()  # type: ignore[attr-defined]
            found[name].append(one(function))
    running = False
    thread.join()
    return found


if __name__ == '__main__':
    child() if sys.argv[1:] == ['--child'] else parent(sys.argv[1:])
