# SPDX-License-Identifier: Apache-2.0
"""What a program with no meter provider of its own measures: instruments of the API that lead nowhere."""

from __future__ import annotations

from lens_auto.bridge.values import plain
from lens_auto.wrap.expression import Unreadable, measure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.recorder import Recorder

_MOST_SUMS = 2_000


class Measured:
    """`add`, `record` or `set` of an instrument: told of each call.

    A counter that goes both ways is a gauge of its sum: the journal's counters only rise. Observable instruments have
    callbacks, which nobody calls here.

    Attributes:
        key: The rule key of its records: of no rule.
        on: Metric points are on.
    """

    __slots__ = ('_instrument', '_recorder', '_sums', '_summed', 'key', 'on')

    def __init__(self, recorder: Recorder, instrument: str, summed: bool = False):
        """See the class.

        Args:
            recorder: The process's recorder.
            instrument: 'counter', 'histogram' or 'gauge'.
            summed: The values are steps of a sum, and that is what is recorded.
        """
        self._recorder = recorder
        self._instrument = instrument
        self._summed = summed
        self._sums: dict[Any, int | float] = {}
        self.key = ''
        self.on = False

    def before(self, args: tuple[Any, ...]) -> None:
        """A value is given to an instrument.

        Args:
            args: The instrument, the value, its attributes, and the rest.
        """
        instrument, amount, attributes = args[:3]
        if not self.on or instrument._real_instrument is not None:
            return
        try:
            value = measure(amount)
        except Unreadable:
            return
        labels = plain(attributes)
        name = str(instrument._name)[:256]
        if self._summed:
            place = (name, tuple(sorted((labels or {}).items())))
            if place not in self._sums and len(self._sums) >= _MOST_SUMS:
                return
            value = self._sums[place] = self._sums.get(place, 0) + value
        elif self._instrument == 'counter' and value < 0:
            return
        self._recorder.point(self, name, self._instrument, str(instrument._unit or ''), value, labels)
