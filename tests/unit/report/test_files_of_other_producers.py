# SPDX-License-Identifier: Apache-2.0
"""The Collector's file exporter: several resources and scopes a line, metrics and logs beside, none of our groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lens_auto.report.facts import facts
from lens_auto.report.folder import load
from lens_auto.report.metrics import metrics
from lens_auto.report.steps import steps
from lens_auto.report.verdicts import verdicts
from tests.unit.report.planted import BEGIN, MS, attributes


def _span(number: int, name: str, begin: int, length: int, parent: int = 0) -> dict[str, Any]:
    return {
        **{'traceId': f'{number:032x}', 'spanId': f'{number:016x}', 'name': name, 'kind': 2},
        **{'parentSpanId': f'{parent:016x}' if parent else ''},
        **{'startTimeUnixNano': str(begin * MS + BEGIN), 'endTimeUnixNano': str((begin + length) * MS + BEGIN)},
        **{'attributes': [{'key': 'tags', 'value': {'arrayValue': {'values': []}}}], 'status': {'code': 1}},
    }


def _resource(pid: int) -> dict[str, Any]:
    return {'attributes': attributes({'service.name': 'trainer', 'host.name': 'a', 'process.pid': pid})}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / 'collector.json'
    lines: list[dict[str, Any]] = []
    for step in range(8):
        begin, number = step * 1000, 10 * (step + 1)
        trained = [
            _span(number, 'train_step', begin, 1000),
            _span(number + 1, 'rollout', begin, 300, number),
            _span(number + 2, 'compute_reward', begin + 300, 400, number),
            _span(number + 3, 'update_policy', begin + 700, 300, number),
        ]
        served = [_span(number + 4, 'HTTP POST', begin + 310, 300, number + 2)]
        scopes = [{'scope': {'name': 'a'}, 'spans': trained[:2]}, {'scope': {'name': 'b'}, 'spans': trained[2:]}]
        lines.append(
            {
                'resourceSpans': [
                    {'resource': _resource(1), 'scopeSpans': scopes, 'schemaUrl': 'https://example.invalid'},
                    {'resource': _resource(2), 'scopeSpans': [{'spans': served}]},
                ]
            }
        )
        total = {'timeUnixNano': str(BEGIN + begin * MS), 'asInt': str(step)}
        spread = {'timeUnixNano': str(BEGIN + begin * MS), 'count': '4', 'sum': 10.0, 'bucketCounts': ['4']}
        measured = [
            {'name': 'tokens', 'unit': '{token}', 'sum': {'dataPoints': [total], 'isMonotonic': True}},
            {'name': 'latency', 'unit': 's', 'histogram': {'dataPoints': [spread]}},
        ]
        lines.append({'resourceMetrics': [{'resource': _resource(1), 'scopeMetrics': [{'metrics': measured}]}]})
        lines.append({'resourceLogs': [{'resource': _resource(1), 'scopeLogs': []}]})
    file.write_text(''.join(json.dumps(line) + '\n' for line in lines))
    return file


def test_steps_and_phases_are_known_by_their_names(path: Path) -> None:
    run = load(str(path))
    assert run.store.skipped == {}
    assert [one.label for one in run.store.processes] == ['trainer 1', 'trainer 2']
    listed = steps(run.store, run.tree)
    assert [one.number for one in listed] == list(range(1, 9))
    assert {kind: spent // MS for kind, spent in listed[0].kinds.items()} == {
        'reward': 400,
        'generation': 300,
        'training': 300,
    }
    assert [one.name for one in verdicts(facts(run.store, run.tree))] == ['reward-bound']


def test_metrics_of_every_kind_have_their_course(path: Path) -> None:
    found = {one.name: one for one in metrics(load(str(path)).store)}
    assert (found['tokens'].first, found['tokens'].last, found['tokens'].kind) == (0.0, 7.0, 'counter')
    assert list(found['latency'].values) == [2.5] * 8  # the mean of each point


def test_a_folder_of_such_files_is_a_run(path: Path) -> None:
    assert len(load(str(path.parent)).store) == 40
