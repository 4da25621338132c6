# SPDX-License-Identifier: Apache-2.0
"""Records as OTLP JSON text: protobuf's JSON mapping with OTLP's own rule for ids (hex, not base64).

Written by hand rather than through message classes: 200,000 spans a second against 34,000, and no SDK is imported in a
run that only keeps its folder. Tests hold every line to protobuf's parser and to the official JSON file exporter.
"""

# ruff: noqa: UP031 -- JSON is full of braces: with % a template shows the text it makes

from __future__ import annotations

# The C function behind json.dumps(str), without the package around it: that compiles regular expressions. It escapes
# everything outside ASCII, lone surrogates included.
from _json import encode_basestring_ascii as _quote

from lens_auto import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

SCOPE = 'lens-auto'
LONGEST_TEXT = 256
LONGEST_RESOURCE_TEXT = 1024
MOST_ATTRIBUTES = 128

# Flags of a span and a link: "is remote is known" set, "is remote" clear; the SDK's exporters write the same.
_FLAGS = 256
_INTERNAL = 1
_KIND = 'span.kind'  # the attribute by which a program's own OpenTelemetry spans say that they are not internal
_SEVERITIES = ('TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL')
_KINDS = {'server': 2, 'client': 3, 'producer': 4, 'consumer': 5}
_INT64 = 1 << 63
_SCOPE_JSON = '{"name":"%s","version":"%s"}' % (SCOPE, __version__)


def quote(text: str) -> str:
    """A JSON string; what UTF-8 cannot hold (lone surrogates) becomes question marks, as protobuf refuses it.

    Args:
        text: Any string.
    """
    if not text.isascii():
        text = text.encode('utf-8', 'replace').decode()
    return _quote(text)


class _Known(dict[str, str]):
    """JSON strings of names and keys: they are few, and come back in every span."""

    def __missing__(self, text: str) -> str:
        if len(self) >= 4096:
            self.clear()
        quoted = self[text] = quote(text)
        return quoted


_known = _Known()


def value(item: Any, longest: int = LONGEST_TEXT) -> str | None:  # Any: whatever a journal holds
    """An AnyValue, or None for what has no place in an attribute.

    Args:
        item: Scalar, string, or a sequence of them.
        longest: Strings are cut to this many characters.
    """
    kind: object = item.__class__
    if kind is str:
        return '{"stringValue":%s}' % quote(item[:longest])
    if kind is bool:
        return '{"boolValue":true}' if item else '{"boolValue":false}'
    if kind is int:
        if -_INT64 <= item < _INT64:
            return '{"intValue":"%d"}' % item
        return '{"stringValue":"%d"}' % item if item.bit_length() < 1024 else None
    if kind is float:
        return '{"doubleValue":%s}' % number(item)
    if kind is tuple or kind is list:
        parts = [part for part in (value(one, longest) for one in item[:MOST_ATTRIBUTES]) if part is not None]
        return '{"arrayValue":{"values":[%s]}}' % ','.join(parts)
    return None


def number(item: float) -> str:
    """A double in JSON; what JSON lacks is a string, as protobuf's mapping has it.

    Args:
        item: Any float.
    """
    if item - item == 0.0:
        return repr(item)
    return '"NaN"' if item != item else '"Infinity"' if item > 0 else '"-Infinity"'


def attributes(items: Mapping[str, Any] | None, longest: int = LONGEST_TEXT) -> str:
    """A list of KeyValue, without its brackets; '' when there is none.

    Args:
        items: Attributes.
        longest: Strings are cut to this many characters.
    """
    if not items:
        return ''
    parts: list[str] = []
    for key, item in items.items():
        text = value(item, longest)
        if text is not None:
            parts.append('{"key":%s,"value":%s}' % (_known[key], text))
            if len(parts) == MOST_ATTRIBUTES:
                break
    return ','.join(parts)


def resource(items: Mapping[str, Any]) -> str:
    """A Resource.

    Args:
        items: Its attributes.
    """
    return '{"attributes":[%s]}' % attributes(items, LONGEST_RESOURCE_TEXT)


