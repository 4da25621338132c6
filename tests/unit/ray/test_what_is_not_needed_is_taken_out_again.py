# SPDX-License-Identifier: Apache-2.0
"""A process that stops recording gives the methods of its actor's class their own code back."""

from __future__ import annotations

from typing import Any, cast

from lens_auto.ray.carrier import Carriers


def loaded() -> type:
    """A class as Ray makes it: its methods are `_resume_span`."""

    class Worker:
        def _resume_span(self, *args: Any, _ray_trace_ctx: Any = None, **kwargs: Any) -> Any:
            return args, kwargs

        def other(self) -> None:
            pass

    return Worker


def test_methods_are_patched_while_spans_are_recorded() -> None:
    sites: dict[str, Any] = {}
    carriers, worker = Carriers(cast(Any, None), sites), loaded()
    method, other = vars(worker)['_resume_span'], vars(worker)['other']
    own, others = method.__code__, other.__code__
    carriers.receive(worker)
    ours = method.__code__
    assert ours is not own and other.__code__ is others
    carriers.select(False)
    assert method.__code__ is own
    carriers.select(True)
    assert method.__code__ is ours and sites[carriers.key] is carriers
