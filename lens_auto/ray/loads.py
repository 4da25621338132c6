# SPDX-License-Identifier: Apache-2.0
"""Classes and functions that Ray gives to a worker: there they are patched, as they may have come by value.

`ray.remote` derives a class of its own, copies every method onto it when the class is decorated, and sends it by value.
So the class that runs in a worker is in no module there, and a patch of the module's own would miss it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lens_auto.ray.carrier import Carriers
    from lens_auto.ray.tasks import Tasks


class ClassLoads:
    """`FunctionActorManager._load_actor_class_from_gcs` and `..._from_local`: they return the class that will run.

    They run also where only a handle is unpickled. Nothing is recorded by patching a class, so that does no harm.
    """

    __slots__ = ('_carriers', '_loaded', '_tasks')

    def __init__(self, loaded: Callable[[str, str, Any], None], tasks: Tasks, carriers: Carriers):
        """See the class.

        Args:
            loaded: Patches what the rules name in the class.
            tasks: Told which actor's class it is.
            carriers: Receive what is sent along with calls of its methods.
        """
        self._loaded = loaded
        self._tasks = tasks
        self._carriers = carriers

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """Ray has loaded a class.

        Args:
            args: The manager, (the job,) the descriptor.
            result: The class, None when it is not there.
        """
        if isinstance(result, type):
            descriptor = args[-1]
            self._tasks.creating(descriptor.class_name)
            self._loaded(descriptor.module_name, descriptor.class_name, result)
            self._carriers.receive(result)


class FunctionLoads:
    """`FunctionActorManager.fetch_and_register_remote_function(self, key)`: it keeps the function it unpickled."""

    __slots__ = ('_loaded',)

    def __init__(self, loaded: Callable[[str, str, Any], None]):
        """See the class.

        Args:
            loaded: Patches it where the rules name it.
        """
        self._loaded = loaded

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """Ray has registered a function: the newest of those it keeps.

        Args:
            args: The manager, the key.
            result: True when it did.
        """
        kept = args[0]._function_execution_info
        function = getattr(next(reversed(kept.values()), None), 'function', None) if result else None
        if function is not None:
            inner = function
            while getattr(inner, '__wrapped__', None) is not None:
                inner = inner.__wrapped__
            self._loaded(function.__module__, inner.__qualname__, function)
