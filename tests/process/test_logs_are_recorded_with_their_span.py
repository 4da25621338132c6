# SPDX-License-Identifier: Apache-2.0
"""Records of `logging`: with their span, without a handler of ours, at a rate, and with their texts only if asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lens_auto.record import format as form
from tests.helpers.otlp_receiver import Receiver
from tests.helpers.program import Outcome, Program, every_python, function, python
from tests.helpers.run import Place

WORK = """
import logging
logger = logging.getLogger('work')
def outer(f): return f()
def step(what='step'):
    logger.info('prompt: %s', 'a poem')
    return what
"""
MAIN = """
import logging, sys
import work
logging.basicConfig(level=logging.DEBUG, format='%(levelname)s %(name)s %(funcName)s:%(lineno)d %(message)s')
print(len(logging.getLogger().handlers), logging.getLogger('work').handlers)
def main():
    logging.warning('in %d', 1)
    work.step()
    try: 1 / 0
    except ZeroDivisionError: logging.exception('failed')
work.outer(main)
logging.getLogger('quiet').setLevel(logging.ERROR); logging.getLogger('quiet').warning('below the level')
logging.getLogger('filtered').addFilter(lambda record: False); logging.getLogger('filtered').error('filtered')
logging.getLogger('off').propagate = False; logging.getLogger('off').critical('nobody handles it')
logging.log(5, 'below debug')
logging.warning('%d does not fit', 'x')
"""
RULES = [function('outer', 'work:outer'), function('step', 'work:step')]
ON = {'LENS_LOGS_ENABLED': '1'}


def logs(outcome: Outcome) -> list[tuple[Any, ...]]:
    return [record for record in outcome.journal.records if record[0] == form.LOG]


@every_python
def test_each_has_its_span_severity_and_place(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'work.py': WORK, 'main.py': MAIN})
    traced = program.traced(RULES, python=python(version), **ON)
    assert traced.visible() == program.plain(python=python(version)).visible()
    assert traced.stdout == '1 []\n'  # basicConfig found a root logger without handlers
    spans = {span.id: span.name for span in traced.journal.spans}
    found = [
        (severity, body, a['log.logger'], a['code.function.name'], a.get('exception.type'), spans.get(span))
        for _, _, severity, body, a, _, span in logs(traced)
    ]
    assert found == [
        (13, '', 'root', 'main', None, 'outer'),
        (9, '', 'work', 'step', None, 'step'),
        (17, '', 'root', 'main', 'ZeroDivisionError', 'outer'),
        (21, '', 'off', '<module>', None, None),
        (13, '', 'root', '<module>', None, None),
    ]
    assert b'poem' not in b''.join(path.read_bytes() for path in (tmp_path / 'spool').iterdir())
    assert traced.journal.reports('fault') == []


def test_texts_only_with_the_setting(tmp_path: Path) -> None:
    program = Program(tmp_path, {'work.py': WORK, 'main.py': MAIN})
    traced = program.traced(RULES, LENS_LOG_BODIES='1', **ON)
    texts = [record[3] for record in logs(traced)]
    assert texts == ['in 1', 'prompt: a poem', 'failed', 'nobody handles it', '%d does not fit']


def test_off_leaves_logging_alone(tmp_path: Path) -> None:
    source = 'import work, logging\nwork.step()\nprint(logging.Logger.callHandlers.__code__.co_filename[-11:])\n'
    traced = Program(tmp_path, {'work.py': WORK, 'main.py': source}).traced(RULES)
    assert not logs(traced) and traced.stdout == '__init__.py\n'


def test_a_flood_is_cut_counted_and_hides_no_warning(tmp_path: Path) -> None:
    source = """
