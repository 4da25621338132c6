# SPDX-License-Identifier: Apache-2.0
"""Exporter `console`: one flat JSON object a line, for every process that does not print for itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from lens_auto.collect.console import Console
from lens_auto.record.line import moment
from tests.unit.collect.journals import MS, Lab

ISO = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z')


def printed(lab: Lab, path: Path) -> list[dict[str, Any]]:
    with open(path, 'wb') as out:
        collector = lab.collector({'exporter': 'console'}, console_fd=out.fileno())
        collector.start()
        assert collector.finish(5.0).complete
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_spans_and_points_are_flat_objects(lab: Lab, tmp_path: Path) -> None:
    journal = lab.journal(told={'dl.rank': 3})
    journal.now += MS
    journal.end_span(2, 'rollout', parent=1, trace=5, items={'rl.bucket': 'productive'}, status=2)
    journal.point('rl.reward', 0.5, labels={'split': 'train'})
    span, point = printed(lab, tmp_path / 'out')
    assert list(span)[:8] == [
        *('trace_id', 'span_id', 'parent_id', 'name', 'start_time', 'end_time', 'status', 'attributes'),
    ]
    assert span['trace_id'] == f'{5:032x}' and span['parent_id'] == f'{1:016x}'
    assert ISO.fullmatch(span['start_time']) and span['start_time'] < span['end_time']
    assert span['attributes'] == {'rl.bucket': 'productive'} and span['status'] == 'ERROR'
    assert span['resource']['service.name'] == 'trainer' and span['resource']['dl.rank'] == 3
    assert (point['metric'], point['value'], point['attributes']) == ('rl.reward', 0.5, {'split': 'train'})
    assert 'trace_id' not in point  # `grep trace_id` finds spans alone


def test_a_process_that_prints_for_itself_is_not_printed(lab: Lab, tmp_path: Path) -> None:
    lab.journal(flags={'prints': True}).end_span(1, 'server')
    lab.journal(flags={'prints': False}).end_span(2, 'driver')
    assert [line['name'] for line in printed(lab, tmp_path / 'out')] == ['driver']
    assert set(lab.spans()) == {'server', 'driver'}


def test_the_documented_pipeline_counts_traces(lab: Lab, tmp_path: Path) -> None:
    journal = lab.journal()
    for number in range(4):
        journal.end_span(number + 1, 'rollout', trace=number % 2 + 1)
    printed(lab, tmp_path / 'server.log')
    pipeline = """grep -h '"trace_id"' *.log | sed 's/.*"trace_id": "\\([0-9a-f]*\\)".*/\\1/' | sort | uniq -c"""
    counted = subprocess.run(['sh', '-c', pipeline], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert counted.split() == ['2', f'{1:032x}', '2', f'{2:032x}']


def test_a_reader_that_went_away_costs_the_lines_and_nothing_else() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    console = Console(writer)
    console.print(['one\n', 'two\n'])
    os.close(writer)
    assert console.lost == 2


def test_moments_are_exact_to_the_microsecond() -> None:
    assert moment(1_700_000_000_123_456_789) == '2023-11-14T22:13:20.123456Z'
