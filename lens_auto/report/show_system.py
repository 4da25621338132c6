# SPDX-License-Identifier: Apache-2.0
"""Draws what the system said: CPU, memory and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lens_auto.collect.figures import number, percent, size
from lens_auto.report.tables import row, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from lens_auto.report.folder import Run
    from lens_auto.report.system import GpuUse, PhaseUse, ProcessUse

_MOST = 40  # processes


def phase_table(found: Sequence[PhaseUse]) -> RenderableType:
    """What was in use while each kind of phase went on.

    Args:
        found: The kinds.
    """
    gpus = any(one.gpu is not None for one in found)
    made = table('while', 'run cpu', 'node cpu', *(('gpu', 'gpu memory', 'power') if gpus else ()), 'samples')
    for one in found:
        figures = [_share(one.cpu), _share(one.node_cpu)]
        if gpus:
            figures += [_share(one.gpu), _size(one.gpu_memory), _watts(one.power)]
        row(made, one.phase, *figures, number(one.samples))
    return made


def process_table(found: Sequence[ProcessUse], run: Run) -> RenderableType:
    """What each process used.

    Args:
        found: The processes.
        run: Their run.
    """
    made = table('process', 'cpu', 'most', 'memory at first', 'most', 'threads')
    for one in found[:_MOST]:
        who = run.store.processes[one.process].label
        memory = size(one.memory_first), size(one.memory_most)
        row(made, who, _share(one.cpu), _share(one.cpu_most), *memory, number(one.threads))
    if len(found) > _MOST:
        row(made, f'{len(found) - _MOST} more: --json', style='dim')
    return made


def gpu_table(found: Sequence[GpuUse], run: Run) -> RenderableType:
    """What each GPU did.

    Args:
        found: The GPUs.
        run: Their run.
    """
    made = table('gpu', 'used', 'memory', 'of', 'power', 'hottest', 'energy')
    nodes = len({one.process for one in found})
    for one in found:
        host = run.store.processes[one.process].host
        heat = '' if one.temperature is None else f'{one.temperature:.0f} C'
        energy = '' if one.energy is None else f'{one.energy / 3.6e6:.3g} kWh'
        name = f'{host} {one.gpu}' if nodes > 1 else one.gpu
        memory = _size(one.memory_most), _size(one.memory_limit)
        row(made, name, _share(one.used), *memory, _watts(one.power), heat, energy)
    return made


def _share(item: float | None) -> str:
    return '' if item is None else percent(item)


def _size(item: float | None) -> str:
    return '' if item is None else size(item)


def _watts(item: float | None) -> str:
    return '' if item is None else f'{item:.0f} W'
