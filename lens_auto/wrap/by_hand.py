# SPDX-License-Identifier: Apache-2.0
"""What the public API (`lens_auto.span` and its kin) calls in a process that records."""

from __future__ import annotations

from sys import exc_info
from time import monotonic_ns

from lens_auto.record.foreign import foreign
from lens_auto.record.format import STATUS_UNSET
from lens_auto.record.span import Span, current
from lens_auto.wrap.expression import Unreadable, measure, scalar
from lens_auto.wrap.raised import close_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder

EVENTS = 128  # of one span, the default limit of OpenTelemetry's SDKs


class ByHand:
    """Spans, events and points that the program itself asks for; each call is a fail-open boundary.

    Attributes:
        key: The rule key of its records: of no rule.
        traces: Spans are on.
        metrics: Metric points are on.
    """

    __slots__ = ('_faults', '_recorder', 'key', 'metrics', 'traces')

    def __init__(self, recorder: Recorder, faults: Faults):
        """See the class.

        Args:
            recorder: The process's recorder.
            faults: Its fault count.
        """
        self.key = ''
        self.traces = self.metrics = False
        self._recorder = recorder
        self._faults = faults

    def open(self, name: str, attributes: dict[str, Any]) -> Span | None:
        """Start a span and make it current.

        Args:
            name: Its name.
            attributes: Its attributes, as given.
        """
        if not self.traces:
            return None
        try:
            return self._recorder.open(self, str(name)[:256], self.key, _plain(attributes), False, True, True)
        except Exception as error:
            if foreign(error):
                self._cut(self._opening(error))
                raise
            self._faults.take('api', self.key, error)
            return None
        except BaseException as error:
            self._cut(self._opening(error))
            raise

    def _opening(self, error: BaseException) -> Span | None:
        """The span that was being opened as an exception of the program came."""
        here, trace = current.get(), error.__traceback__
        inside = trace is not None and trace.tb_next is not None
        return here if inside and here is not None and here.site is self and self._recorder.newest(here) else None

    def close(self, span: Span, error: BaseException | None) -> None:
        """End a span.

        Args:
            span: From `open`.
            error: What left its block, or None.
        """
        try:
            end = monotonic_ns()
            self._recorder.detach(span)
            if error is None:
                self._recorder.close(span, end, self.key, STATUS_UNSET)
            else:
                close_with(self._recorder, span, error, end, self.key)
        except Exception as problem:
            if foreign(problem):
                self._cut(span)
                raise
            self._faults.take('api', self.key, problem)
        except BaseException:
            self._cut(span)
            raise

    def _cut(self, span: Span | None) -> None:
        if span is None or span.epoch < 0:
            return
        self._recorder.detach(span)
        error = exc_info()[1]
        if error is not None:
            close_with(self._recorder, span, error, monotonic_ns(), self.key)

    def event(self, name: str, attributes: dict[str, Any]) -> None:
        """Add an event to the current span.

        Args:
            name: Its name.
            attributes: Its attributes, as given.
        """
        try:
            span = current.get()
            if span is not None and len(span.events or ()) < EVENTS:
                span.events = [*(span.events or ()), (monotonic_ns(), str(name)[:256], _plain(attributes))]
        except Exception as error:
            if foreign(error):
                raise
            self._faults.take('api', self.key, error)

    def attribute(self, name: str, value: Any, span: Span | None = None) -> None:
        """Set an attribute.

        Args:
            name: Its name.
            value: Its value; what no attribute can hold is left out.
            span: The span; the current one by default.
        """
        try:
            span = span or current.get()
            if span is not None:
                # A new dict: the old one may be shared by all spans of a rule.
                span.attributes = {**(span.attributes or {}), **(_plain({name: value}) or {})}
        except Exception as error:
            if foreign(error):
                raise
            self._faults.take('api', self.key, error)

    def point(self, name: str, value: Any, instrument: str, unit: str, attributes: dict[str, Any]) -> None:
        """Record a metric point.

        Args:
            name: Its name.
            value: A number; what is none is left out.
            instrument: 'gauge', 'counter' or 'histogram'.
            unit: Its unit.
            attributes: Its labels.
        """
        if not self.metrics:
            return
        try:
            self._recorder.point(self, str(name)[:256], instrument, str(unit), measure(value), _plain(attributes))
        except Unreadable as problem:
            if foreign(problem):
                raise
            self._faults.take('value', self.key, problem)
        except Exception as error:
            if foreign(error):
                raise
            self._faults.take('api', self.key, error)


def _plain(attributes: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        try:
            found[str(name)[:256]] = scalar(value)
        except Unreadable:
            continue
    return found or None
