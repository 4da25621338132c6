# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is. The environment says so, but a worker of Ray inherits the driver's, whose rank it is not.

Ray starts workers from its raylet, which has the environment of whoever started the cluster. A worker group gives each
worker variables of its own; an actor outside a group has the raylet's, and is rank 0 of 1.
"""

from __future__ import annotations

import os
import sys

from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

RANK_NAMES = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK')
_RENDEZVOUS = (*RANK_NAMES, 'MASTER_ADDR', 'MASTER_PORT')
_WORKER = '/ray/_private/workers/default_worker.py'


def in_ray_worker() -> bool:
    """True in a process that Ray started to run tasks and actors."""
    return any(word.endswith(_WORKER) for word in sys.orig_argv[1:6])


def own(environ: Mapping[str, str]) -> Mapping[str, str]:
    """RANK, WORLD_SIZE and LOCAL_RANK as they hold for this process, with the rest of the environment.

    Args:
        environ: The process's own environment.
    """
    if not in_ray_worker() or not environ.get('RANK'):
        return environ
    inherited = _of_parent()
    if inherited is None or any(environ.get(name) != inherited.get(name) for name in _RENDEZVOUS):
        return environ
    return {**environ, 'RANK': '0', 'WORLD_SIZE': '1', 'LOCAL_RANK': '0'}


def _of_parent() -> dict[str, str] | None:
    try:
        with open(f'/proc/{os.getppid()}/environ', 'rb') as file:
            pairs = (item.partition(b'=') for item in file.read().split(b'\0'))
            return {
                name.decode(): value.decode('utf-8', 'surrogateescape')
                for name, _, value in pairs
                if name.decode('ascii', 'replace') in _RENDEZVOUS
            }
    except OSError as error:
        if foreign(error):
            raise
        return None
