# SPDX-License-Identifier: Apache-2.0
"""The functions of Ray that tell us something, by module."""

from __future__ import annotations

from lens_auto.ray.calls import ActorCreations, MethodCalls, TaskCalls
from lens_auto.ray.carrier import Carriers
from lens_auto.ray.loads import ClassLoads, FunctionLoads
from lens_auto.ray.reach import Connections, RuntimeEnvironments
from lens_auto.ray.tasks import Tasks
from lens_auto.wrap.code import AFTER, BEFORE, REPLACE
from lens_auto.wrap.direct import BOTH
from lens_auto.wrap.seams import Seams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder

# What is patched in which module. All three exist under these names in Ray 2.40 to 2.60; one that a later version has
# moved is reported as missing and the rest goes on.
SEAMS = {
    'ray._private.function_manager': (
        ('FunctionActorManager._load_actor_class_from_gcs', AFTER, 'classes'),
        ('FunctionActorManager._load_actor_class_from_local', AFTER, 'classes'),
        ('FunctionActorManager.fetch_and_register_remote_function', AFTER, 'functions'),
    ),
    'ray.actor': (
        ('ActorHandle._actor_method_call', BOTH, 'methods'),
        ('ActorClass._remote', AFTER, 'actors'),
    ),
    'ray.remote_function': (('RemoteFunction._remote', AFTER, 'tasks'),),
    'ray.runtime_env.runtime_env': (('RuntimeEnv.serialize', REPLACE, 'environments'),),
    'ray._private.worker': (('connect', BEFORE, 'connections'),),
}


class Ray(Seams):
    """What of Ray is patched in this process.

    Attributes:
        tasks: The Ray task that code here runs in, and the tasks submitted from here.
    """

    def __init__(
        self,
        recorder: Recorder,
        faults: Faults,
        sites: dict[str, Any],
        loaded: Callable[[str, str, Any], None],
        ranked: Callable[[], None],
        environ: Any,
    ):
        """See the class.

        Args:
            recorder: The process's recorder.
            faults: Its fault count.
            sites: The process's sites, by key.
            loaded: Patches what the rules name in a class or function that Ray has loaded, see `Patches.loaded`.
            ranked: See `Identity`.
            environ: `os.environ`.
        """
        self.tasks = Tasks(recorder, faults, ranked)
        self._carriers = Carriers(recorder, sites)
        told = {
            'classes': ClassLoads(loaded, self.tasks, self._carriers),
            'functions': FunctionLoads(loaded),
            'methods': MethodCalls(self.tasks),
            'actors': ActorCreations(self.tasks),
            'tasks': TaskCalls(self.tasks),
            'environments': RuntimeEnvironments(environ),
            'connections': Connections(recorder, environ),
        }
        super().__init__('ray', SEAMS, told, recorder, faults)

    def select(self, on: bool) -> None:
        """See `Seams.select`."""
        super().select(on)
        self.tasks.select(on)
        self._carriers.select(on)
