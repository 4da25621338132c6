# SPDX-License-Identifier: Apache-2.0
"""The run folder's files against two oracles: protobuf's own JSON parser, and the official OTLP JSON file exporter."""

from __future__ import annotations

import base64
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from tests.unit.collect.journals import MS, Lab, span_of, trace_of

# The newest release there is; it pins an SDK of its own, so it gets a venv of its own, made once a machine.
ORACLE = 'opentelemetry-exporter-otlp-json-file==0.66b1'

# A span with everything, and values that JSON, int64 and UTF-8 find hard.
ATTRIBUTES: dict[str, Any] = {
    'text': 'naïve "quoted" \\ \n \u2028 \U0001f600',
    'lone': 'a\ud800b',
    'long': 'x' * 300,
    'int': -(2**63),
    'big': 2**70,
    'yes': True,
    'float': 0.1,
    'whole': 1e16,
    'inf': math.inf,
    'nan': math.nan,
    'list': (1, 2),
    'words': ('a', 'b'),
    'none': None,
}


@pytest.fixture
def recorded(lab: Lab) -> Lab:
    first = lab.journal(told={'dl.rank': 0})
    first.open(1, 'rl.step', trace=2**127 + 5, items={'lens.group': 'step'}, links=((9, 10, {'lens.link': 'run'}),))
    first.now += MS
    event = (first.now, 'exception', {'exception.type': 'ValueError', 'code.line.number': 12})
    first.end_span(2, 'rollout', parent=1, trace=2**127 + 5, status=2, items=ATTRIBUTES, events=(event,))
    first.end_span(1, 'rl.step', trace=2**127 + 5, items={}, links=((9, 10, {'lens.link': 'run'}),))
    first.point('rl.reward.mean', 0.5, labels={'split': 'train'}, span=(2**127 + 5, 1))
    first.point('rl.reward.mean', 2, labels={'split': 'train'})
    first.point('rl.loss', math.nan)
    first.point('rl.tokens', 3, 'counter', '{token}')
    first.point('rl.tokens', 4, 'counter', '{token}')
    first.point('rl.latency', 0.3, 'histogram', 's')
    first.point('rl.latency', 70.0, 'histogram', 's')
    first.put((4, first.now, 17, 'it went wrong', {'exception.type': 'ValueError'}, trace_of(2**127 + 5), span_of(2)))
    lab.journal(told={'dl.rank': 1}).end_span(3, 'rollout', parent=1, trace=2**127 + 5)
    collector = lab.collector()
    collector.start()
    assert collector.finish(5.0, exit_code=0).complete
    return lab


def ids_as_protobuf_has_them(node: Any) -> Any:
    """OTLP JSON writes ids in hex where protobuf's own mapping of bytes is base64."""
    if isinstance(node, dict):
        return {
            key: base64.b64encode(bytes.fromhex(item)).decode()
            if key in ('traceId', 'spanId', 'parentSpanId')
            else ids_as_protobuf_has_them(item)
            for key, item in node.items()
        }
    return [ids_as_protobuf_has_them(item) for item in node] if isinstance(node, list) else node


def parsed(lines: list[dict[str, Any]], message: type[Any]) -> list[Any]:
    return [ParseDict(ids_as_protobuf_has_them(line), message()) for line in lines]


def test_protobuf_reads_every_line(recorded: Lab) -> None:
    (traces,) = parsed(recorded.lines('traces'), TracesData)
    by_name = {
        (span.name, span.span_id[-1]): span
        for group in traces.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    }
    rollout = by_name['rollout', 2]
    assert rollout.trace_id == (2**127 + 5).to_bytes(16, 'big')
    assert rollout.parent_span_id == (1).to_bytes(8, 'big')
    assert rollout.end_time_unix_nano - rollout.start_time_unix_nano == MS
    values = {item.key: item.value for item in rollout.attributes}
    assert values['text'].string_value == ATTRIBUTES['text']
    assert values['lone'].string_value == 'a?b'
    assert values['long'].string_value == 'x' * 256
    assert values['int'].int_value == -(2**63)
    assert values['big'].string_value == str(2**70)
    assert values['whole'].double_value == 1e16
    assert math.isnan(values['nan'].double_value)
    assert [item.int_value for item in values['list'].array_value.values] == [1, 2]
    assert 'none' not in values
    assert [event.name for event in rollout.events] == ['exception']
    # Both ranks in one line, each under its own resource, and the run's root under the launcher's.
    assert len(traces.resource_spans) == 3

    (metrics,) = parsed(recorded.lines('metrics'), MetricsData)
    found = {metric.name: metric for metric in metrics.resource_metrics[0].scope_metrics[0].metrics}
    assert [p.as_double or p.as_int for p in found['rl.reward.mean'].gauge.data_points] == [0.5, 2]
    assert found['rl.reward.mean'].gauge.data_points[0].exemplars[0].span_id == (1).to_bytes(8, 'big')
    assert found['rl.tokens'].sum.data_points[0].as_int == 7
    latency = found['rl.latency'].histogram.data_points[0]
    assert (latency.count, latency.sum, latency.min, latency.max) == (2, 70.3, 0.3, 70.0)
    assert sum(latency.bucket_counts) == 2
    assert len(latency.bucket_counts) == len(latency.explicit_bounds) + 1

    (logs,) = parsed(recorded.lines('logs'), LogsData)
    assert logs.resource_logs[0].scope_logs[0].log_records[0].body.string_value == 'it went wrong'


def test_the_official_exporter_writes_the_same(recorded: Lab, tmp_path: Path) -> None:
    for kind, message in (('traces', TracesData), ('metrics', MetricsData)):
        lines = recorded.lines(kind)
        theirs = [json.loads(line) for line in official(kind, lines, tmp_path).splitlines()]
        ours = [MessageToDict(one) for one in parsed(lines, message)]
        assert ours == [MessageToDict(one) for one in parsed(theirs, message)]


def official(kind: str, lines: list[dict[str, Any]], tmp_path: Path) -> str:
    """The lines' content, built into SDK objects and written by the official JSON file exporter."""
    given = tmp_path / f'{kind}.jsonl'
    given.write_text(''.join(json.dumps(line) + '\n' for line in lines))
    program = Path(__file__).with_name('official_exporter.py')
    environ = {**os.environ, 'PYTHONPATH': str(Path.cwd())}
    done = subprocess.run(
        [oracle(), str(program), kind, str(given)], env=environ, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def oracle() -> str:
    """An interpreter that has the exporter: this one, or one in a venv kept among the machine's temporary files."""
    try:
        importlib.import_module('opentelemetry.exporter.otlp.json.file')
        return sys.executable
    except ImportError:
        pass
    tag = f'lens-auto-oracle-{os.geteuid()}-{sys.version_info[0]}.{sys.version_info[1]}'
    home = Path(tempfile.gettempdir(), tag)
    python = home / 'bin' / 'python'
    if not (home / 'complete').exists():
        venv.create(home, with_pip=True, clear=True)
        done = subprocess.run([str(python), '-m', 'pip', 'install', '-q', ORACLE], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f'the official exporter cannot be installed here: {done.stderr.strip()[-200:]}')
        (home / 'complete').touch()
    return str(python)
