# SPDX-License-Identifier: Apache-2.0
"""Counters and histograms are sums since the process began, or since the last export; label sets are bounded."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lens_auto.collect.series import MOST_LABEL_SETS, Series
from tests.unit.collect.journals import Lab, Sleeper, metrics


def record(lab: Lab) -> list[int]:
    """Two exports of a counter; the answer is what each says."""
    sleeper = Sleeper()
    journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
    collector = lab.collector()
    collector.start()
    journal.point('rl.tokens', 5, 'counter')
    deadline = time.monotonic() + 10
    while not metrics(lab.folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    journal.point('rl.tokens', 2, 'counter')
    sleeper.end()
    assert collector.finish(5.0).complete
    points = [point for metric in metrics(lab.folder) for point in metric['sum']['dataPoints']]
    assert {metric['sum']['aggregationTemporality'] for metric in metrics(lab.folder)} == {
        1 if lab.environ.get('OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE') else 2
    }
    return [int(point['asInt']) for point in points]


def test_sums_are_cumulative(lab: Lab) -> None:
    assert record(lab) == [5, 7]


def test_sums_are_deltas_when_the_environment_asks(tmp_path: Path) -> None:
    assert record(Lab(tmp_path, {'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE': 'delta'})) == [5, 2]


@pytest.mark.parametrize('instrument', ['gauge', 'counter', 'histogram'])
def test_labels_beyond_the_limit_share_one_overflowing_set(instrument: str) -> None:
    series = Series()
    for number in range(MOST_LABEL_SETS + 5):
        series.add('m', instrument, '', 1, {'user': number}, 2, 1, b'', b'')
    (text,), points = series.flush()
    assert series.overflowed == 5
    assert points == MOST_LABEL_SETS + (5 if instrument == 'gauge' else 1)
    assert text.count('otel.metric.overflow') == (5 if instrument == 'gauge' else 1)


def test_a_value_that_is_no_number_does_not_spoil_a_sum() -> None:
    series = Series()
    for value in (1.0, float('nan'), 2.0):
        series.add('loss', 'counter', '', value, None, 2, 1, b'', b'')
    assert '"asDouble":3.0' in series.flush()[0][0]


def test_nothing_new_means_nothing_sent() -> None:
    series = Series()
    series.add('m', 'counter', '', 1, None, 2, 1, b'', b'')
    assert series.flush()[1] == 1
    assert series.flush() == ([], 0)
