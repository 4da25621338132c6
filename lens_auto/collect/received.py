# SPDX-License-Identifier: Apache-2.0
"""Spans that a framework's own exporter sends: OTLP's protobuf, read by hand.

The launcher depends on neither protobuf nor OpenTelemetry, and what is wanted of a request is a few fields of one
message. Field numbers are those of opentelemetry/proto/collector/trace/v1/trace_service.proto and the files it imports.
What is no attribute of ours (arrays, maps, bytes) is left out.
"""

from __future__ import annotations

from struct import unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Field = tuple[int, Any]
    Event = tuple[int, str, dict[str, Any]]
    Link = tuple[bytes, bytes, dict[str, Any]]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 70  # bits
_SPAN_ID, _TRACE_ID = 8, 16


class Damaged(ValueError):
    """These bytes are no such message."""


class Received:
    """One span.

    Attributes:
        resource: Attributes of what sent it.
        trace_id: 16 bytes.
        span_id: 8 bytes.
        parent_id: 8 bytes, b'' for a root.
        state: Its `tracestate`.
        name: Its name.
        start: Wall-clock nanoseconds.
        end: Wall-clock nanoseconds.
        attributes: Its attributes.
        events: (wall-clock nanoseconds, name, attributes).
        links: (trace id, span id, attributes).
        status: 0 unset, 1 ok, 2 error.
    """

    __slots__ = (
        'attributes',
        'end',
        'events',
        'links',
        'name',
        'parent_id',
        'resource',
        'span_id',
        'start',
        'state',
        'status',
        'trace_id',
    )

    def __init__(self, resource: dict[str, Any]) -> None:
        """A span of which nothing is known yet.

        Args:
            resource: See the class.
        """
        self.resource = resource
        self.trace_id = self.span_id = self.parent_id = b''
        self.state = self.name = ''
        self.start = self.end = self.status = 0
        self.attributes: dict[str, Any] = {}
        self.events: list[Event] = []
        self.links: list[Link] = []


def spans(data: bytes) -> list[Received]:
    """The spans of an ExportTraceServiceRequest, those without proper ids left out.

    Args:
        data: Its bytes.

    Raises:
        Damaged: It is none.
    """
    try:
        found = [span for number, group in _fields(data) if number == 1 for span in _of_resource(group)]
    except (IndexError, ValueError, TypeError, AttributeError) as error:
        raise Damaged(type(error).__name__) from None
    return [span for span in found if len(span.span_id) == _SPAN_ID and len(span.trace_id) == _TRACE_ID]


def _of_resource(data: bytes) -> Iterator[Received]:
    fields = list(_fields(data))
    resource: dict[str, Any] = {}
    for number, part in fields:
        if number == 1:
            resource = _attributes(part, 1)
    for number, part in fields:
        if number == 2:
            for inner, span in _fields(part):
                if inner == 2:
                    yield _span(span, resource)


def _span(data: bytes, resource: dict[str, Any]) -> Received:
    span = Received(resource)
    for number, part in _fields(data):
        if number == 1:
            span.trace_id = part
        elif number == 2:
            span.span_id = part
        elif number == 3:
            span.state = _text(part)
        elif number == 4:
            span.parent_id = part
        elif number == 5:
            span.name = _text(part)
        elif number == 7:
            span.start = part
        elif number == 8:
            span.end = part
        elif number == 9:
            _attribute(part, span.attributes)
        elif number == 11:
            span.events.append(_event(part))
        elif number == 13:
            span.links.append(_link(part))
        elif number == 15:
            span.status = next((code for inner, code in _fields(part) if inner == 3), 0)
    return span


def _event(data: bytes) -> Event:
    at, name = 0, ''
    for number, part in _fields(data):
        if number == 1:
            at = part
        elif number == 2:
            name = _text(part)
    return at, name, _attributes(data, 3)


def _link(data: bytes) -> Link:
    ids = {number: part for number, part in _fields(data) if number in (1, 2)}
    return ids.get(1, b''), ids.get(2, b''), _attributes(data, 4)


def _attributes(data: bytes, field: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, part in _fields(data):
        if number == field:
            _attribute(part, found)
    return found


def _attribute(data: bytes, into: dict[str, Any]) -> None:
    name, value = '', None
    for number, part in _fields(data):
        if number == 1:
            name = _text(part)
        elif number == 2:
            value = _value(part)
    if name and value is not None:
        into[name] = value


def _value(data: bytes) -> str | bool | int | float | None:
    for number, part in _fields(data):
        if number == 1:
            return _text(part)
        if number == 2:
            return bool(part)
        if number == 3:
            return part - (1 << 64) if part >> 63 else part
        if number == 4:
            return unpack_from('<d', part.to_bytes(8, 'little'))[0]
    return None


def _text(data: bytes) -> str:
    return data.decode('utf-8', 'replace')


def _fields(data: bytes) -> Iterator[Field]:
    """The fields of a message: numbers as int (what they are is the reader's affair), all else as bytes."""
    at, size = 0, len(data)
    while at < size:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
        elif kind == _BYTES:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif kind in (_FIXED64, _FIXED32):
            width = 8 if kind == _FIXED64 else 4
            value, at = int.from_bytes(data[at : at + width], 'little'), at + width
        else:
            raise Damaged(f'wire type {kind}')
        if at > size:
            raise Damaged('it ends early')
        yield key >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
        if shift >= _LONGEST_VARINT:
            raise Damaged('a number without end')
