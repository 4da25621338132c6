# SPDX-License-Identifier: Apache-2.0
"""A finished span or a metric point as one flat JSON object on one line: what the exporter `console` prints.

Flat, so that `grep -h '"trace_id"' *.log | jq -r .trace_id` works on a server's log.
"""

from __future__ import annotations

from time import gmtime, strftime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_INFINITY = float('inf')
_ESCAPES = {'"': '\\"', '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\b': '\\b', '\f': '\\f'}
_STATUS = ('UNSET', 'OK', 'ERROR')


def moment(ns: int) -> str:
    """A time of day in ISO 8601, UTC, to the microsecond.

    Args:
        ns: Wall-clock nanoseconds.
    """
    seconds, rest = divmod(ns, 1_000_000_000)
    return strftime('%Y-%m-%dT%H:%M:%S.', gmtime(seconds)) + f'{rest // 1000:06d}Z'


def span_line(
    span_id: bytes,
    trace_id: bytes,
    parent_id: bytes,
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
        parent_id: Its parent, b'' for none.
        name: Its name.
        start: Wall-clock nanoseconds.
        end: Wall-clock nanoseconds.
        status: 0 unset, 1 ok, 2 error.
        items: Its attributes.
        resource: Its process's resource attributes.
    """
    return _dump(
        {
            'trace_id': trace_id[:16].hex(),
            'span_id': span_id.hex(),
            'parent_id': parent_id.hex() if parent_id else None,
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
    return _json(plain) + '\n'


def _json(value: Any) -> str:
    """As `json.dumps`; a module of that name may be the program's own."""
    if value is None or value is True or value is False:
        return 'null' if value is None else 'true' if value else 'false'
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        if value != value:
            return 'NaN'
        return float.__repr__(value) if abs(value) != _INFINITY else 'Infinity' if value > 0 else '-Infinity'
    if isinstance(value, dict):
        items: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return '{' + ', '.join([f'{_quoted(str(name))}: {_json(item)}' for name, item in items.items()]) + '}'
    if isinstance(value, (list, tuple)):
        parts: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return '[' + ', '.join([_json(part) for part in parts]) + ']'
    return _quoted(repr(value))


def _quoted(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and '\\' not in text:
        return f'"{text}"'
    return f'"{"".join([_character(c) for c in text])}"'


def _character(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    if ' ' <= c <= '~':
        return c
    number = ord(c)
    if number < 0x10000:
        return f'\\u{number:04x}'
    number -= 0x10000
    return f'\\u{0xD800 | number >> 10:04x}\\u{0xDC00 | number & 0x3FF:04x}'
