# SPDX-License-Identifier: Apache-2.0
"""Reads OTLP JSON lines of any producer: run folders, the OpenTelemetry Collector's file exporter, SDK file exporters.

A file is input, not a friend: whatever is torn, of a wrong type or too long is left out and counted.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from typing import IO, TYPE_CHECKING, Any

from lens_auto.report.arrays import np
from lens_auto.report.distributions import Sum
from lens_auto.report.store import BUCKETS, ERROR, ESTIMATED, ROW, SYSTEM, TRUNCATED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lens_auto.report.store import Store

LONGEST_LINE = 32 << 20
"""Bytes. JSON as Python objects takes ten times its text: a longer line would take more memory than a run may."""

_PIECE = 1 << 20
_BUCKET = {name: number for number, name in enumerate(BUCKETS)}
_WRONG = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)
_DELTA = (1, 'AGGREGATION_TEMPORALITY_DELTA')
_LONGEST_LABELS = 1024
_MOST_OBSERVATIONS = 1 << 62
# Labels of which one tells what a figure of the system is of.
_PARTS = ('hw.name', 'cpu.mode', 'disk.io.direction')
_MANY = 12  # spans of a batch from which on columns pay
_NONE = '0' * 16
_SIXTEEN = {16}
_EMPTY: dict[str, Any] = {}
_GROUP, _BUCKETED, _ITERATION, _STEP, _VERSION, _CUT, _ESTIMATED = range(7)
_WANTED = {
    'lens.group': _GROUP,
    'rl.bucket': _BUCKETED,
    'rl.iteration': _ITERATION,
    'rl.step': _STEP,
    'rl.weight_version': _VERSION,
    'lens.truncated': _CUT,
    'lens.end_estimated': _ESTIMATED,
}


def read(path: str, store: Store, offset: int = 0) -> int:
    """Read a file into the store; the answer is the offset after its last whole line.

    Args:
        path: The file; gzip where its name ends in .gz.
        store: Takes what is found.
        offset: Where a line begins.

    Raises:
        OSError: It cannot be read.
    """
    opened: IO[bytes] = gzip.open(path) if path.endswith('.gz') else open(path, 'rb')  # type: ignore[assignment]
    with opened as file:
        if offset:
            file.seek(offset)
        try:
            for line, size in lines(file, store):
                if line:
                    take(line, store)
                offset += size
        except (EOFError, gzip.BadGzipFile, zlib.error):
            store.skip('damaged files')
    return offset


def lines(file: IO[bytes], store: Store) -> Iterator[tuple[bytes, int]]:
    """Whole lines and their lengths; one that is too long comes as b''. What has no line break yet is torn.

    Args:
        file: Open for reading.
        store: Counts what is left out.
    """
    while line := file.readline(LONGEST_LINE):
        size = len(line)
        if line.endswith(b'\n'):
            yield line, size
        elif size < LONGEST_LINE:
            # The end of the file. A last line without a break is whole when it is JSON, as other writers leave it.
            if line.rstrip().endswith(b'}') and _is_json(line):
                yield line, size
            else:
                store.skip('torn lines')
            return
        else:
            del line
            while rest := file.readline(_PIECE):
                size += len(rest)
                if rest.endswith(b'\n'):
                    break
            store.skip(f'lines of more than {LONGEST_LINE >> 20} MiB')
            yield b'', size


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def take(line: bytes, store: Store) -> None:
    """Take one line.

    Args:
        line: An ExportTraceServiceRequest or ExportMetricsServiceRequest, or a TracesData and the like.
        store: Takes what is found.
    """
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        if line.strip(b'\0 \t\r\n'):
            store.skip('lines that are no JSON')
        return
    if plain.__class__ is not dict:
        store.skip('lines that are no OTLP')
        return
    known = False
    for key, reader in _KINDS.items():
        groups = plain.get(key)
        if groups is None:
            continue
        known = True
        for group in groups if groups.__class__ is list else ():
            try:
                reader(group, store)
            except _WRONG:
                store.skip('resources of wrong types')
    if not known and plain:
        store.skip('lines that are no OTLP')


def _traces(group: dict[str, Any], store: Store) -> None:
    process = store.process(_resource(group))
    for scope in group.get('scopeSpans') or group.get('scope_spans') or ():
        spans: list[dict[str, Any]] = scope.get('spans') or []
        if len(spans) >= _MANY and _taken_together(spans, process, store):
            continue
        for span in spans:
            try:
                taken = _span(span, process, store)
            except _WRONG:
                taken = False
            if not taken:
                store.skip('spans of wrong types')


def _taken_together(spans: list[dict[str, Any]], process: int, store: Store) -> bool:
    """All spans of a batch at once, column by column: 2.5 times as fast as one by one.

    False, and nothing taken, where any of them is not as usual: then each is looked at for itself.
    """
    count = len(spans)
    rows = np.zeros(count, ROW)
    names = store.known_names
    try:
        for column, texts in (
            ('id', [span['spanId'] for span in spans]),
            ('parent', [span.get('parentSpanId') or _NONE for span in spans]),
        ):
            joined = ''.join(texts)
            data = bytes.fromhex(joined)
            # Whitespace is no digit: as many bytes as that means that every id has its sixteen, or one lacks what
            # another has too much.
            if len(data) != 8 * count or len(joined) != 16 * count or set(map(len, texts)) != _SIXTEEN:
                return False
            rows[column] = np.frombuffer(data, '>u8')
        rows['start'] = [int(span['startTimeUnixNano']) for span in spans]
        rows['end'] = [int(span['endTimeUnixNano']) for span in spans]
        rows['name'] = [names[span['name']] for span in spans]
        failed = [span.get('status', _EMPTY).get('code') for span in spans]
        rows['flags'] = [code == 2 or code == 'STATUS_CODE_ERROR' for code in failed]
        rows['process'] = process
        groups, buckets, flags, iterations, versions = _marks(spans, store)
        rows['group'], rows['bucket'], rows['iteration'] = groups, buckets, iterations
        for place, flag in flags:
            rows['flags'][place] |= flag
    except _WRONG:
        return False
    if not ((rows['start'] >= 0) & (rows['start'] <= rows['end']) & (rows['end'] < 1 << 62) & (rows['id'] > 0)).all():
        return False
    first = len(store)
    store.extend(rows)
    for place, version in versions:
        store.versions[first + place] = version
    return True


Marks = tuple[list[int], list[int], list[tuple[int, int]], list[int], list[tuple[int, int]]]


def _marks(spans: list[dict[str, Any]], store: Store) -> Marks:
    """Of each span its group, bucket and iteration; of those that have one (place, flag), (place, weight version)."""
    count = len(spans)
    groups, buckets, iterations = [0] * count, [0] * count, [-1] * count
    flags: list[tuple[int, int]] = []
    versions: list[tuple[int, int]] = []
    wanted, known = _WANTED, store.known_groups
    for place, span in enumerate(spans):
        for item in span.get('attributes', ()):
            what = wanted.get(item['key'])
            if what is None:
                continue
            value = item['value']
            if what == _GROUP:
                text = value['stringValue']
                number = known.get(text)
                groups[place] = store.group(text) if number is None else number
            elif what == _BUCKETED:
                buckets[place] = _BUCKET.get(value['stringValue'], 0)
            elif what == _ITERATION or (what == _STEP and iterations[place] < 0):
                iterations[place] = _iteration(value)
            elif what == _VERSION:
                version = _iteration(value)
                if version >= 0:
                    versions.append((place, version))
            elif what != _STEP:
                flags.append((place, TRUNCATED if what == _CUT else ESTIMATED))
    return groups, buckets, flags, iterations, versions


def _span(span: dict[str, Any], process: int, store: Store) -> bool:
    text = span.get('spanId')
    if text is None:
        span = {_camel(key): item for key, item in span.items()}
        text = span['spanId']
    ident = _id(text)
    parent_text = span.get('parentSpanId')
    parent = _id(parent_text) if parent_text else 0
    if not ident:
        return False
    groups, buckets, marked, iterations, versions = _marks([span], store)
    flags = 0
    for _, flag in marked:
        flags |= flag
    status = span.get('status')
    if status:
        code = status.get('code')
        if code == 2 or code == 'STATUS_CODE_ERROR':
            flags |= ERROR
    row = len(store)
    start, end = int(span['startTimeUnixNano']), int(span.get('endTimeUnixNano') or 0)
    if end < start:
        end = start
        store.skip('spans that end before they start, kept without length')
    if not store.add(
        *(ident, parent, start, end, store.name(span['name']), process),
        *(groups[0], buckets[0], flags, iterations[0]),
    ):
        return False
    for _, version in versions:
        store.versions[row] = version
    return True


def _iteration(value: dict[str, Any]) -> int:
    try:
        number = int(value.get('intValue', value.get('doubleValue', -1)))
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if 0 <= number < 1 << 31 else -1


def _id(text: str) -> int:
    """A span id: 16 hexadecimal digits by OTLP's own rule; protobuf's plain mapping writes base64."""
    data = bytes.fromhex(text) if len(text) == 16 else base64.b64decode(text, validate=True)
    if len(data) != 8:
        raise ValueError('a span id has 8 bytes')
    return int.from_bytes(data, 'big')


def _camel(key: str) -> str:
    head, *rest = key.split('_')
    return head + ''.join(word.capitalize() for word in rest)


def plain_attributes(listed: Any) -> dict[str, Any]:
    """Attributes of OTLP JSON as a dict; what is of a wrong type is left out.

    Args:
        listed: A list of KeyValue.
    """
    found: dict[str, Any] = {}
    for item in listed or ():
        try:
            key, value = item['key'], item['value']
            if 'stringValue' in value:
                found[key] = str(value['stringValue'])
            elif 'intValue' in value:
                found[key] = int(value['intValue'])
            elif 'doubleValue' in value:
                found[key] = float(value['doubleValue'])
            elif 'boolValue' in value:
                found[key] = bool(value['boolValue'])
        except _WRONG:
            continue
    return found


def _resource(group: dict[str, Any]) -> dict[str, Any]:
    resource: dict[str, Any] = group.get('resource') or {}
    return plain_attributes(resource.get('attributes'))


def _metrics(group: dict[str, Any], store: Store) -> None:
    process = store.process(_resource(group))
    for scope in group.get('scopeMetrics') or group.get('scope_metrics') or ():
        for metric in scope.get('metrics') or ():
            try:
                name, unit = str(metric['name']), str(metric.get('unit') or '')
                for kind, points in _points(metric):
                    for point in points:
                        at = int(point['timeUnixNano'])
                        part = _part(name, point)
                        store.point(name, process, at, _value(point, kind), unit, kind, part)
                        if kind == 'histogram':
                            labels = labels_of(plain_attributes(point.get('attributes')))
                            known = store.distribution(name, process, labels, unit)
                            if known is not None:
                                delta = metric['histogram'].get('aggregationTemporality') in _DELTA
                                known.take(_observed(point), int(point.get('startTimeUnixNano') or 0), at, delta)
            except _WRONG:
                store.skip('metrics of wrong types')


def _points(metric: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for key, kind in (('gauge', 'gauge'), ('sum', 'counter'), ('histogram', 'histogram')):
        if key in metric:
            level = key == 'sum' and metric[key].get('isMonotonic') is False
            yield 'gauge' if level else kind, metric[key].get('dataPoints') or []


def _part(name: str, point: dict[str, Any]) -> str:
    """See `Series.part`."""
    if not name.startswith(SYSTEM):
        return ''
    labels = plain_attributes(point.get('attributes'))
    return next((str(labels[label]) for label in _PARTS if label in labels), '')


def _value(point: dict[str, Any], kind: str) -> float:
    if kind == 'histogram':
        count = int(point.get('count') or 0)
        return float(point.get('sum') or 0.0) / count if count else float('nan')
    if 'asDouble' in point:
        return float(point['asDouble'])
    return float(int(point.get('asInt') or 0))


def _observed(point: dict[str, Any]) -> Sum:
    bounds = tuple(float(one) for one in point.get('explicitBounds') or ())
    counts = tuple(int(one) for one in point.get('bucketCounts') or ())
    if len(counts) != len(bounds) + 1:
        bounds, counts = (), ()
    count, total = int(point.get('count') or 0), float(point.get('sum') or 0.0)
    if total - total != 0 or not all(0 <= one < _MOST_OBSERVATIONS for one in (count, *counts)):
        raise ValueError('no count, or no number')
    return Sum(count, total, float(point.get('min', 'inf')), float(point.get('max', '-inf')), bounds, counts)


def labels_of(labels: dict[str, Any]) -> str:
    """Labels as a text that is the same for the same ones.

    Args:
        labels: Plain.
    """
    return ', '.join(f'{key}={value}' for key, value in sorted(labels.items()))[:_LONGEST_LABELS]


def _nothing(group: dict[str, Any], store: Store) -> None:
    """Logs are no part of a report."""


_KINDS = {
    'resourceSpans': _traces,
    'resource_spans': _traces,
    'resourceMetrics': _metrics,
    'resource_metrics': _metrics,
    'resourceLogs': _nothing,
    'resource_logs': _nothing,
}
