# SPDX-License-Identifier: Apache-2.0
"""Printing for itself: a process whose standard output is not the launcher's writes its console lines there.

A server that logs to a file of its own keeps its spans beside its log lines. All other processes are printed by the
launcher, from their journals.
"""

from __future__ import annotations

import os
from time import monotonic_ns, time_ns

from lens_auto.record.foreign import foreign
from lens_auto.record.format import ENDED, POINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from lens_auto.record.reader import Record


def prints_here(environ: Mapping[str, str]) -> bool:
    """True when this process prints its own lines: its fd 1 is another file than the launcher's.

    Args:
        environ: The process's environment; LENS_CONSOLE holds device and inode of the launcher's fd 1.
    """
    launcher = environ.get('LENS_CONSOLE')
    if not launcher:
        return False
    try:
        here = os.fstat(1)
    except OSError:
        return False
    return f'{here.st_dev}:{here.st_ino}' != launcher


class Printer:
    """Prints finished spans and metric points to fd 1, one write a line."""

    __slots__ = ('_describe', '_offset', '_pid', '_resource')

    def __init__(self, describe: Callable[[], dict[str, Any]]):
        """See the class.

        Args:
            describe: Gives the resource attributes of this process; asked again after a fork.
        """
        self._describe = describe
        self._pid = 0
        self._resource: dict[str, Any] = {}
        self._offset = time_ns() - monotonic_ns()

    def __call__(self, record: Record) -> None:
        """Print one record; other kinds than ENDED and POINT are not printed.

        Args:
            record: As journalled.
        """
        from lens_auto.record import line

        if self._pid != os.getpid():
            self._resource, self._pid = self._describe(), os.getpid()
        if record[0] == ENDED:
            _, span_id, trace_id, parent_id, start, duration, name, _, status, attributes, _, _ = record
            begin = start + self._offset
            text = line.span_line(
                span_id, trace_id, parent_id, name, begin, begin + duration, status, attributes, self._resource
            )
        elif record[0] == POINT:
            _, at, name, instrument, unit, value, attributes, _, _, _ = record
            text = line.point_line(name, instrument, unit, value, at + self._offset, attributes, self._resource)
        else:
            return
        try:
            os.write(1, text.encode())
        except OSError as error:
            if foreign(error):
                raise
            return  # nobody reads it any more; the journal has it all the same
