# SPDX-License-Identifier: Apache-2.0
"""What a process says of itself in its journal's header: rank, role, program; the collector adds host and run."""

from __future__ import annotations

import os
import sys

from lens_auto.record import ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Environment names whose values are safe and worth having; the collector maps them to attributes.
_RANKS = (('RANK', 'dl.rank'), ('WORLD_SIZE', 'dl.world_size'), ('LOCAL_RANK', 'dl.local_rank'))


def role(environ: Mapping[str, str]) -> str:
    """'driver' (the launcher's child, alone), 'rank' (torchrun, srun), 'worker' (of Ray), or 'process'.

    Args:
        environ: The process's own environment.
    """
    if ranks.in_ray_worker():
        return 'worker'
    if environ.get('WORLD_SIZE', '1') not in ('', '1'):
        return 'rank'
    return 'driver' if environ.get('LENS_LAUNCHER_PID') == str(os.getppid()) else 'process'


def describe(environ: Mapping[str, str]) -> dict[str, str | int | float | bool]:
    """Resource attributes of this process.

    Args:
        environ: The process's own environment.
    """
    arguments = getattr(sys, 'argv', None) or ['']
    found: dict[str, str | int | float | bool] = {
        'process.pid': os.getpid(),
        'process.parent_pid': os.getppid(),
        'process.runtime.name': sys.implementation.name,
        'process.runtime.version': '{}.{}.{}'.format(*sys.version_info[:3]),
        'process.executable.name': os.path.basename(sys.executable or '')[:256],
        # The first word only: arguments hold paths, tokens and prompts.
        'process.command': os.path.basename(arguments[0])[:256] or 'python',
        'lens.role': role(environ),
    }
    own = ranks.own(environ)
    for name, attribute in _RANKS:
        value = own.get(name, '')
        if value.isdigit():
            found[attribute] = int(value)
    return found
