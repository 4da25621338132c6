# SPDX-License-Identifier: Apache-2.0
"""A backend sees a span when it has ended: one that is open for over a minute is told by a log record, once."""

from __future__ import annotations

import time
from typing import Any

import pytest

from lens_auto.collect import collector as collecting
from tests.helpers.otlp_receiver import Receiver
from tests.unit.collect.journals import MS, SECOND, Lab, Sleeper, plain


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, '_RUN_FILE', 0.05)


def run(lab: Lab, seen: Any, **values: Any) -> None:
    """A process with an old span, one inside it, and a young one; until something is seen or two seconds are over."""
    sleeper = Sleeper()
    journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
    journal.now -= 70 * SECOND
    journal.open(1, 'rl.step', items={'rl.iteration': 3}, trace=9)
    journal.now += SECOND
    journal.open(2, 'rollout', parent=1, trace=9)
    journal.now = time.monotonic_ns() - MS
    journal.open(3, 'reward', parent=2, trace=9)
    collector = lab.collector(values)
    collector.start()
    until = time.monotonic() + (10 if seen is not None else 1)
    while not (seen and seen()) and time.monotonic() < until:
        time.sleep(0.02)
    assert seen is None or seen()
    time.sleep(0.3)  # it is told once
    sleeper.end()
    collector.finish(8.0, exit_code=0)


def test_a_backend_is_told_while_they_are_open(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as backend:
        for name, value in backend.environment('grpc').items():
            monkeypatch.setenv(name, value)
            lab.environ[name] = value

        def told() -> list[Any]:
            return [one for group in backend.logs for scope in group.scope_logs for one in scope.log_records]

        run(lab, lambda: len(told()) == 2 and not backend.spans(), exporter='otlp', logs_enabled=True)
        step, rollout = told()
    assert step.body.string_value == 'open for over a minute: rl.step'
    assert (step.trace_id, step.span_id) == ((9).to_bytes(16, 'big'), (1).to_bytes(8, 'big'))
    items = {item.key: item.value for item in step.attributes}
    assert items['rl.iteration'].int_value == 3 and items['lens.span.open'].bool_value
    assert items['lens.span.name'].string_value == 'rl.step'
    assert rollout.span_id == (2).to_bytes(8, 'big') and rollout.severity_text == 'INFO'
    # They come when they have ended, as ever.
    assert {'rl.step', 'rollout', 'reward'} <= {span.name for span in backend.spans()}


def test_the_folder_holds_the_records_as_well(lab: Lab) -> None:
    run(lab, lambda: lab.lines('logs'), logs_enabled=True)
    found = [one for line in lab.lines('logs') for one in line['resourceLogs'][0]['scopeLogs'][0]['logRecords']]
    assert [plain(one['attributes'])['lens.span.name'] for one in found] == ['rl.step', 'rollout']


def test_without_logs_there_are_none(lab: Lab) -> None:
    run(lab, None, logs_enabled=False)
    assert not lab.lines('logs')
    assert set(lab.spans()) == {'rl.step', 'rollout', 'reward'}
