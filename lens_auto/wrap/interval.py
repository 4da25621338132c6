# SPDX-License-Identifier: Apache-2.0
"""Intervals between two calls: start and stop, or laps (each call ends the segment the one before began).

Their spans may overlap, so they are not current unless the rule asks.
"""

from __future__ import annotations

from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from time import monotonic_ns

from lens_auto.record.format import STATUS_UNSET
from lens_auto.record.span import Span, current
from lens_auto.wrap.expression import Scope
from lens_auto.wrap.figures import Figures
from lens_auto.wrap.frame import called_from, caller
from lens_auto.wrap.readers import Readers
from lens_auto.wrap.site import CALLER, Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.wrap.code import Signature

OPEN = 4096  # intervals open at a time


class IntervalSite(Site):
    """One function of an interval rule: start, stop or lap; keyed by the object it is a method of and its label."""

    __slots__ = ('_codes', '_current', '_label_index', '_open', '_signature')

    def __init__(
        self,
        rule: dict[str, Any],
        readers: Readers | None,
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
        passing: frozenset[tuple[str, str]],
        owned_by: type | None,
        opened: dict[tuple[int, Any], Any],
        signature: Signature,
        codes: list[CodeType],
    ):
        """See the class.

        Args:
            rule: See `Site`; a stop has no readers.
            readers: See `Site`; a stop has no readers.
            figures: See `Site`; a stop has no readers.
            recorder: See `Site`; a stop has no readers.
            faults: See `Site`; a stop has no readers.
            passing: See `Site`; a stop has no readers.
            owned_by: See `Site`; a stop has no readers.
            opened: What start or the last lap left, by object and label; shared by the sites of the rule.
            signature: The function's parameters.
            codes: Original code of the rule's functions of this part; one that calls another by super() reports itself.

        Raises:
            ValueError: `label_arg` names no parameter of the function.
        """
        super().__init__(rule, readers, figures, recorder, faults, passing, owned_by)
        self._open = opened
        self._signature = signature
        self._codes = codes
        self._current: bool = rule['current']
        named: str | None = rule['label_arg']
        self._label_index = signature.names.index(named) if named in signature.names else None
        if named is not None and self._label_index is None:
            raise ValueError(f'no parameter named {named}')

    def _key(self, args: tuple[Any, ...], by_label: bool = True) -> tuple[int, Any]:
        owner = id(args[0]) if self._signature.names[:1] in (('self',), ('cls',)) else 0
        label = None if self._label_index is None or not by_label else args[self._label_index]
        return owner, label if isinstance(label, (str, int)) else None

    def started(self, args: tuple[Any, ...], result: Any) -> None:
        """Start returned: open the span.

        Args:
            args: The call's arguments.
            result: What it returned.
        """
        if called_from(_getframe(2), self._codes, self._passing):
            return
        frame = caller(_getframe(CALLER), self._passing)
        if self._owned_by is not None and not self._owns(args):
            return
        self.figures.calls += 1
        if not self.allows(frame):
            self.figures.filtered += 1
            return
        if self.figures.left == 0:
            self.figures.over += 1
            return
        key = self._key(args)
        readers = self._readers
        assert readers is not None
        up = current.get()
        # Announced last: an interrupt in between must not leave an opened span that nothing will end.
        span = self._start(readers, args, frame, key[1], self._current, up, self._root, False)
        if span is None:
            return
        if len(self._open) >= OPEN:
            self._open.pop(next(iter(self._open)))
        self._open[key] = span
        if up is not None and not self._current:
            up.pending = [*(up.pending or ()), span]
        if self._announce:
            self._recorder.announce(span, self.key)

    def stopped(self, args: tuple[Any, ...], result: Any) -> None:
        """Stop returned: end the span that start opened.

        Args:
            args: The call's arguments.
            result: What it returned.
        """
        span = self._open.pop(self._key(args), None)
        if not isinstance(span, Span) or span.epoch < 0:
            return
        span.site.leave(span, result)
        # Only now: until its end is stored, the span around it answers for it.
        if span.up is not None and span.up.pending is not None:
            span.up.pending = [other for other in span.up.pending if other is not span] or None

    def told(self, args: tuple[Any, ...]) -> None:
        """Stop is called, where the span ends with that: end the span that start opened.

        Args:
            args: The call's arguments.
        """
        self.stopped(args, None)

    def lapped(self, args: tuple[Any, ...], result: Any) -> None:
        """Lap returned: a span from the previous lap (or start) of the same object to now.

        Args:
            args: The call's arguments.
            result: What it returned.
        """
        if called_from(_getframe(2), self._codes, self._passing):
            return
        now = monotonic_ns()
        frame = caller(_getframe(CALLER), self._passing)
        if self._owned_by is not None and not self._owns(args):
            return
        figures = self.figures
        figures.calls += 1
        if not self.allows(frame):
            figures.filtered += 1
            return
        key = self._key(args, by_label=False)
        last = self._open.get(key)
        if len(self._open) >= OPEN and last is None:
            return
        self._open[key] = now
        if not isinstance(last, int):
            return
        if figures.left == 0:
            figures.over += 1
            return
        label = self._key(args)[1]
        readers = self._readers
        assert readers is not None
        scope = Scope(args, frame, label)
        scope.result = result
        attributes = dict(readers.fixed or {})
        self.read(readers.early, scope, attributes)
        self.read(readers.late, scope, attributes)
        name = readers.name or self._name(readers, scope)
        span = self._recorder.open(self, name, self.key, attributes, self._root, False, False)
        span.start = last
        if figures.left > 0:
            figures.left -= 1
        figures.spans += 1
        figures.nanoseconds += now - last
        self._recorder.close(span, now, self.key, STATUS_UNSET)
