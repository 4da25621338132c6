# SPDX-License-Identifier: Apache-2.0
"""Waiting for Ray: spans of `ray.get` and `ray.wait`, which say what is waited for. RL drivers live there."""

from __future__ import annotations

from lens_auto.ray.tasks import task_of
from lens_auto.record.foreign import foreign
from lens_auto.record.span import current
from lens_auto.wrap.site import DEEPEST, Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.ray.tasks import Tasks
    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span
    from lens_auto.wrap.figures import Figures


class WaitSite(Site):
    """`ray.get(object_refs, ...)` or `ray.wait(object_refs, ...)`."""

    __slots__ = ('_function', '_group', '_tasks')

    def __init__(self, rule: dict[str, Any], figures: Figures, recorder: Recorder, faults: Faults, tasks: Tasks):
        """See the class.

        Args:
            rule: The compiled rule.
            figures: Its counts.
            recorder: The process's recorder.
            faults: Its fault count.
            tasks: Knows what the tasks submitted from here run.
        """
        super().__init__(rule, None, figures, recorder, faults)
        self.counts_all = True
        self._tasks = tasks
        self._function: str = rule['on']
        self._group: str = rule['group']
        tasks.remember()

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """A span for a wait that begins. See `Site.open`."""
        figures = self.figures
        figures.calls += 1
        up = current.get()
        if up is not None and up.nest >= DEEPEST:
            figures.over += 1
            return None
        name = f'ray.{self._function}'
        attributes: dict[str, Any] = {'lens.group': self._group}
        try:
            refs: Any = args[0]
            many = refs.__class__ is list or refs.__class__ is tuple
            attributes['ray.refs'] = len(refs) if many else 1
            task = task_of((refs[0] if refs else None) if many else refs)
            method = None if task is None or self._tasks.names is None else self._tasks.names.get(task)
            if method is not None:
                name = f'{name} {method}'
                attributes['ray.method'] = method
        except Exception as error:
            if foreign(error):
                raise
            figures.unread += 1
        span = self._recorder.open_under(up, self, name, self.key, attributes, False, True, attach)
        span.late = None
        if figures.left > 0:
            figures.left -= 1
        return span
