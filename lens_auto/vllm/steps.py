# SPDX-License-Identifier: Apache-2.0
"""What happens thousands of times a second in an engine, added up: steps, model executions, the scheduler's figures.

A point a second for each, and none while nothing happens. An engine that is killed takes the last second along.
"""

from __future__ import annotations

import atexit
from time import monotonic_ns

from lens_auto.vllm.starting import CORE, name_process
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
        # vLLM's plugin hook comes too late for the start of an engine.
        name_process(self._recorder, CORE, args[0].engine_index)
        if not args[0].scheduler.has_requests():
            # It may wait for long, and then be killed.
            for steps in _steps:
                steps.tell()


class _Work:
    """What one engine has done since it was last told of."""

    __slots__ = ('hits', 'queries', 'told_at', 'tokens')

    def __init__(self, now: int):
        self.told_at = now
        self.hits = self.queries = self.tokens = 0


class SchedulerSite(Site):
    """`StatLoggerManager.record(self, scheduler_stats, iteration_stats, ...)`: what the engine says after each step."""

    __slots__ = ('_at_work',)

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._at_work: dict[tuple[int, int], _Work] = {}

    def told(self, args: tuple[Any, ...]) -> None:
        """The engine's statistics of a step.

        Args:
            args: Manager, scheduler's and step's statistics, caches of media, number of the engine.
        """
        manager, scheduler, iteration, engine = args[0], args[1], args[2], int(args[4] or 0)
        self.figures.calls += 1
        if scheduler is None:
            return
        key, now = (id(manager), engine), monotonic_ns()
        work = self._at_work.get(key)
        begins = work is None
        if work is None:
            work = self._at_work[key] = _Work(now)
        if iteration is not None:
            work.tokens += iteration.num_generation_tokens
        prefix = scheduler.prefix_cache_stats
        if prefix is not None:
            work.queries += prefix.queries
            work.hits += prefix.hits
        idle = not scheduler.num_running_reqs and not scheduler.num_waiting_reqs
        if not begins and not idle and now - work.told_at < _EVERY_NS:
            return
        labels = {'rl.vllm.engine': engine} if engine else None
        # Also when it sets to work: a batch that is done within a second would show an engine that never had any.
        points: list[Any] = [
            ('rl.vllm.requests.running', 'gauge', '{request}', scheduler.num_running_reqs, labels),
            ('rl.vllm.requests.waiting', 'gauge', '{request}', scheduler.num_waiting_reqs, labels),
            ('rl.vllm.kv_cache.usage', 'gauge', '1', float(scheduler.kv_cache_usage), labels),
        ]
        if not begins and work.tokens:
            rate = work.tokens * 1e9 / (now - work.told_at)
            points.append(('rl.vllm.tokens_per_sec', 'gauge', '{token}/s', rate, labels))
        if (not begins or idle) and work.queries:
            points += [
                ('rl.vllm.prefix_cache.queries', 'counter', '{token}', work.queries, labels),
                ('rl.vllm.prefix_cache.hits', 'counter', '{token}', work.hits, labels),
                ('rl.vllm.prefix_cache.hit_rate', 'gauge', '1', work.hits / work.queries, labels),
            ]
        self._recorder.points(self, points)
        self.figures.spans += len(points)
        if idle:
            del self._at_work[key]
        elif not begins:
            self._at_work[key] = _Work(now)
