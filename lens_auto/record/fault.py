# SPDX-License-Identifier: Apache-2.0
"""The one fail-open boundary: what an unexpected error of ours comes to.

Every entry from user code into ours catches at its edge and calls `Faults.take`. The site is disabled in this process,
the fault counted and journalled once per place with its type and our own frames (no message: it may quote user data).
"""

from __future__ import annotations

import os

from lens_auto.record import rollcall
from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FRAMES = 6


class Faults:
    """Counts faults and reports each place once.

    Attributes:
        count: Faults so far in this process.
    """

    __slots__ = ('_report', '_seen', '_told', 'count')

    def __init__(self, report: Callable[[str, dict[str, Any]], None]):
        """See the class.

        Args:
            report: Journals one REPORT record; if it raises, the roll-call says so, once.
        """
        self._report = report
        self._seen: set[tuple[str, str]] = set()
        self._told = False
        self.count = 0

    def take(self, where: str, key: str, error: BaseException) -> None:
        """Count a fault and journal the first of its kind.

        Args:
            where: The part that failed: 'enter', 'leave', 'attribute', 'patch', 'finder', ...
            key: The rule's key, '' when no rule is concerned.
            error: What was raised.
        """
        self.count += 1
        place = (where, key)
        if place in self._seen:
            return
        self._seen.add(place)
        try:
            self._report(
                'fault',
                {
                    'key': key,
                    'where': where,
                    'type': type(error).__qualname__,
                    'frames': frames(error),
                    'count': self.count,
                },
            )
        except Exception as second:
            if foreign(second):
                raise
            self.count += 1
            self._without_journal(f'fault: {where}: {type(error).__qualname__}, {frames(second)}')

    def _without_journal(self, reason: str) -> None:
        if self._told:
            return
        self._told = True
        try:
            rollcall.note(os.environ['LENS_SPOOL'], 'armed', reason)
        except Exception as third:  # no journal and no roll-call: the count is all that is left
            if foreign(third):
                raise
            self.count += 1


def frames(error: BaseException) -> str:
    """The last frames of a traceback as `file:line function`, innermost last; code only, no values.

    Args:
        error: An exception with its traceback.
    """
    found: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append(f'{code.co_filename.rpartition("/")[2]}:{trace.tb_lineno} {code.co_name}')
        trace = trace.tb_next
    return ' < '.join(reversed(found[-FRAMES:]))
