# SPDX-License-Identifier: Apache-2.0
"""A program with a meter provider, set before or after its instruments are made: its points are as without us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.program import Program, function

pytest.importorskip('opentelemetry.sdk')

PROGRAM = """
import json, os, warnings
warnings.simplefilter('error')
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
import work
reader = InMemoryMetricReader()
made = MeterProvider(metric_readers=[reader])
if os.environ['WHEN'] == 'before':
    metrics.set_meter_provider(made)
meter = metrics.get_meter('mine')
counter, histogram = meter.create_counter('count'), meter.create_histogram('size')
gone = 2 if os.environ['WHEN'] == 'later' else 0
for number in range(gone):
    counter.add(100)
if os.environ['WHEN'] != 'before':
    metrics.set_meter_provider(made)
def measure():
    counter.add(1, {'split': 'train'})
    histogram.record(7)
for number in range(3):
    work.outer(measure)
found = []
for resource in reader.get_metrics_data().resource_metrics:
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            for point in metric.data.data_points:
                total = getattr(point, 'value', None)
                total = point.sum if total is None else total
                found.append([metric.name, total, dict(point.attributes)])
print(json.dumps(sorted(found, key=str)))
"""


@pytest.mark.parametrize(('when', 'before_it'), [('before', 0), ('after', 0), ('later', 2)])
def test_points_reach_the_programs_provider_and_no_journal(tmp_path: Path, when: str, before_it: int) -> None:
    program = Program(tmp_path, {'work.py': 'def outer(f): return f()\n', 'main.py': PROGRAM})
    traced = program.traced([function('outer', 'work:outer')], WHEN=when)
    plain = program.plain(WHEN=when)
    assert traced.visible() == plain.visible()
    found: list[Any] = json.loads(traced.stdout)
    assert ['count', 3, {'split': 'train'}] in found and ['size', 21, {}] in found
    # Of what came before there was a provider, the journal has what the API would have dropped.
    assert [(name, value) for name, value, _ in traced.journal.points] == [('count', 100)] * before_it
    assert traced.journal.reports('fault') == []