import logging, work
logging.getLogger().setLevel(logging.DEBUG); logging.getLogger().addHandler(logging.NullHandler())
for n in range(5000): logging.debug(n)
logging.error('seen')
work.step()
"""
    traced = Program(tmp_path, {'work.py': WORK, 'main.py': source}).traced(RULES, **ON)
    severities = [record[2] for record in logs(traced)]
    assert severities.count(17) == 1 and 1000 <= severities.count(5) < 4000
    [last] = traced.journal.reports('dropped')[-1:]
    assert last['reason'] == 'log records beyond the rate'
    assert last['records'] + len(severities) == 5002


def test_a_span_of_the_programs_own_opentelemetry_counts(tmp_path: Path) -> None:
    pytest.importorskip('opentelemetry.trace')
    source = """
import logging, work
from opentelemetry import trace
def inside():
    with trace.get_tracer('mine').start_as_current_span('manual'):
        logging.warning('here')
work.outer(inside)
"""
    traced = Program(tmp_path, {'work.py': WORK, 'main.py': source}).traced(RULES, **ON)
    [record] = logs(traced)
    assert [span.name for span in traced.journal.spans if span.id == record[6]] == ['manual']


RULE_FILE = 'framework: mine\nrules:\n- {kind: function, target: "work:outer", group: job, name: outer}\n'
SECRET = MAIN + "logging.warning('token sk-abcdefghijklmnopqrstuvwxyz0123456789')\n"


def _records(lines: list[str]) -> list[dict[str, Any]]:
    groups = [group for line in lines for group in json.loads(line)['resourceLogs']]
    return [one for group in groups for scope in group['scopeLogs'] for one in scope['logRecords']]


def test_the_run_folder_has_them(tmp_path: Path) -> None:
    place = Place(tmp_path).write({'work.py': WORK, 'main.py': SECRET, 'lens.yaml': RULE_FILE})
    run = place.record('--set', 'logs_enabled=true', '--set', 'log_bodies=true', 'python', 'main.py')
    found = _records([line for path in run.path.glob('logs*.jsonl') for line in path.read_text().splitlines()])
    texts = [one['body']['stringValue'] for one in found]
    assert texts[:2] == ['in 1', 'prompt: a poem'] and 'sk-abc' not in str(found)
    assert [one['severityText'] for one in found[:3]] == ['WARN', 'INFO', 'ERROR']
    outer = run.only('outer')
    assert (found[0]['traceId'], found[0]['spanId']) == (outer.trace, outer.id)


def test_a_program_that_no_rule_reaches_has_its_logs_recorded(tmp_path: Path) -> None:
    place = Place(tmp_path).write({'main.py': "import logging; logging.error('alone')\n", 'lens.yaml': RULE_FILE})
    run = place.record('--set', 'logs_enabled=true', 'python', 'main.py')
    lines = [line for path in run.path.glob('logs*.jsonl') for line in path.read_text().splitlines()]
    assert [one['severityText'] for one in _records(lines)] == ['ERROR']


@pytest.mark.parametrize('protocol', ['grpc', 'http/protobuf'])
def test_a_backend_gets_them(tmp_path: Path, protocol: str) -> None:
    place = Place(tmp_path).write({'work.py': WORK, 'main.py': MAIN, 'lens.yaml': RULE_FILE})
    with Receiver() as backend:
        settings = ('--set', 'logs_enabled=true', '--set', 'log_bodies=true', '--set', 'span_groups=all')
        done = place.lens('--no-summary', *settings, 'python', 'main.py', env=backend.environment(protocol))
        assert done.code == 0, done.stderr
        place.lens('--replay', str(place.run.path), env=backend.environment(protocol))  # a slow machine
        records = [
            (one.severity_text, one.body.string_value, one.span_id)
            for group in backend.logs
            for scope in group.scope_logs
            for one in scope.log_records
        ]
        [outer] = [span for span in backend.spans() if span.name == 'outer']
    assert records[0] == ('WARN', 'in 1', outer.span_id)
    texts = [text for _, text, _ in records]
    assert texts == ['in 1', 'prompt: a poem', 'failed', 'nobody handles it', '%d does not fit']
