# SPDX-License-Identifier: Apache-2.0
"""Labelled timers: `with timer.time("generation")` as current spans, `timer.start(...)`/`timer.stop(...)` as others.

The `with` form usually calls start and stop of the same timer; those calls are recognised by the frame they come from
and stay silent. A pair's span is not current (pairs may overlap) unless its label asks; one that is still open when the
span around it ends, ends with it.
"""

from __future__ import annotations

from _thread import get_ident
from sys import _getframe  # pyright: ignore[reportPrivateUsage]

from lens_auto.record.format import MISSING
from lens_auto.record.span import Span, current
from lens_auto.wrap.continued import Continued
from lens_auto.wrap.figures import Figures
from lens_auto.wrap.frame import called_from, caller
from lens_auto.wrap.glob import matches
from lens_auto.wrap.readers import Readers
from lens_auto.wrap.reading import reading
from lens_auto.wrap.site import CALLER, DEEPEST, Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.wrap.code import Signature

LABELS = 4096  # labels remembered per timer rule; a label made from a request id must not grow the table
OPEN = 4096  # intervals open at a time


class Labels:
    """Which labels of a timer rule are recorded, and as what.

    Attributes:
        seen: Patterns that a label has met, whether it was on or not.
        codes: Original code of the rule's functions, by part. A start or stop called from a `with` form is silent, and
            so is one called, through super(), from an override of its own that the rule names too.
        continued: The blocks that go on in the next one; None when no label of the rule has such blocks.
    """

    __slots__ = ('_known', '_on', '_patterns', 'codes', 'continued', 'seen')

    def __init__(self, rule: dict[str, Any], seen: set[str]):
        """See the class.

        Args:
            rule: The compiled timer rule; no label is on before `select`.
            seen: See the class.
        """
        self._patterns: list[tuple[str, dict[str, Any]]] = list(rule['labels'].items())
        self._on: list[dict[str, Any]] = []
        self._known: dict[str, dict[str, Any] | None] = {}
        self.seen = seen
        self.codes: dict[str, list[CodeType]] = {'with': [], 'start': [], 'stop': []}
        self.continued: Continued | None = None

    def select(self, selected: Callable[[dict[str, Any]], bool]) -> None:
        """Decide which labels are on.

        Args:
            selected: Says of a label's entry whether it is on.
        """
        self._on = [entry for _, entry in self._patterns if not entry['drop'] and selected(entry)]
        self._known = {}

    def any(self) -> bool:
        """True when at least one label is on: otherwise the timer is not patched at all."""
        return bool(self._on)

    def entry(self, label: str) -> dict[str, Any] | None:
        """What the rule says of a label, or None when it is not recorded.

        Args:
            label: As the program gave it.
        """
        try:
            return self._known[label]
        except KeyError:
            pass
        pattern, found = next(((p, e) for p, e in self._patterns if p == label), ('', None))
        if found is None:
            globs = ((p, e) for p, e in self._patterns if ('*' in p or '?' in p) and matches(p, label))
            pattern, found = next(globs, ('', None))
        if found is not None:
            self.seen.add(pattern)
        if found is not None and not any(found is entry for entry in self._on):
            found = None
        if len(self._known) < LABELS:
            self._known[label] = found
        return found


