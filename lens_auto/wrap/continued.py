# SPDX-License-Identifier: Apache-2.0
"""Blocks of a timer that go on in the next block of the same label: a step that polls and leaves its `with` block.

Between two such blocks the span rests: it is not current, and it has not ended. It ends, as of the moment it came to
rest, when the timer times something that it does not continue over, with the span around it, or with the process.
"""

from __future__ import annotations

import atexit
from time import monotonic_ns

from lens_auto.record.foreign import foreign
from lens_auto.record.format import STATUS_UNSET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span


class _Block:
    """A block that runs, or the span it left: of which timer and label, and whether something else was timed in it."""

    __slots__ = ('label', 'other', 'over', 'span', 'timer')

    def __init__(self, span: Span, timer: int, label: str, over: tuple[str, ...]):
        self.span = span
        self.timer = timer
        self.label = label
        self.over = over
        self.other = False


class Continued:
    """The blocks of one timer rule whose labels say `continues_over`."""

    __slots__ = ('_faults', '_key', '_recorder', '_resting', '_running')

    def __init__(self, recorder: Recorder, faults: Faults, key: str):
        """See the class.

        Args:
            recorder: The process's recorder.
            faults: Its fault count.
            key: The rule's key.
        """
        self._recorder = recorder
        self._faults = faults
        self._key = key
        self._running: dict[bytes, _Block] = {}
        self._resting: dict[tuple[int, str], _Block] = {}
        atexit.register(self._exit)

    def timed(self, timer: int, label: str) -> None:
        """A label begins, recorded or not: what may not continue over it does not.

        Args:
            timer: id() of the timer.
            label: The label.
        """
        for block in list(self._running.values()):
            if block.timer == timer and label not in block.over:
                block.other = True
        for key, block in list(self._resting.items()):
            if key[0] == timer and label != block.label and label not in block.over:
                self._end(key)

    def begun(self, span: Span, timer: int, label: str, over: tuple[str, ...]) -> None:
        """A block begins, with a new span.

        Args:
            span: Its span.
            timer: id() of the timer.
            label: The label.
            over: The labels it continues over.
        """
        self._running[span.span_id] = _Block(span, timer, label, over)

    def resumed(self, timer: int, label: str, up: Span | None) -> Span | None:
        """The span that a block goes on with, or None when it begins one.

        Args:
            timer: id() of the timer.
            label: The label.
            up: What is current.
        """
        block = self._resting.pop((timer, label), None)
        if block is None:
            return None
        span = block.span
        self._not_pending(span)
        if span.epoch != self._recorder.epoch:
            return None  # ended meanwhile, or of the process we were forked from
        span.rested = 0
        span.up = up
        self._running[span.span_id] = block
        return span

    def rests(self, span: Span) -> bool:
        """Whether a block that is over leaves its span to the next one.

        Args:
            span: The block's span.
        """
        block = self._running.pop(span.span_id, None)
        if block is None or block.other:
            return False
        self._end((block.timer, block.label))  # of another thread
        span.rested = monotonic_ns()
        self._resting[block.timer, block.label] = block
        if span.up is not None:
            span.up.pending = [*(span.up.pending or ()), span]
        return True

    def forget(self, span: Span) -> None:
        """A block has ended in another way.

        Args:
            span: The block's span.
        """
        self._running.pop(span.span_id, None)

    def _end(self, key: tuple[int, str]) -> None:
        block = self._resting.pop(key, None)
        if block is None:
            return
        span = block.span
        if span.epoch == self._recorder.epoch:
            span.site.figures.spans += 1
            span.site.figures.nanoseconds += span.rested - span.start
            self._recorder.close(span, span.rested, self._key, STATUS_UNSET)
        self._not_pending(span)

    def _not_pending(self, span: Span) -> None:
        up = span.up
        if up is not None and up.pending is not None:
            up.pending = [other for other in up.pending if other is not span] or None

    def _exit(self) -> None:
        try:
            for key in list(self._resting):
                self._end(key)
        except Exception as error:
            if foreign(error):
                raise
            self._faults.take('exit', self._key, error)
