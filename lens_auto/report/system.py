# SPDX-License-Identifier: Apache-2.0
"""What the system says of a run: CPU, memory and GPUs by phase, by process, by GPU.

A sample tells of the time since the last one. It counts for a kind of phase only when that kind went on for nine tenths
of that time: phases that are shorter than the pause between two samples are left without a figure, not given that of
their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lens_auto.report.arrays import Flags, Floats, Ints, np
from lens_auto.report.kinds import KINDS

if TYPE_CHECKING:
    from lens_auto.report.store import Series, Store
    from lens_auto.report.tree import Tree

_PHASES = ('step', 'generation', 'reward', 'logprob', 'training', 'refit', 'checkpoint', 'evaluation', 'data', 'setup')
_CPU, _NODE = 'process.cpu.utilization', 'system.cpu.utilization'
_GPU, _MEMORY, _LIMIT, _POWER = 'hw.gpu.utilization', 'hw.gpu.memory.usage', 'hw.gpu.memory.limit', 'hw.power'
_MOSTLY = 0.9
_FEWEST = 3  # samples of a phase
_LATELY = 1_000_000_000  # nanoseconds that a GPU's figure tells of at most


@dataclass
class PhaseUse:
    """What was in use while a kind of phase went on; 1 is all of the CPUs, or of a GPU.

    Attributes:
        phase: The kind.
        samples: From how many.
        cpu: By the run's processes.
        node_cpu: By everything on their nodes.
        gpu: On average over GPUs; None where there is none.
        gpu_memory: Bytes at most, all GPUs together.
        power: Watts, all GPUs together.
    """

    phase: str
    samples: int
    cpu: float | None
    node_cpu: float | None
    gpu: float | None
    gpu_memory: float | None
    power: float | None


@dataclass
class ProcessUse:
    """What a process used; CPU as in `PhaseUse`.

    Attributes:
        cpu: On average.
        cpu_most: In one sample.
        memory_first: Bytes resident at the first sample.
        memory_most: At most.
        threads: At most.
    """

    process: int
    cpu: float
    cpu_most: float
    memory_first: float
    memory_most: float
    threads: int


@dataclass
class GpuUse:
    """What a GPU did.

    Attributes:
        process: The launcher on its node.
        gpu: Which one.
        used: Its utilisation on average.
        memory_most: Bytes at most.
        memory_limit: Bytes it has.
        power: Watts on average.
        temperature: Degrees Celsius at most.
        energy: Joules.
    """

    process: int
    gpu: str
    used: float | None
    memory_most: float | None
    memory_limit: float | None
    power: float | None
    temperature: float | None
    energy: float | None


@dataclass
class System:
    """The three tables; phases in the order of a step, processes and GPUs by what they used."""

    phases: list[PhaseUse]
    processes: list[ProcessUse]
    gpus: list[GpuUse]


def system(store: Store, tree: Tree) -> System:
    """All that is known of it.

    Args:
        store: The run.
        tree: Its tree.
    """
    by_name: dict[str, list[Series]] = {}
    for series in store.series.values():
        by_name.setdefault(series.name, []).append(series)
    return System(_phases(tree, by_name), _processes(by_name), _gpus(by_name))


def _phases(tree: Tree, by_name: dict[str, list[Series]]) -> list[PhaseUse]:
    found: list[PhaseUse] = []
    for phase in _PHASES:
        busy = (tree.kind == KINDS.index(phase)) & ~tree.waits
        if not busy.any():
            continue
        covered = _Covered(tree.rows['start'][busy], tree.rows['end'][busy])
        cpu, samples = _mean_of_sum(by_name.get(_CPU, []), covered)
        node, nodes = _mean(by_name.get(_NODE, []), covered)
        gpu, looks = _mean(by_name.get(_GPU, []), covered, _LATELY)
        samples = max(samples, nodes, looks)
        if samples < _FEWEST:
            continue
        memory = _together(by_name.get(_MEMORY, []), covered)
        power = _together(by_name.get(_POWER, []), covered)
        found.append(
            PhaseUse(
                phase,
                samples,
                cpu,
                node,
                gpu,
                float(memory.max()) if len(memory) else None,
                float(power.mean()) if len(power) else None,
            )
        )
    return found


class _Covered:
    """How much of any stretch of time a set of intervals covers."""

    def __init__(self, starts: Ints, ends: Ints) -> None:
        # They come sorted by start. One that begins before another has ended goes on where that ends.
        reach = np.maximum.accumulate(ends)
        self._starts = np.maximum(starts, np.concatenate([starts[:1], reach[:-1]]))
        self._ends = reach
        self._sums = np.concatenate([[0], np.cumsum(np.maximum(0, self._ends - self._starts))])

    def mostly(self, begin: Ints, end: Ints) -> Flags:
        """Whether nine tenths of each stretch are covered."""
        return (self._until(end) - self._until(begin) >= _MOSTLY * (end - begin)) & (end > begin)

    def _until(self, at: Ints) -> Ints:
        place = np.searchsorted(self._starts, at, side='right') - 1
        inside = np.minimum(at, self._ends[np.maximum(place, 0)]) - self._starts[np.maximum(place, 0)]
        return np.where(place >= 0, self._sums[np.maximum(place, 0)] + np.maximum(0, inside), 0)


def _within(series: Series, covered: _Covered, lately: int = 0) -> tuple[Ints, Floats]:
    """The samples that count for a phase: when, and what."""
    times, values = _columns(series)
    if len(times) < 2:
        return times[:0], values[:0]
    begin, end = times[:-1], times[1:]
    if lately:
        begin = np.maximum(begin, end - lately)
    chosen = covered.mostly(begin, end)
    return end[chosen], values[1:][chosen]


def _columns(series: Series) -> tuple[Ints, Floats]:
    """Times and values of the points that are numbers, by time."""
    times, values = np.frombuffer(series.times, dtype=np.int64), np.frombuffer(series.values, dtype=np.float64)
    finite = np.isfinite(values)
    times, values = times[finite], values[finite]
    order = np.argsort(times, kind='stable')
    return times[order], values[order]


def _values(listed: list[Series]) -> dict[tuple[int, str], Floats]:
    """The values of each series that has any, by process and part."""
    columns = {(one.process, one.part): _columns(one)[1] for one in listed}
    return {key: values for key, values in columns.items() if len(values)}


def _mean(listed: list[Series], covered: _Covered, lately: int = 0) -> tuple[float | None, int]:
    parts = [_within(one, covered, lately)[1] for one in listed]
    values = np.concatenate(parts) if parts else np.empty(0)
    return (float(values.mean()) if len(values) else None), max((len(part) for part in parts), default=0)


def _mean_of_sum(listed: list[Series], covered: _Covered) -> tuple[float | None, int]:
    """The sum over processes, on average over the rounds in which they were asked."""
    parts = [_within(one, covered)[1] for one in listed]
    rounds = max((len(part) for part in parts), default=0)
    return (float(sum(part.sum() for part in parts)) / rounds if rounds else None), rounds


def _together(listed: list[Series], covered: _Covered) -> Floats:
    """The sums of what was asked at the same time."""
    parts = [_within(one, covered, _LATELY) for one in listed]
    if not parts:
        return np.empty(0)
    times = np.concatenate([part[0] for part in parts])
    values = np.concatenate([part[1] for part in parts])
    _, inverse = np.unique(times, return_inverse=True)
    return np.bincount(inverse.reshape(-1), weights=values) if len(times) else np.empty(0)


def _processes(by_name: dict[str, list[Series]]) -> list[ProcessUse]:
    def figures(name: str) -> dict[int, Floats]:
        return {process: values for (process, _), values in _values(by_name.get(name, [])).items()}

    memory, threads, cpu = figures('process.memory.usage'), figures('process.thread.count'), figures(_CPU)
    found = [
        ProcessUse(
            process,
            float(cpu[process].mean()) if process in cpu else 0.0,
            float(cpu[process].max()) if process in cpu else 0.0,
            float(values[0]),
            float(values.max()),
            int(threads[process].max()) if process in threads else 0,
        )
        for process, values in memory.items()
    ]
    return sorted(found, key=lambda one: (-one.cpu, one.process))


def _gpus(by_name: dict[str, list[Series]]) -> list[GpuUse]:
    def figures(name: str) -> dict[tuple[int, str], Floats]:
        return _values(by_name.get(name, []))

    used, memory, limit, power = figures(_GPU), figures(_MEMORY), figures(_LIMIT), figures(_POWER)
    heat, energy = figures('hw.temperature'), figures('hw.energy')

    def mean(of: dict[tuple[int, str], Floats], key: tuple[int, str]) -> float | None:
        return float(of[key].mean()) if key in of else None

    def most(of: dict[tuple[int, str], Floats], key: tuple[int, str]) -> float | None:
        return float(of[key].max()) if key in of else None

    return [
        GpuUse(
            *key,
            mean(used, key),
            most(memory, key),
            most(limit, key),
            mean(power, key),
            most(heat, key),
            most(energy, key),
        )
        for key in sorted({*used, *memory})
    ]
