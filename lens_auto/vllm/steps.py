# SPDX-License-Identifier: Apache-2.0
"""What happens thousands of times a second in an engine, added up: steps, model executions, the scheduler's figures.

A point a second for each, and none while nothing happens. An engine that is killed takes the last second along.
"""

from __future__ import annotations

import atexit
from time import monotonic_ns

from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EVERY_NS = 1_000_000_000
_steps: list[StepSite] = []


class Step:
    """One call in flight.

    Attributes:
        site: The site that saw it begin.
        start: CLOCK_MONOTONIC nanoseconds.
        epoch: As a span's; -1 once the call has ended.
    """

    __slots__ = ('epoch', 'site', 'start')

    def __init__(self, site: Site):
        """See the class.

        Args:
            site: See the class.
        """
        self.site = site
        self.epoch = 0
        self.start = monotonic_ns()


class StepSite(Site):
    """`EngineCore.step`, `WorkerWrapperBase.execute_model`: how many there were, and how long they took."""

    __slots__ = ('_count', '_longest', '_metric', '_seconds', '_told_at')

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._metric = f'rl.vllm.engine.{"steps" if args[0]["on"] == "step" else "executions"}'
        self._count = self._told_at = self._longest = 0
        self._seconds = 0
        atexit.register(self.tell)
        _steps.append(self)

    def open(self, args: tuple[Any, ...], attach: bool) -> Any:
        """A call begins. See `Site.open`."""
        return Step(self)

    def leave(self, span: Any, result: Any) -> None:
        """It returned; a step in which nothing was scheduled is none.

        Args:
            span: From `open`.
            result: Of a step, the outputs and whether the model was executed.
        """
        end = monotonic_ns()
        span.epoch = -1
        self.figures.calls += 1
        if result.__class__ is tuple and len(result) == 2 and result[1] is False:
            return
        took = end - span.start
        self._count += 1
        self._seconds += took
        self._longest = max(self._longest, took)
        if end - self._told_at >= _EVERY_NS:
            self.tell()

    def fail(self, span: Any, error: BaseException) -> None:
        """It raised.

        Args:
            span: From `open`.
            error: What it raised.
        """
        span.epoch = -1
        self.figures.errors += 1
        self.tell()

    def cut(self, span: Any) -> None:
        """An exception on its way to the program has cut our part of the call short.

        Args:
            span: From `open`.
        """
        span.epoch = -1

    def tell(self) -> None:
        """Store what has been added up."""
        if not self._count:
            return
        point = self._recorder.point
        point(self, self._metric, 'counter', '{step}', self._count, None)
        point(self, f'{self._metric}.time', 'counter', 's', self._seconds / 1e9, None)
        point(self, f'{self._metric}.longest', 'gauge', 's', self._longest / 1e9, None)
        self.figures.spans += 3
        self._told_at = monotonic_ns()
        self._count = self._seconds = self._longest = 0


class IdleSite(Site):
    """`EngineCoreProc._process_input_queue(self)`: the engine looks for work, and waits where there is none."""

    __slots__ = ()

    def told(self, args: tuple[Any, ...]) -> None:
        """It is about to.

        Args:
            args: The engine.
        """
        if not args[0].scheduler.has_requests():
            # It may wait for long, and then be killed.
            for steps in _steps:
                steps.tell()


class SchedulerSite(Site):
    """`StatLoggerManager.record(self, scheduler_stats, iteration_stats, ...)`: what the engine says after each step."""

    __slots__ = ('_hits', '_queries', '_told_at', '_tokens')

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._hits = self._queries = self._tokens = 0
        self._told_at: dict[Any, int] = {}

    def told(self, args: tuple[Any, ...]) -> None:
        """The engine's statistics of a step.

        Args:
            args: Manager, scheduler's and step's statistics, caches of media, number of the engine.
        """
        scheduler, iteration, engine = args[1], args[2], args[4] or 0
        self.figures.calls += 1
        if iteration is not None:
            self._tokens += iteration.num_generation_tokens
        if scheduler is None:
            return
        prefix = scheduler.prefix_cache_stats
        if prefix is not None:
            self._queries += prefix.queries
            self._hits += prefix.hits
        now = monotonic_ns()
        idle = not scheduler.num_running_reqs and not scheduler.num_waiting_reqs
        before = self._told_at.get(engine)
        if before is None:
            self._told_at[engine] = now  # at work again: what is a second from here on
            return
        since = now - before
        if since < _EVERY_NS and not idle:
            return
        labels = {'rl.vllm.engine': int(engine)} if engine else None
        values: list[tuple[str, str, str, float]] = [
            ('rl.vllm.requests.running', 'gauge', '{request}', scheduler.num_running_reqs),
            ('rl.vllm.requests.waiting', 'gauge', '{request}', scheduler.num_waiting_reqs),
            ('rl.vllm.kv_cache.usage', 'gauge', '1', float(scheduler.kv_cache_usage)),
        ]
        if self._tokens:
            values.append(('rl.vllm.tokens_per_sec', 'gauge', '{token}/s', self._tokens * 1e9 / since))
        if self._queries:
            values += [
                ('rl.vllm.prefix_cache.queries', 'counter', '{token}', self._queries),
                ('rl.vllm.prefix_cache.hits', 'counter', '{token}', self._hits),
                ('rl.vllm.prefix_cache.hit_rate', 'gauge', '1', self._hits / self._queries),
            ]
        for name, instrument, unit, value in values:
            self._recorder.point(self, name, instrument, unit, value, labels)
        self.figures.spans += len(values)
        if idle:
            del self._told_at[engine]
        else:
            self._told_at[engine] = now
        self._hits = self._queries = self._tokens = 0
