# SPDX-License-Identifier: Apache-2.0
"""Exporter `console`: finished spans and metric points as flat JSON objects, one a line, one write a line.

Flat and one a line so that `grep -h '"trace_id"' *.log | jq -r .trace_id` works on a server's log; one write a line so
that lines of several processes never mix. The launcher prints for every process that does not print for itself.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

_STATUS = ('UNSET', 'OK', 'ERROR')


def moment(ns: int) -> str:
    """A time of day in ISO 8601, UTC, to the microsecond.

    Args:
        ns: Wall-clock nanoseconds.
    """
    seconds, rest = divmod(ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, timezone.utc).strftime('%Y-%m-%dT%H:%M:%S.') + f'{rest // 1000:06d}Z'


def span_line(
    span_id: int,
    trace_id: int,
    parent_id: int,
    name: str,
    start: int,
    end: int,
    status: int,
    items: Mapping[str, Any] | None,
    resource: Mapping[str, Any],
) -> str:
    """One finished span.

    Args:
        span_id: Its id.
        trace_id: Its trace.
        parent_id: Its parent, 0 for none.
        name: Its name.
        start: Wall-clock nanoseconds.
        end: Wall-clock nanoseconds.
        status: 0 unset, 1 ok, 2 error.
        items: Its attributes.
        resource: Its process's resource attributes.
    """
    return _dump(
        {
            'trace_id': f'{trace_id:032x}',
            'span_id': f'{span_id:016x}',
            'parent_id': f'{parent_id:016x}' if parent_id else None,
            'name': name,
            'start_time': moment(start),
            'end_time': moment(end),
            'status': _STATUS[status],
            'attributes': dict(items or {}),
            'resource': dict(resource),
        }
    )


def point_line(
    name: str,
    instrument: str,
    unit: str,
    value: float,
    at: int,
    items: Mapping[str, Any] | None,
    resource: Mapping[str, Any],
) -> str:
    """One metric point.

    Args:
        name: Metric name.
        instrument: 'gauge', 'counter' or 'histogram'.
        unit: Its unit.
        value: Value, increment or observation.
        at: Wall-clock nanoseconds.
        items: Its labels.
        resource: Its process's resource attributes.
    """
    return _dump(
        {
            'metric': name,
            'instrument': instrument,
            'unit': unit,
            'value': value,
            'time': moment(at),
            'attributes': dict(items or {}),
            'resource': dict(resource),
        }
    )


def _dump(plain: dict[str, Any]) -> str:
    return json.dumps(plain, separators=(', ', ': '), default=repr) + '\n'


class Console:
    """Prints lines to a descriptor; stops for good when nobody reads it any more.

    Attributes:
        lost: Lines that could not be printed.
    """

    def __init__(self, fd: int) -> None:
        """Print to a descriptor.

        Args:
            fd: The launcher's standard output.
        """
        self._fd = fd
        self._broken = False
        self.lost = 0

    def print(self, lines: list[str]) -> None:
        """Print lines, each with one write.

        Args:
            lines: Whole lines.
        """
        for line in lines:
            if self._broken or not self._print(line.encode()):
                self.lost += 1

    def _print(self, data: bytes) -> bool:
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                # Somebody made the descriptor non-blocking; it is shared, so it is not ours to change back.
                waiting = select.poll()
                waiting.register(self._fd, select.POLLOUT)
                if not waiting.poll(1000):
                    return False
            except OSError:
                self._broken = True
                return False
        return True
