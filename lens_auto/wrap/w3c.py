# SPDX-License-Identifier: Apache-2.0
"""Trace context in the headers of a request: W3C's `traceparent`, and in `tracestate` what only a run of ours knows.

A span below a Ray task does not know its trace yet (`record.format`): the id of the task's first span goes along, under
a key of ours, and the collector puts the trace in its place on both sides.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from lens_auto.record.span import Span

PARENT, STATE = 'traceparent', 'tracestate'
KEY = 'lens'
_TRACE, _SPAN = 16, 8  # bytes
_PARTS = (2, 32, 16, 2)  # hex digits: version, trace, span, flags


def headers(span: Span) -> dict[str, str]:
    """What a request carries that is made under a span.

    Args:
        span: The span.
    """
    first = span.trace_id[_TRACE:]
    made = {PARENT: parent(span.trace_id[:_TRACE], span.span_id)}
    if first:
        made[STATE] = f'{KEY}={first.hex()}'
    return made


def parent(trace: bytes, span: bytes) -> str:
    """A `traceparent` header.

    Args:
        trace: 16 bytes.
        span: 8 bytes.
    """
    return f'00-{trace.hex()}-{span.hex()}-01'


def context(caller: str | bytes, state: str | bytes = '') -> tuple[bytes, bytes] | None:
    """Trace (with a task's first span, where that is told) and span of the caller; None where the header is none.

    Args:
        caller: The `traceparent` header.
        state: The `tracestate` header.
    """
    parts = _text(caller).strip().split('-')
    if len(parts) < len(_PARTS) or any(len(part) != size for part, size in zip(parts, _PARTS, strict=False)):
        return None
    try:
        trace, span = bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
    except ValueError:
        return None
    if not any(trace) or not any(span) or parts[0] == 'ff':
        return None
    return trace + _first(_text(state)), span


def asked_by(listed: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, bytes] | None:
    """Of a request's headers, as ASGI has them, what `context` says.

    Args:
        listed: Names, in lower case, and values.
    """
    caller = state = b''
    for name, value in listed:
        if name == b'traceparent':
            caller = value
        elif name == b'tracestate':
            state = value
    return context(caller, state) if caller else None


def _first(state: str) -> bytes:
    for item in state.split(','):
        key, _, value = item.strip().partition('=')
        if key == KEY:
            try:
                found = bytes.fromhex(value)
            except ValueError:
                return b''
            return found if len(found) == _SPAN else b''
    return b''


def _text(header: str | bytes) -> str:
    return header.decode('latin-1') if isinstance(header, bytes) else header
