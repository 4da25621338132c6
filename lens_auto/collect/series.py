# SPDX-License-Identifier: Apache-2.0
"""Metric points become OTLP data points: gauges and levels as they are; the rest summed per process and labels."""

# ruff: noqa: UP031 -- JSON is full of braces: with % a template shows the text it makes

from __future__ import annotations

from _bisect import bisect_left

from lens_auto.collect import encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Labels = tuple[tuple[str, Any], ...]
    Key = tuple[str, str, str]  # name, instrument, unit

MOST_LABEL_SETS = 1000
OVERFLOW = {'otel.metric.overflow': True}
_INT64 = 1 << 63
_CUMULATIVE, _DELTA = 2, 1
_LEVEL = '"sum":{"dataPoints":[%%s],"aggregationTemporality":%d,"isMonotonic":false}' % _CUMULATIVE

# The SDK's default boundaries, and a finer, longer scale for durations in seconds (a step may take half an hour).
_BOUNDS = (0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0, 10000.0)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


class Sum:
    """One counter's running sum for one label set."""

    __slots__ = ('changed', 'exemplar', 'labels', 'last', 'since', 'value')

    def __init__(self, labels: str, since: int) -> None:
        self.labels = labels
        self.since = since
        self.last = since
        self.value: float = 0
        self.exemplar = ''
        self.changed = False


class Buckets:
    """One histogram's running distribution for one label set."""

    __slots__ = (
        'bounds',
        'changed',
        'count',
        'counts',
        'exemplar',
        'labels',
        'last',
        'least',
        'most',
        'since',
        'total',
    )

    def __init__(self, labels: str, since: int, bounds: tuple[float, ...]) -> None:
        self.labels = labels
        self.since = since
        self.last = since
        self.bounds = bounds
        self.exemplar = ''
        self.changed = False
        self.clear()

    def clear(self) -> None:
        """Forget all observations."""
        self.count = 0
        self.total: float = 0.0
        self.least: float = 0.0
        self.most: float = 0.0
        self.counts = [0] * (len(self.bounds) + 1)


