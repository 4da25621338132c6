# SPDX-License-Identifier: Apache-2.0
"""Which worker of Ray this process is: job, node, actor. Told once, with the first span of a task."""

from __future__ import annotations

import os
import sys

from lens_auto.record.ranks import RANK_NAMES, own
from lens_auto.record.resource import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from lens_auto.record.recorder import Recorder


class Identity:
    """What the collector shall know of this worker besides what the process says of itself."""

    __slots__ = ('_actor_class', '_ranked', '_ranks', '_recorder', '_told')

    def __init__(self, recorder: Recorder, ranked: Callable[[], None]):
        """See the class.

        Args:
            recorder: The process's recorder.
            ranked: Called when the process has another rank than it began with: it may be one that does not export.
        """
        self._recorder = recorder
        self._ranked = ranked
        self._actor_class = ''
        self._told: dict[str, Any] = {}
        self._ranks = _ranks()

    def creating(self, actor_class: str) -> None:
        """Ray has loaded a class; the one it loads before this process's actor exists is that actor's.

        Args:
            actor_class: Its name.
        """
        if not self._actor_class:
            worker: Any = getattr(sys.modules.get('ray._private.worker'), 'global_worker', None)
            core = getattr(worker, 'core_worker', None)
            if core is None:
                return
            actor = core.get_actor_id()
            if not actor.is_nil() and actor not in getattr(worker, 'actors', {}):
                self._actor_class = actor_class

    def tell(self, core: Any) -> None:
        """Journal what is new since the last time.

        Args:
            core: Ray's core worker.
        """
        told = self._told
        if not told:
            told['ray.job.id'] = core.get_current_job_id().hex()
            told['ray.node.id'] = core.get_current_node_id().hex()
            actor = core.get_actor_id()
            if not actor.is_nil():
                told['ray.actor.id'] = actor.hex()
                name = core.get_actor_name().decode('utf-8', 'replace')
                if name:
                    told['ray.actor.name'] = name[:256]
                    told.update(_group(name, os.environ))
                if self._actor_class:
                    told['ray.actor.class'] = self._actor_class[:256]
            self._recorder.resource(dict(told))
        # Some frameworks give an actor its rank in its constructor, when the process has described itself already.
        ranks = _ranks()
        if ranks != self._ranks:
            self._ranks = ranks
            self._recorder.resource(describe(os.environ))
            self._ranked()


def _group(actor: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The worker group of a rank: NeMo-RL's own variable, else its actor's name without the numbers at the end."""
    if not environ.get('RANK') or own(environ) is not environ:
        return {}
    parts = actor.split('-')
    while len(parts) > 1 and parts[-1].removeprefix('grp').isdigit():
        parts.pop()
    group = environ.get('NRL_WORKER_GROUP') or '-'.join(parts)
    return {'rl.worker_group': group[:256]} if group != actor or environ.get('NRL_WORKER_GROUP') else {}


def _ranks() -> tuple[str | None, ...]:
    return tuple(os.environ.get(name) for name in RANK_NAMES)
