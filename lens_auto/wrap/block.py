# SPDX-License-Identifier: Apache-2.0
"""Spans of blocks that the source itself marks (`lens_auto.source`), and of a timer's start and stop marked so."""

from __future__ import annotations

from lens_auto.record.span import Span, current
from lens_auto.wrap.expression import Scope
from lens_auto.wrap.site import DEEPEST, Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from types import FrameType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.wrap.figures import Figures
    from lens_auto.wrap.readers import Readers

OPEN = 4096  # pairs open at a time


class BlockSite(Site):
    """One block of the source; what an expression calls `frame` is the function that holds it."""

    __slots__ = ('_rules',)

    def __init__(
        self,
        rule: dict[str, Any],
        readers: Readers,
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
        rules: Container[str],
    ):
        """See the class.

        Args:
            rule: See `Site`.
            readers: See `Site`.
            figures: See `Site`.
            recorder: See `Site`.
            faults: See `Site`.
            rules: Keys of rules that may say the same as the source does: whose span it then is.
        """
        super().__init__(rule, readers, figures, recorder, faults)
        self._rules = rules

    def begin(self, frame: FrameType, attach: bool = True) -> Span | None:
        """A span for a block that begins, or None when it is not recorded.

        Args:
            frame: Of the function that holds the block.
            attach: Make the span current.
        """
        figures = self.figures
        figures.calls += 1
        up = current.get()
        if not figures.left or (up is not None and up.nest >= DEEPEST):
            figures.over += 1
            return None
        readers = self._readers
        assert readers is not None
        if up is not None and up.site.key in self._rules and up.name == self._called(readers, frame):
            return None  # a rule's span of this very block
        return self._start(readers, (), frame, None, attach, up, self._root, self._announce)

    def _called(self, readers: Readers, frame: FrameType) -> str:
        return readers.name if readers.name is not None else self._name(readers, Scope((), frame))


class Pairs:
    """The spans between a timer's start and stop, by timer and label."""

    __slots__ = ('_open',)

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], list[Span]] = {}

    def begun(self, timer: int, label: str, span: Span, attached: bool) -> None:
        """A span has begun.

        Args:
            timer: id() of the timer.
            label: The label.
            span: Its span.
            attached: The span is current.
        """
        if len(self._open) >= OPEN:
            self._open.pop(next(iter(self._open)))
        self._open.setdefault((timer, label), []).append(span)
        if span.up is not None and not attached:
            # If its stop never comes, it ends with the span around it.
            span.up.pending = [*(span.up.pending or ()), span]

    def ended(self, timer: int, label: str) -> Span | None:
        """The span that ends, or None where there is none.

        Args:
            timer: id() of the timer.
            label: The label.
        """
        spans = self._open.get((timer, label))
        if not spans:
            return None
        span = spans.pop()
        if not spans:
            del self._open[timer, label]
        return span
