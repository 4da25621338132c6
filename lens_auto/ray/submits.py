# SPDX-License-Identifier: Apache-2.0
"""Spans of `.remote()` calls, for those who want to see what is submitted and how long that takes."""

from __future__ import annotations

from lens_auto.ray.calls import function_name, method_name
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


class SubmitSite(Site):
    """A `.remote()` call; the task's own span is a child of this one, as the call was made while it was current."""

    __slots__ = ('_group',)

    def __init__(self, rule: dict[str, Any], figures: Figures, recorder: Recorder, faults: Faults, tasks: Tasks):
        """See the class.

        Args:
            rule: The compiled rule.
            figures: Its counts.
            recorder: The process's recorder.
            faults: Its fault count.
            tasks: Not needed: `calls` notes the task, under this span, as it is current meanwhile.
        """
        super().__init__(rule, None, figures, recorder, faults)
        self.counts_all = True
        self._group: str = rule['group']

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """A span for a call that is submitted. See `Site.open`."""
        figures = self.figures
        figures.calls += 1
        up = current.get()
        if up is not None and up.nest >= DEEPEST:
            figures.over += 1
            return None
        target = args[0]
        what = function_name(target) if hasattr(target, '_function_name') else method_name(target, args[1])
        attributes = {'lens.group': self._group, 'ray.method': what}
        span = self._recorder.open_under(up, self, f'{what}.remote', self.key, attributes, False, True, attach)
        span.late = None
        if figures.left > 0:
            figures.left -= 1
        return span
