# SPDX-License-Identifier: Apache-2.0
"""Records of the standard library's `logging`, with the span they were written in.

No handler is added: one on the root logger would make the program's own `logging.basicConfig` do nothing. Told is what
passes a logger's level and filters, whether or not a handler takes it.
"""

from __future__ import annotations

from time import monotonic_ns

from lens_auto.record.foreign import foreign
from lens_auto.record.format import DROPPED, LOG
from lens_auto.record.recorder import exception_name
from lens_auto.wrap.code import BEFORE
from lens_auto.wrap.seams import Seams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder

MODULE = 'logging'
SEAMS = {MODULE: (('Logger.callHandlers', BEFORE, 'written'),)}
TOO_MANY = 'log records beyond the rate'
RATE = 100  # records a second, of warnings and worse and of all others apart: a flood of one must not hide the other
BURST = 1000
_SECOND = 1_000_000_000
_WARNING = 30
_LONGEST_BODY = 4096
_LONGEST_TEXT = 256


def severity(level: int) -> int:
    """OpenTelemetry's severity number of a level of `logging`.

    The levels of `logging` are ten apart, the ranges of OpenTelemetry four numbers wide; between two levels a record
    counts as the lower one.

    Args:
        level: `LogRecord.levelno`.
    """
    return 1 if level < 10 else min(4 * (level // 10) + 1, 21)


class Logs:
    """`Logger.callHandlers(self, record)`: the last step before a record is handed to handlers.

    Attributes:
        on: Logs are on.
        bodies: Their texts are recorded as well.
    """

    __slots__ = ('_budgets', '_recorder', '_told', 'bodies', 'left_out', 'on')

    def __init__(self, recorder: Recorder):
        """See the class.

        Args:
            recorder: The process's recorder.
        """
        self._recorder = recorder
        self.on = self.bodies = False
        self.left_out = self._told = 0
        # [tokens left, when they were counted], of warnings and worse and of all others
        now = monotonic_ns()
        self._budgets = ([BURST, now], [BURST, now])

    def before(self, args: tuple[Any, ...]) -> None:
        """A record is on its way to the handlers.

        Args:
            args: Logger and record.
        """
        record = args[1]
        now = monotonic_ns()
        if not self.on or not self._may(record.levelno, now):
            return
        attributes: dict[str, Any] = {
            'log.logger': str(record.name)[:_LONGEST_TEXT],
            'code.file.path': str(record.pathname)[-_LONGEST_TEXT:],
            'code.line.number': int(record.lineno),
            'code.function.name': str(record.funcName)[:_LONGEST_TEXT],
        }
        raised = record.exc_info
        if raised and raised[1] is not None:
            attributes['exception.type'] = exception_name(raised[1].__class__)
        trace_id, span_id = self._recorder.here()
        body = _text(record) if self.bodies else ''
        self._recorder.journal.put((LOG, now, severity(record.levelno), body, attributes, trace_id, span_id))

    def _may(self, level: int, now: int) -> bool:
        budget = self._budgets[level >= _WARNING]
        since = now - budget[1]
        if since > _SECOND // RATE:
            budget[0] = min(BURST, budget[0] + since * RATE // _SECOND)
            budget[1] = now
        if budget[0] <= 0:
            self.left_out += 1
            return False
        budget[0] -= 1
        return True

    def tell(self) -> None:
        """Say how many records were left out, if there are more than at the last time."""
        if self.left_out != self._told:
            self._told = self.left_out
            self._recorder.report(DROPPED, {'records': self.left_out, 'reason': TOO_MANY})

    def forget(self) -> None:
        """Begin to count anew: a forked child."""
        self.left_out = self._told = 0


def _text(record: Any) -> str:
    try:
        return str(record.getMessage())[:_LONGEST_BODY]
    except Exception as error:  # arguments that do not fit: the program's handlers will say so
        if foreign(error):
            raise
        return str(record.msg)[:_LONGEST_BODY]


class LogSeams(Seams):
    """`logging`, and what is told of its records.

    Attributes:
        logs: Takes the records.
    """

    def __init__(self, recorder: Recorder, faults: Faults):
        """See the class.

        Args:
            recorder: The process's recorder.
            faults: Its fault count.
        """
        self.logs = Logs(recorder)
        super().__init__(MODULE, SEAMS, {'written': self.logs}, recorder, faults)

    def settle(self, on: bool, bodies: bool) -> None:
        """Record logs, or leave `logging` as it is.

        Args:
            on: This process records logs.
            bodies: With their texts.
        """
        self.logs.on, self.logs.bodies = on, bodies
        self.select(on)
