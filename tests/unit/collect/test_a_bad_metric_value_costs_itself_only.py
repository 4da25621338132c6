# SPDX-License-Identifier: Apache-2.0
"""What a program logs as a metric may be anything: a point that cannot be added is left out, and nothing else."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from lens_auto.collect import summary
from lens_auto.collect.look import Look
from lens_auto.collect.replay import replay
from lens_auto.collect.totals import MetricRow, Totals, merge
from tests.unit.collect.journals import Lab, metrics

INSTRUMENTS = ('gauge', 'counter', 'histogram')
NO_NUMBERS: tuple[Any, ...] = ('0.5', None, 10**400, -(10**5000), (1,), b'1', 1j)


def finish(lab: Lab) -> tuple[Totals, str, dict[str, Any]]:
    """Collect; the answer is what came of it, the summary, and run.json read as strictly as JSON is."""
    reader = lab.collector()
    reader.start()
    totals = reader.finish(5.0, exit_code=0)
    text = reader.summary(Look(unicode=False))
    return totals, text, strictly((Path(lab.folder.path) / 'run.json').read_text())


def strictly(text: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f'{word} is not JSON')

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize('instrument', INSTRUMENTS)
def test_a_point_that_is_no_number_is_left_out_and_counted(lab: Lab, instrument: str) -> None:
    journal = lab.journal()
    journal.point('rl.reward', 2, instrument)
    for item in NO_NUMBERS:
        journal.point('rl.reward', item, instrument)
    journal.point('rl.reward', 3.5, instrument)
    journal.end_span(1, 'rl.step')

    totals, text, facts = finish(lab)

    assert totals.complete and not totals.faults
    assert totals.counts['not_numbers'] == len(NO_NUMBERS)
    assert totals.counts['points'] == 2
    [row] = facts['metrics']
    assert (row['count'], row['total']) == (2, 5.5)
    assert f'{len(NO_NUMBERS)} metric points left out: the value is no finite number' in text
    assert 'rl.step' in lab.spans()
    assert replay(lab.folder.path, lab.environ) == 0


@pytest.mark.parametrize('instrument', INSTRUMENTS)
def test_values_at_the_edge_of_what_can_be_written_are_valid_otlp(lab: Lab, instrument: str) -> None:
    journal = lab.journal()
    values = (2**63 - 1, 2**63, -(2**64), 10**300, 1.7e308, 1.7e308, math.inf, -math.inf, math.nan, True)
    for item in values:
        journal.point('rl.loss', item, instrument, span=(7, 1))

    totals, text, facts = finish(lab)

    assert totals.complete and not totals.faults
    assert totals.counts.get('not_numbers', 0) == (0 if instrument == 'gauge' else 3)
    assert 'rl.loss' in text
    assert facts['metrics'][0]['name'] == 'rl.loss'
    for line in lab.lines('metrics'):
        strictly(json.dumps(line))
        text = json.dumps(line).replace('"spanId": "0000000000000001"', '"spanId": "AAAAAAAAAAE="')
        Parse(text.replace('"traceId": "00000000000000000000000000000007"', '"traceId": "AA=="'), MetricsData())
    if instrument == 'gauge':
        points = [point for metric in metrics(lab.folder) for point in metric['gauge']['dataPoints']]
        found = [point.get('asInt', point.get('asDouble')) for point in points]
        assert found[0] == str(2**63 - 1) and found[-1] == '1'
        assert [word for word in found if isinstance(word, str)][1:4] == ['Infinity', '-Infinity', 'NaN']


@pytest.mark.parametrize('item', ['text', 10**400, None, math.nan, math.inf])
def test_run_json_is_written_whatever_the_books_hold(lab: Lab, item: Any) -> None:
    lab.journal().end_span(1, 'rl.step')
    reader = lab.collector()
    row = reader.intake.ledger.metrics['rl.loss', 'gauge'] = MetricRow('rl.loss', 'gauge')
    row.count, row.first, row.last, row.total = 2, item, item, item
    reader.start()
    assert reader.finish(5.0, exit_code=0).complete
    facts = strictly((Path(lab.folder.path) / 'run.json').read_text())
    assert facts['metrics'][0]['count'] == 2
    assert merge([Totals.from_json(facts)]).metrics[0].name == 'rl.loss'
    assert 'rl.step' in reader.summary(Look(unicode=False))


def test_a_part_of_the_summary_that_fails_costs_neither_the_rest_nor_run_json(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.journal().end_span(1, 'rl.step')
    monkeypatch.setattr(summary, '_metrics', lambda *_: 1 / 0)

    totals, text, facts = finish(lab)

    assert totals.complete and facts['exit_code'] == 0
    assert 'a part of the summary is missing: ZeroDivisionError' in text
    assert 'rl.step' in text and lab.folder.path.split('/')[-1] in text
