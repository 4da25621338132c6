# SPDX-License-Identifier: Apache-2.0
"""Context manager classes: a span from `__enter__` to `__exit__`, current in the with block.

(A function made by `@contextmanager` needs none of this: its generator is patched, see `code.HELD`.)
"""

from __future__ import annotations

from sys import _getframe  # pyright: ignore[reportPrivateUsage]

from lens_auto.record.span import Span, current
from lens_auto.wrap.figures import Figures
from lens_auto.wrap.frame import caller
from lens_auto.wrap.readers import Readers
from lens_auto.wrap.site import CALLER, Site
from lens_auto.wrap.timer import TimerSite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder

OPEN = 4096  # with blocks open at a time, over all instances


class _Blocks:
    """Open with blocks by instance; one instance may be entered more than once."""

    __slots__ = ('_spans',)

    def __init__(self) -> None:
        self._spans: dict[int, list[Span | None]] = {}

    def push(self, owner: Any, span: Span | None) -> None:
        if len(self._spans) >= OPEN:
            self._spans.pop(next(iter(self._spans)))
        self._spans.setdefault(id(owner), []).append(span)

    def pop(self, owner: Any) -> Span | None:
        spans = self._spans.get(id(owner))
        if not spans:
            return None
        span = spans.pop()
        if not spans:
            del self._spans[id(owner)]
        return span


class ContextSite(Site):
    """The enter and exit of a class that a `function` rule names."""

    __slots__ = ('_blocks',)

    def __init__(
        self,
        rule: dict[str, Any],
        readers: Readers,
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
        passing: frozenset[tuple[str, str]],
    ):
        """See the class.

        Args:
            rule: See `Site`.
            readers: See `Site`.
            figures: See `Site`.
            recorder: See `Site`.
            faults: See `Site`.
            passing: See `Site`.
        """
        super().__init__(rule, readers, figures, recorder, faults, passing)
        self._blocks = _Blocks()

    def started(self, args: tuple[Any, ...], result: Any) -> None:
        """`__enter__` returned.

        Args:
            args: The instance.
            result: What the with statement binds.
        """
        self.figures.calls += 1
        span = None
        frame = caller(_getframe(CALLER), self._passing)
        readers = self._readers
        assert readers is not None
        if self.figures.left == 0:
            self.figures.over += 1
        elif self.allows(frame):
            span = self._start(readers, args, frame, None, True, current.get(), self._root, self._announce)
        else:
            self.figures.filtered += 1
        self._blocks.push(args[0], span)

    def stopped(self, args: tuple[Any, ...], result: Any) -> None:
        """`__exit__` returned.

        Args:
            args: The instance and the exception that leaves the block, if any.
            result: True when it was swallowed.
        """
        end_block(self, self._blocks.pop(args[0]), args)


class TimerContextSite(TimerSite):
    """The enter and exit of a timer class whose label is an attribute of the instance."""

    __slots__ = ('_blocks',)

    def __init__(self, *args: Any, **kwargs: Any):
        """See the class.

        Args:
            *args: See `TimerSite`.
            **kwargs: See `TimerSite`.
        """
        super().__init__(*args, **kwargs)
        self._blocks = _Blocks()

    def started(self, args: tuple[Any, ...], result: Any) -> None:
        """`__enter__` returned.

        Args:
            args: The instance.
            result: What the with statement binds.
        """
        admitted = self._admit(args, CALLER)
        span = None
        if admitted is not None:
            label, entry, readers, frame = admitted
            span = self._begin(label, entry, readers, args, frame, True, current.get())
        self._blocks.push(args[0], span)

    def stopped(self, args: tuple[Any, ...], result: Any) -> None:
        """`__exit__` returned.

        Args:
            args: The instance and the exception that leaves the block, if any.
            result: True when it was swallowed.
        """
        end_block(self, self._blocks.pop(args[0]), args)


def end_block(site: Site, span: Span | None, args: tuple[Any, ...]) -> None:
    """End the span of a with block.

    Args:
        site: Its site.
        span: Its span, or None when it was not recorded.
        args: What `__exit__` was called with.
    """
    if span is None:
        return
    given: list[Any] = []
    for value in args[1:]:  # `*error` is one tuple
        given += value if isinstance(value, tuple) else (value,)
    error = next((value for value in given if isinstance(value, BaseException)), None)
    if error is None:
        site.leave(span, None)
    else:
        site.fail(span, error)
