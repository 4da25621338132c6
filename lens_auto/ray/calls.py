# SPDX-License-Identifier: Apache-2.0
"""What a process submits to Ray: stored as (task id, current span), which is all the collector needs to join the two.

Told after Ray's own submitting functions returned, so a call that Ray refuses leaves nothing.
"""

from __future__ import annotations

import sys

from lens_auto.ray.carrier import attach, detach
from lens_auto.record.span import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.ray.tasks import Tasks


# Among `_actor_method_call`'s parameters, in every Ray from 2.40 to 2.60.
_KWARGS = 3


class MethodCalls:
    """`ActorHandle._actor_method_call(self, method_name, ...)`: every call of an actor's method goes through it."""

    __slots__ = ('_submitted',)
    condition = 'num_returns == 0'

    def __init__(self, tasks: Tasks):
        """See the class.

        Args:
            tasks: Where the call is noted.
        """
        self._submitted = tasks.submitted

    def before(self, args: tuple[Any, ...]) -> None:
        """A call is about to be submitted: one that returns no ref takes the caller's ids along.

        Args:
            args: Handle, method name, and the rest.
        """
        attach(args[0], args[1], args[_KWARGS])

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """Ray has submitted the call.

        Args:
            args: Handle, method name, and the rest.
            result: The refs.
        """
        if result is None:
            detach(args[_KWARGS])
            return
        self._submitted(result, _of_method, args)


class TaskCalls:
    """`RemoteFunction._remote(self, ...)`."""

    __slots__ = ('_submitted',)

    def __init__(self, tasks: Tasks):
        """See the class.

        Args:
            tasks: Where the call is noted.
        """
        self._submitted = tasks.submitted

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """Ray has submitted the task.

        Args:
            args: The remote function, and the rest.
            result: The refs.
        """
        self._submitted(result, function_name, args[0])


class ActorCreations:
    """`ActorClass._remote(self, ...)`: the creation of an actor is a task too, the one that runs `__init__`."""

    __slots__ = ('_tasks',)

    def __init__(self, tasks: Tasks):
        """See the class.

        Args:
            tasks: Where the call is noted.
        """
        self._tasks = tasks

    def after(self, args: tuple[Any, ...], result: Any) -> None:
        """Ray has submitted the creation, or found the actor (`get_if_exists`): the first to say so is the creator.

        Args:
            args: The actor class, and the rest.
            result: The handle.
        """
        actor = getattr(result, '_ray_actor_id', None)
        ray: Any = sys.modules.get('ray')
        if actor is not None and ray is not None:
            task = ray.TaskID.for_actor_creation_task(actor).binary()
            self._tasks.note(task, current.get(), _of_creation, result)


def method_name(handle: Any, method: str) -> str:
    """'Class.method' of a call on an actor's handle.

    Args:
        handle: The handle.
        method: The method.
    """
    descriptor = getattr(handle, '_ray_actor_creation_function_descriptor', None)
    return f'{getattr(descriptor, "class_name", "actor")}.{method}'


def function_name(remote: Any) -> str:
    """The name of a remote function.

    Args:
        remote: Ray's `RemoteFunction`.
    """
    return str(getattr(remote, '_function_name', '')).rpartition('.')[2]


def _of_method(args: tuple[Any, ...]) -> str:
    return method_name(args[0], args[1])


def _of_creation(handle: Any) -> str:
    return method_name(handle, '__init__')