def span(
    span_id: bytes,
    trace_id: bytes,
    parent_id: bytes,
    name: str,
    start: int,
    end: int,
    items: Mapping[str, Any] | None,
    status: int,
    message: str,
    links: Iterable[tuple[bytes, bytes, Mapping[str, Any] | None]] | None,
    events: Iterable[tuple[int, str, Mapping[str, Any] | None]] | None,
    shift: int = 0,
) -> str:
    """A Span.

    Args:
        span_id: Its id.
        trace_id: Its trace.
        parent_id: Its parent, b'' for none.
        name: Its name.
        start: Wall-clock nanoseconds.
        end: Wall-clock nanoseconds.
        items: Its attributes.
        status: 0 unset, 1 ok, 2 error.
        message: Status message, '' for none.
        links: (trace id, span id, attributes).
        events: (time, name, attributes).
        shift: Added to the events' times to make them wall-clock.
    """
    text = '{"traceId":"%s","spanId":"%s",' % (trace_id.hex(), span_id.hex())
    if parent_id:
        text += '"parentSpanId":"%s",' % parent_id.hex()
    text += '"flags":%d,"name":%s,"kind":%d,"startTimeUnixNano":"%d","endTimeUnixNano":"%d"' % (
        _FLAGS,
        _known[name[:LONGEST_TEXT]],
        _KINDS.get(items.get(_KIND, ''), _INTERNAL) if items else _INTERNAL,
        start,
        end,
    )
    listed = attributes(items)
    if listed:
        text += ',"attributes":[' + listed + ']'
    if events:
        text += ',"events":[' + ','.join(_event(event, shift) for event in events) + ']'
    if links:
        text += ',"links":[' + ','.join(map(_link, links)) + ']'
    if not status and not message:
        return text + ',"status":{}}'
    said = '"message":%s,' % quote(message[:LONGEST_TEXT]) if message else ''
    return text + ',"status":{%s"code":%d}}' % (said, status)


def _event(event: tuple[int, str, Mapping[str, Any] | None], shift: int) -> str:
    at, name, items = event
    listed = attributes(items)
    tail = ',"attributes":[' + listed + ']' if listed else ''
    return '{"timeUnixNano":"%d","name":%s%s}' % (at + shift, quote(name[:LONGEST_TEXT]), tail)


def _link(link: tuple[bytes, bytes, Mapping[str, Any] | None]) -> str:
    trace_id, span_id, items = link
    listed = attributes(items)
    tail = ',"attributes":[' + listed + ']' if listed else ''
    return '{"traceId":"%s","spanId":"%s"%s,"flags":%d}' % (trace_id[:16].hex(), span_id.hex(), tail, _FLAGS)


def log(at: int, severity: int, body: str, items: Mapping[str, Any] | None, trace_id: bytes, span_id: bytes) -> str:
    """A LogRecord.

    Args:
        at: Wall-clock nanoseconds.
        severity: OpenTelemetry severity number.
        body: Its text.
        items: Its attributes.
        trace_id: Trace it was written in, b'' for none.
        span_id: Span it was written in, b'' for none.
    """
    text = '{"timeUnixNano":"%d","observedTimeUnixNano":"%d","severityNumber":%d,"severityText":"%s"' % (
        at,
        at,
        severity,
        _SEVERITIES[min(max(severity - 1, 0) // 4, 5)],
    )
    if body:
        text += ',"body":%s' % value(body, 4096)
    listed = attributes(items)
    if listed:
        text += ',"attributes":[' + listed + ']'
    if span_id:
        text += ',"traceId":"%s","spanId":"%s"' % (trace_id.hex(), span_id.hex())
    return text + '}'


def resource_spans(resource_text: str, spans: Iterable[str]) -> str:
    """A ResourceSpans of our scope.

    Args:
        resource_text: A Resource.
        spans: Spans.
    """
    return '{"resource":%s,"scopeSpans":[{"scope":%s,"spans":[%s]}]}' % (resource_text, _SCOPE_JSON, ','.join(spans))


def resource_metrics(resource_text: str, metrics: Iterable[str]) -> str:
    """A ResourceMetrics of our scope.

    Args:
        resource_text: A Resource.
        metrics: Metrics.
    """
    return '{"resource":%s,"scopeMetrics":[{"scope":%s,"metrics":[%s]}]}' % (
        resource_text,
        _SCOPE_JSON,
        ','.join(metrics),
    )


def resource_logs(resource_text: str, logs: Iterable[str]) -> str:
    """A ResourceLogs of our scope.

    Args:
        resource_text: A Resource.
        logs: Log records.
    """
    return '{"resource":%s,"scopeLogs":[{"scope":%s,"logRecords":[%s]}]}' % (
        resource_text,
        _SCOPE_JSON,
        ','.join(logs),
    )
