# SPDX-License-Identifier: Apache-2.0
"""Synthetic runs with a known truth: OTLP JSON lines as a collector writes them, and the run read back from them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lens_auto.report.folder import Run, load

MS = 1_000_000
BEGIN = 1_796_031_540_000_000_000

GROUPS = {
    'step': ('step', ''),
    'collect_rollouts': ('rollout', ''),
    'generate': ('generation', 'productive'),
    'rollout': ('per_prompt', ''),
    'compute_rewards': ('reward', 'productive'),
    'compute_logprobs': ('logprob', 'overhead'),
    'policy_update': ('policy_update', 'productive'),
    'data_processing': ('data_processing', 'overhead'),
    'weight_sync': ('data_plane', 'overhead'),
    'save_checkpoint': ('checkpoint', 'overhead'),
    'buffer_starvation': ('efficiency', 'idle'),
    'generation_limit_pause': ('efficiency', ''),
    'ray.get': ('wait', ''),
}
# A run in which nothing stands out; milliseconds.
HEALTHY: dict[str, float] = {
    'data_processing': 20,
    'collect_rollouts': 450,
    'compute_rewards': 30,
    'compute_logprobs': 120,
    'policy_update': 350,
    'weight_sync': 30,
}


def attributes(items: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {str: 'stringValue', int: 'intValue', float: 'doubleValue', bool: 'boolValue'}
    return [
        {'key': key, 'value': {kinds[type(item)]: str(item) if type(item) is int else item}}
        for key, item in items.items()
    ]


@dataclass
class Plant:
    """A run that is being made up. Times are nanoseconds."""

    lines: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    resources: dict[int, dict[str, Any]] = field(default_factory=dict)
    last: int = 0

    def process(self, number: int, **told: Any) -> int:
        self.resources[number] = {
            'host.name': 'node0',
            'process.pid': 1000 + number,
            'service.instance.id': f'{number:032x}',
            **{key.replace('__', '.'): item for key, item in told.items()},
        }
        return number

    def span(
        self,
        process: int,
        name: str,
        start: int,
        end: int,
        parent: int = 0,
        error: bool = False,
        **more: Any,
    ) -> int:
        """Add a span; the answer is its id."""
        self.last += 1
        short = name.rpartition('.')[2] if not name.startswith('ray.') else name.partition(' ')[0]
        group, bucket = GROUPS.get(short, ('', ''))
        items: dict[str, Any] = {'lens.group': group} if group else {}
        if bucket:
            items['rl.bucket'] = bucket
        items |= {key.replace('__', '.'): item for key, item in more.items()}
        span: dict[str, Any] = {
            'traceId': f'{7:032x}',
            'spanId': f'{self.last:016x}',
            'name': name,
            'kind': 1,
            'startTimeUnixNano': str(start),
            'endTimeUnixNano': str(end),
            'attributes': attributes(items),
            'status': {'code': 2} if error else {},
        }
        if parent:
            span['parentSpanId'] = f'{parent:016x}'
        self.lines.setdefault(process, []).append(span)
        return self.last

    def close(self, span: int, end: int) -> None:
        """Move the end of a span."""
        for spans in self.lines.values():
            for one in spans:
                if one['spanId'] == f'{span:016x}':
                    one['endTimeUnixNano'] = str(end)

    def write(self, folder: Path, batch: int = 100) -> Path:
        with open(folder / 'traces-node0-1.jsonl', 'w') as file:
            for process, spans in self.lines.items():
                resource = {'attributes': attributes(self.resources.get(process, {}))}
                for start in range(0, len(spans), batch):
                    scopes = [{'scope': {'name': 'lens-auto'}, 'spans': spans[start : start + batch]}]
                    file.write(json.dumps({'resourceSpans': [{'resource': resource, 'scopeSpans': scopes}]}) + '\n')
        return folder

    def run(self, folder: Path) -> Run:
        return load(str(self.write(folder)))


def synchronous(
    steps: int = 12,
    phases: dict[str, float] | None = None,
    noise: float = 0.0,
    seed: int = 0,
    other: float = 2.0,
    rollouts: list[float] | None = None,
) -> Plant:
    """A driver that does one phase after the other; `rollouts` (milliseconds) are awaited together inside the rollout.

    Args:
        steps: How many.
        phases: Milliseconds of each.
        noise: Standard deviation of every phase, as part of it.
        seed: Of the noise.
        other: Milliseconds of each step that are in no phase.
        rollouts: Milliseconds of each rollout of a step.
    """
    draw = random.Random(seed)
    plant = Plant()
    driver = plant.process(0, lens__role='driver')
    now = BEGIN
    for number in range(1, steps + 1):
        step = plant.span(driver, 'rl.grpo.step', now, now, rl__iteration=number)
        now += round(other * MS / 2)
        for name, spent in (phases or HEALTHY).items():
            length = round(spent * MS * max(0.2, draw.gauss(1.0, noise) if noise else 1.0))
            phase = plant.span(driver, f'rl.grpo.{name}', now, now + length, step)
            if name == 'collect_rollouts':
                if rollouts:
                    for one in rollouts:
                        plant.span(driver, 'rl.grpo.rollout', now, now + min(length, round(one * MS)), phase)
                else:
                    plant.span(driver, 'rl.grpo.generate', now, now + length, phase)
            now += length
        now += round(other * MS / 2)
        plant.close(step, now)
    return plant


def ranks(
    size: int = 8,
    steps: int = 10,
    slow: int | None = None,
    loader: float = 30.0,
    slow_loader: float = 230.0,
    noise: float = 0.02,
    seed: int = 3,
) -> Plant:
    """Ranks that load data and go backward, where an all-reduce inside makes all leave together: milliseconds.

    One rank may have a slow loader: then its peers have a long backward.
    """
    plant = Plant()
    draw = random.Random(seed)
    for rank in range(size):
        plant.process(rank, dl__rank=rank, dl__world_size=size, lens__role='rank')
    now = BEGIN
    for number in range(1, steps + 1):
        loads = [
            round((slow_loader if rank == slow else loader) * MS * draw.uniform(1 - noise, 1 + noise))
            for rank in range(size)
        ]
        end = now + max(loads) + 300 * MS
        for rank in range(size):
            step = plant.span(rank, 'train.step', now, end, rl__iteration=number, lens__group='step')
            plant.span(rank, 'train.data_processing', now, now + loads[rank], step)
            backward = end - draw.randrange(MS)
            plant.span(rank, 'train.backward', now + loads[rank], backward, step, lens__group='forward_backward')
        now = end
    return plant


def asynchronous(
    steps: int = 12,
    wait: float = 5.0,
    train: float = 600.0,
    generate: float = 560.0,
    pause: float = 40.0,
    noise: float = 0.0,
    seed: int = 0,
) -> Plant:
    """A trainer that takes batches from a buffer and a collector that generates ahead: milliseconds of each a step."""
    draw = random.Random(seed)

    def length(spent: float) -> int:
        return round(spent * MS * max(0.2, draw.gauss(1.0, noise) if noise else 1.0))

    plant = Plant()
    driver = plant.process(0, lens__role='driver')
    collector = plant.process(1, lens__role='worker', ray__actor__class='Collector')
    now = BEGIN
    for number in range(1, steps + 1):
        step = plant.span(driver, 'rl.grpo.step', now, now, rl__iteration=number)
        end = now + length(wait)
        idle = plant.span(driver, 'rl.idle.buffer_starvation', now, end, step)
        plant.span(driver, 'ray.get Buffer.take', now, end, idle)
        trained = end + length(train)
        plant.span(driver, 'rl.grpo.policy_update', end, trained, step)
        end = trained
        plant.close(step, end)
        at = now + length(generate)
        batch = plant.span(collector, 'rl.grpo.collect_rollouts', now, at)
        plant.span(collector, 'rl.grpo.generate', now, at, batch)
        if pause:
            plant.span(collector, 'rl.idle.generation_limit_pause', at, at + length(pause))
        now = end
    return plant