class TimerSite(Site):
    """One function of a timer: its `with` form, its start or its stop."""

    __slots__ = ('_by_label', '_from_self', '_index', '_labels', '_pairs', '_signature', '_variables')

    def __init__(
        self,
        rule: dict[str, Any],
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
        passing: frozenset[tuple[str, str]],
        owned_by: type | None,
        labels: Labels,
        pairs: dict[tuple[int, str], list[Span]],
        signature: Signature,
        variables: dict[str, Any],
        from_self: bool = False,
    ):
        """See the class.

        Args:
            rule: See `Site`.
            figures: See `Site`.
            recorder: See `Site`.
            faults: See `Site`.
            passing: See `Site`.
            owned_by: See `Site`.
            labels: The rule's labels.
            pairs: Spans opened by start and not yet ended, by timer and label; shared by the sites of the rule.
            signature: The function's parameters.
            variables: The rule file's `vars`.
            from_self: The label is the attribute `label_arg` of the timer (class-based context managers).

        Raises:
            ValueError: The function has no parameter that could be the label.
        """
        super().__init__(rule, None, figures, recorder, faults, passing, owned_by)
        self._labels = labels
        self._pairs = pairs
        self._signature = signature
        self._variables = variables
        self._by_label: dict[str, tuple[Readers, dict[str, Any]]] = {}
        named: str | None = rule['label_arg']
        self._from_self = named if from_self else None
        self._index = 0 if from_self else _label_index(signature, named)
        if labels.continued is None and any(e['continues_over'] is not None for e in rule['labels'].values()):
            labels.continued = Continued(recorder, faults, self.key)

    def _label(self, args: tuple[Any, ...]) -> str | None:
        label = args[self._index] if self._from_self is None else self._own(args[0], self._from_self)
        return label if isinstance(label, str) else None

    def _timer(self, args: tuple[Any, ...]) -> int:
        """Which timer it is; 0 for one that is a plain function of its label."""
        return 0 if self._index == 0 and self._from_self is None else id(args[0])

    def _own(self, timer: Any, name: str) -> Any:
        ident = get_ident()
        nested = ident in reading
        try:
            reading.add(ident)
            return getattr(timer, name, None)
        finally:
            if not nested:
                reading.discard(ident)

    def _plan(self, label: str, entry: dict[str, Any]) -> Readers:
        known = self._by_label.get(label)
        if known is None or known[1] is not entry:
            readers = Readers(entry, entry['group'], entry['bucket'], self._signature, self._variables)
            for reason in readers.absent:
                fields = {'key': self.key, 'target': f'label {label}'[:256], 'reason': reason[:256]}
                self._recorder.report(MISSING, fields)
            known = (readers, entry)
            if len(self._by_label) < LABELS:
                self._by_label[label] = known
        return known[0]

    def _admit(self, args: tuple[Any, ...], depth: int) -> tuple[str, dict[str, Any], Readers, FrameType | None] | None:
        label = self._label(args)
        entry = self._labels.entry(label) if label is not None else None
        if label is not None and self._labels.continued is not None:
            self._labels.continued.timed(self._timer(args), label)
        self.figures.calls += 1
        if label is None or entry is None:
            self.figures.filtered += 1
            return None
        if self.figures.left == 0:
            self.figures.over += 1
            return None
        readers = self._plan(label, entry)
        frame = None
        if self._only_from is not None or readers.frame:
            frame = caller(_getframe(depth + 1), self._passing)
            if not self.allows(frame):
                self.figures.filtered += 1
                return None
        if self._owned_by is not None and not self._owns(args):
            return None
        return label, entry, readers, frame

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """The `with` form begins. See `Site.open`."""
        admitted = self._admit(args, CALLER)
        if admitted is None:
            return None
        label, entry, readers, frame = admitted
        up = current.get()
        if up is not None and up.nest >= DEEPEST:
            self.figures.over += 1
            self._shut_under(up)
            return None
        continued, over = self._labels.continued, entry['continues_over']
        if continued is None or over is None:
            return self._begin(label, entry, readers, args, frame, attach, up)
        span = continued.resumed(self._timer(args), label, up)
        if span is not None:
            if attach:
                current.set(span)
            return span
        span = self._begin(label, entry, readers, args, frame, attach, up)
        if span is not None:
            continued.begun(span, self._timer(args), label, over)
        return span

    def leave(self, span: Span, result: Any) -> None:
        """The block is over. See `Site.leave`."""
        continued = self._labels.continued
        if continued is not None and continued.rests(span):
            self._recorder.detach(span)
        else:
            super().leave(span, result)

    def fail(self, span: Span, error: BaseException) -> None:
        """The block raised. See `Site.fail`."""
        if self._labels.continued is not None:
            self._labels.continued.forget(span)
        super().fail(span, error)

    def cut(self, span: Span) -> None:
        """See `Site.cut`."""
        if self._labels.continued is not None:
            self._labels.continued.forget(span)
        super().cut(span)

    def _begin(
        self,
        label: str,
        entry: dict[str, Any],
        readers: Readers,
        args: tuple[Any, ...],
        frame: FrameType | None,
        attach: bool,
        up: Span | None,
    ) -> Span | None:
        return self._start(readers, args, frame, label, attach, up, entry['root'], entry['announce'])

    def started(self, args: tuple[Any, ...], result: Any) -> None:
        """`start(label)` returned: open the pair's span, unless the `with` form made the call.

        Args:
            args: The call's arguments.
            result: What it returned.
        """
        if self._silent(_getframe(2), 'start'):
            return
        admitted = self._admit(args, CALLER)
        if admitted is None:
            return
        label, entry, readers, frame = admitted
        attach = bool(entry['current'])
        # Announced last: an interrupt in between must not leave an opened span that nothing will end.
        span = self._start(readers, args, frame, label, attach, current.get(), entry['root'], False)
        if span is None:
            return
        key = (self._timer(args), label)
        if len(self._pairs) >= OPEN:
            self._pairs.pop(next(iter(self._pairs)))
        self._pairs.setdefault(key, []).append(span)
        if span.up is not None and not attach:
            # If its stop never comes, it ends with the span around it.
            span.up.pending = [*(span.up.pending or ()), span]
        if entry['announce']:
            self._recorder.announce(span, self.key)

    def stopped(self, args: tuple[Any, ...], result: Any) -> None:
        """`stop(label)` returned: end the span that start opened.

        Args:
            args: The call's arguments.
            result: What it returned.
        """
        label = self._label(args)
        if label is None or self._labels.entry(label) is None or self._silent(_getframe(2), 'stop'):
            return
        key = (self._timer(args), label)
        spans = self._pairs.get(key)
        if not spans:
            return
        span = spans.pop()
        if not spans:
            del self._pairs[key]
        if span.epoch >= 0:
            self.leave(span, result)
        # Only now: until its end is stored, the span around it answers for it.
        if span.up is not None and span.up.pending is not None:
            span.up.pending = [other for other in span.up.pending if other is not span] or None

    def _silent(self, frame: FrameType | None, part: str) -> bool:
        """True when a start or stop was called by the timer's `with` form, or by an override that reports itself."""
        codes = self._labels.codes
        return called_from(frame, codes['with'], self._passing) or called_from(frame, codes[part], self._passing)


def _label_index(signature: Signature, named: str | None) -> int:
    if named is not None:
        return signature.names.index(named)
    for index, name in enumerate(signature.names):
        if name not in ('self', 'cls', 'timer'):
            return index
    raise ValueError('no parameter for the label')
