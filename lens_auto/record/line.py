# SPDX-License-Identifier: Apache-2.0
"""A finished span or a metric point as one flat JSON object on one line: what the exporter `console` prints.

Flat, so that `grep -h '"trace_id"' *.log | jq -r .trace_id` works on a server's log. Imports json with the first line:
in a traced process only where it prints for itself.
"""

from __future__ import annotations

from time import gmtime, strftime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_STATUS = ('UNSET', 'OK', 'ERROR')


def moment(ns: int) -> str:
    """A time of day in ISO 8601, UTC, to the microsecond.

    Args:
        ns: Wall-clock nanoseconds.
    """
    seconds, rest = divmod(ns, 1_000_000_000)
    return strftime('%Y-%m-%dT%H:%M:%S.', gmtime(seconds)) + f'{rest // 1000:06d}Z'


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
    import json

    return json.dumps(plain, separators=(', ', ': '), default=repr) + '\n'