class Series:
    """The metrics of one process.

    Attributes:
        overflowed: Points whose labels were left out, the metric having `MOST_LABEL_SETS` label sets already.
    """

    __slots__ = ('_levels', '_labels', '_states', '_temporality', 'overflowed')

    def __init__(self, delta: bool = False) -> None:
        """Begin with nothing.

        Args:
            delta: Send what came since the last flush instead of the sum since the process began.
        """
        self._temporality = _DELTA if delta else _CUMULATIVE
        self._labels: dict[Key, dict[Labels, str]] = {}
        self._levels: dict[Key, list[str]] = {}
        self._states: dict[Key, dict[str, Sum | Buckets]] = {}
        self.overflowed = 0

    def add(
        self,
        name: str,
        instrument: str,
        unit: str,
        value: float,
        labels: Mapping[str, Any] | None,
        at: int,
        since: int,
        trace_id: bytes,
        span_id: bytes,
    ) -> None:
        """Take one point of the journal.

        Args:
            name: Metric name.
            instrument: 'gauge', 'updowncounter' (a level), 'counter' or 'histogram'.
            unit: UCUM unit.
            value: Value, level, increment or observation.
            labels: Its labels.
            at: Wall-clock nanoseconds.
            since: When the process began, for sums.
            trace_id: Trace it was recorded in, b'' for none.
            span_id: Span it was recorded in, b'' for none.
        """
        key = (name, instrument, unit)
        text = self._bounded(key, labels)
        exemplar = _exemplar(value, at, trace_id, span_id) if span_id else ''
        if instrument in ('gauge', 'updowncounter'):
            begun = 0 if instrument == 'gauge' else since
            self._levels.setdefault(key, []).append(_number_point(text, begun, at, value, exemplar))
            return
        if value != value:
            return  # not a number: it would spoil the sum and has no bucket
        states = self._states.setdefault(key, {})
        state = states.get(text)
        if state is None:
            state = Sum(text, since) if instrument == 'counter' else Buckets(text, since, bounds_of(unit))
            states[text] = state
        state.last = max(state.last, at)
        state.exemplar = exemplar
        state.changed = True
        if isinstance(state, Sum):
            state.value += value
            return
        state.least = value if not state.count else min(state.least, value)
        state.most = value if not state.count else max(state.most, value)
        state.count += 1
        state.total += value
        state.counts[bisect_left(state.bounds, value)] += 1

    def _bounded(self, key: Key, labels: Mapping[str, Any] | None) -> str:
        known = self._labels.setdefault(key, {})
        try:
            ident: Labels = tuple(sorted(labels.items())) if labels else ()
            text = known.get(ident)
        except TypeError:  # an unhashable label value
            ident = (('', repr(labels)),)
            text = known.get(ident)
        if text is None:
            if len(known) >= MOST_LABEL_SETS:
                self.overflowed += 1
                return encoding.attributes(OVERFLOW)
            text = known[ident] = encoding.attributes(labels)
        return text

    def flush(self) -> tuple[list[str], int]:
        """What came since the last flush: OTLP metrics, and how many data points they hold."""
        metrics: list[str] = []
        count = 0
        for key, points in self._levels.items():
            # A level is a sum that can fall, and cumulative whatever temporality is preferred.
            shape = _LEVEL if key[1] == 'updowncounter' else '"gauge":{"dataPoints":[%s]}'
            metrics.append(_metric(key, shape % ','.join(points)))
            count += len(points)
        self._levels.clear()
        for key, states in self._states.items():
            changed = [state for state in states.values() if state.changed]
            if changed:
                metrics.append(_metric(key, self._data(changed)))
                count += len(changed)
        return metrics, count

    def _data(self, states: Iterable[Sum | Buckets]) -> str:
        points: list[str] = []
        shape = ''
        for state in states:
            if isinstance(state, Sum):
                shape = '"sum":{"dataPoints":[%s],"aggregationTemporality":%d,"isMonotonic":true}'
                points.append(_number_point(state.labels, state.since, state.last, state.value, state.exemplar))
            else:
                shape = '"histogram":{"dataPoints":[%s],"aggregationTemporality":%d}'
                points.append(_histogram_point(state))
            state.changed = False
            if self._temporality == _DELTA:
                state.since = state.last
                if isinstance(state, Sum):
                    state.value = 0
                else:
                    state.clear()
        return shape % (','.join(points), self._temporality)

    def dump(self) -> list[Any]:
        """Plain data for the checkpoint; gauges hold nothing between flushes."""
        states: list[Any] = []
        for key, by_labels in self._states.items():
            for s in by_labels.values():
                plain = (s.value,) if isinstance(s, Sum) else (s.count, s.total, s.least, s.most, tuple(s.counts))
                states.append((key, s.labels, s.since, s.last, plain))
        labels = [(key, ident, text) for key, known in self._labels.items() for ident, text in known.items()]
        return [self.overflowed, states, labels]

    def load(self, plain: list[Any]) -> None:
        """Take back what `dump` gave.

        Args:
            plain: Its answer.
        """
        self.overflowed = plain[0]
        for key, labels, since, last, values in plain[1]:
            if key[1] == 'counter':
                state: Sum | Buckets = Sum(labels, since)
                (state.value,) = values
            else:
                state = Buckets(labels, since, bounds_of(key[2]))
                state.count, state.total, state.least, state.most = values[:4]
                state.counts = list(values[4])
            state.last = last
            self._states.setdefault(key, {})[labels] = state
        for key, ident, text in plain[2]:
            self._labels.setdefault(key, {})[ident] = text


def bounds_of(unit: str) -> tuple[float, ...]:
    """The upper edges of a histogram's buckets.

    Args:
        unit: Its unit.
    """
    return _SECONDS if unit == 's' else _BOUNDS


def _metric(key: Key, data: str) -> str:
    name, _, unit = key
    said = ',"unit":' + encoding.quote(unit[:63]) if unit else ''
    return '{"name":%s%s,%s}' % (encoding.quote(name[: encoding.LONGEST_TEXT]), said, data)


def _number(value: float) -> str:
    if type(value) is int and -_INT64 <= value < _INT64:
        return '"asInt":"%d"' % value
    return '"asDouble":' + encoding.number(float(value))


def _exemplar(value: float, at: int, trace_id: bytes, span_id: bytes) -> str:
    return '"exemplars":[{"timeUnixNano":"%d","spanId":"%s","traceId":"%s",%s}],' % (
        at,
        span_id.hex(),
        trace_id.hex(),
        _number(value),
    )


def _number_point(labels: str, since: int, at: int, value: float, exemplar: str) -> str:
    start = '"startTimeUnixNano":"%d",' % since if since else ''
    listed = '"attributes":[' + labels + '],' if labels else ''
    return '{%s%s"timeUnixNano":"%d",%s%s}' % (listed, start, at, exemplar, _number(value))


def _histogram_point(state: Buckets) -> str:
    listed = '"attributes":[' + state.labels + '],' if state.labels else ''
    text = '{%s"startTimeUnixNano":"%d","timeUnixNano":"%d",%s"count":"%d","sum":%s' % (
        listed,
        state.since,
        state.last,
        state.exemplar,
        state.count,
        encoding.number(state.total),
    )
    text += ',"bucketCounts":["%s"],"explicitBounds":[%s]' % (
        '","'.join(map(str, state.counts)),
        ','.join(map(repr, state.bounds)),
    )
    if state.count:
        text += ',"min":%s,"max":%s' % (encoding.number(state.least), encoding.number(state.most))
    return text + '}'
