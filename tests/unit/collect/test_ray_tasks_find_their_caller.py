# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

from lens_auto.collect import tasks
from tests.unit.collect.journals import MS, Journal, Lab, Sleeper, metrics, plain, span_of, spans, trace_of

TASK, OTHER = b'task one', b'task two'
RUN = trace_of(99)
STEP = f'{7:032x}'


def below(first: int) -> bytes:
    """The trace field of all that descends from a task's first span."""
    return RUN + span_of(first)


def driver(lab: Lab, task: bytes = TASK) -> Journal:
    """A step that calls a task and ends."""
    journal = lab.journal()
    journal.open(1, 'step', items={'lens.group': 'step'})
    journal.called(task, 1)
    journal.now += 100 * MS
    journal.end_span(1, 'step', duration=100 * MS)
    return journal


def worker(lab: Lab, task: bytes = TASK, first: int = 10, attempt: int = 0, **more: Any) -> Journal:
    """A task whose first span has a child."""
    journal = lab.journal(told={'lens.role': 'process'}, **more)
    root = lab.run.root_span_id
    journal.task(first, task, attempt)
    journal.open(first, f'task {first}', parent=root, trace=below(first), items={'a': 1})
    journal.now += 20 * MS
    journal.end_span(first + 1, f'child {first}', parent=first, trace=below(first))
    journal.end_span(first, f'task {first}', parent=root, trace=below(first), duration=20 * MS)
    return journal


def place(span: dict[str, Any]) -> tuple[str, str]:
    return span['traceId'], span.get('parentSpanId', '')


def joined(lab: Lab, first: int = 10, parent: int = 1) -> bool:
    found = lab.spans()
    return place(found[f'task {first}']) == (STEP, f'{parent:016x}') and place(found[f'child {first}']) == (
        STEP,
        f'{first:016x}',
    )


@pytest.mark.parametrize('order', [(driver, worker), (worker, driver)])
def test_a_task_hangs_under_the_span_that_called_it_whoever_is_read_first(order: Any, lab: Lab) -> None:
    for write in order:
        write(lab)
    lab.collector(live=False).drain()
    assert joined(lab)
    assert plain(lab.spans()['task 10']['attributes']) == {'a': 1}


def test_the_summary_has_the_worker_under_the_step(lab: Lab) -> None:
    worker(lab)
    driver(lab)
    totals = lab.collector(live=False).drain()
    assert [row.path for row in totals.spans] == [['step'], ['step', 'task 10'], ['step', 'task 10', 'child 10']]


def test_a_caller_that_never_shows_up_leaves_the_task_in_the_runs_trace(lab: Lab) -> None:
    worker(lab)
    lab.collector(live=False).drain()
    found = lab.spans()
    assert place(found['task 10']) == (RUN.hex(), lab.run.root_span_id.hex())
    assert place(found['child 10']) == (RUN.hex(), f'{10:016x}')


def test_a_task_waits_for_its_caller_only_so_long_and_is_then_linked_to_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = Sleeper()
    try:
        journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
        root = lab.run.root_span_id
        journal.task(10, TASK)
        journal.open(10, 'task', parent=root, trace=below(10))
        collector = lab.collector()
        collector.recover()
        while collector.reading.round():
            pass
        (member,) = collector.reading.members.values()
        assert not member.opened
        monkeypatch.setattr(tasks, 'PATIENCE', 0.0)
        while collector.reading.round():
            pass
        assert list(member.opened) == [span_of(10)]
        journal.called(TASK, 1)
        journal.now += MS
        journal.end_span(10, 'task', parent=root, trace=below(10))
    finally:
        sleeper.end()
    collector.drain()
    (span,) = [span for span in spans(lab.folder) if span['name'] == 'task']
    assert place(span) == (RUN.hex(), root.hex())
    (link,) = span['links']
    assert (link['traceId'], link['spanId']) == (STEP, f'{1:016x}')
    assert plain(link['attributes']) == {'lens.link': 'caller'}


@pytest.mark.parametrize('turned', [False, True])
def test_a_task_within_a_task_has_the_trace_of_the_outermost_caller(turned: bool, lab: Lab) -> None:
    def outer() -> None:
        journal = worker(lab)
        journal.called(OTHER, 11, below(10))

    writers = [lambda: driver(lab), outer, lambda: worker(lab, OTHER, 20)]
    for write in reversed(writers) if turned else writers:
        write()
    lab.collector(live=False).drain()
    assert joined(lab) and joined(lab, 20, 11)


def test_a_task_within_a_task_whose_caller_is_unknown_still_hangs_under_it(lab: Lab) -> None:
    worker(lab, OTHER, 20)
    worker(lab).called(OTHER, 11, below(10))
    lab.collector(live=False).drain()
    found = lab.spans()
    assert place(found['task 20']) == (RUN.hex(), f'{11:016x}')
    assert place(found['task 10']) == (RUN.hex(), lab.run.root_span_id.hex())


def test_an_attempt_that_the_worker_knows_of_is_kept(lab: Lab) -> None:
    driver(lab)
    worker(lab, attempt=2)
    lab.collector(live=False).drain()
    assert plain(lab.spans()['task 10']['attributes'])[tasks.ATTEMPT] == 2


def test_a_worker_that_was_killed_leaves_its_task_under_the_caller(lab: Lab) -> None:
    journal = lab.journal()
    journal.task(10, TASK)
    journal.open(10, 'task', parent=lab.run.root_span_id, trace=below(10), items={'a': 1})
    driver(lab)
    lab.collector(live=False).drain()
    span = lab.spans()['task']
    assert place(span) == (STEP, f'{1:016x}')
    found = plain(span['attributes'])
    assert found['a'] == 1 and found['lens.truncated'] is True


def test_what_waits_is_in_the_checkpoint(lab: Lab) -> None:
    worker(lab)
    first = lab.collector()
    first.recover()
    first.reading.round()
    assert first.flush()
    driver(lab)
    lab.collector(live=False).drain()
    assert joined(lab)
    assert len([span for span in spans(lab.folder) if span['name'] != 'lens.run']) == 3


def test_what_was_decided_is_in_the_checkpoint(lab: Lab) -> None:
    sleeper = Sleeper()
    try:
        driver(lab)
        journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
        journal.task(10, TASK)
        journal.open(10, 'task 10', parent=lab.run.root_span_id, trace=below(10))
        first = lab.collector()
        first.recover()
        while first.reading.round():
            pass
        assert first.flush()
        journal.now += 20 * MS
        journal.end_span(11, 'child 10', parent=10, trace=below(10))
        journal.end_span(10, 'task 10', parent=lab.run.root_span_id, trace=below(10))
    finally:
        sleeper.end()
    lab.collector(live=False).drain()
    assert joined(lab)


def test_descendants_in_another_process_are_in_the_same_trace(lab: Lab) -> None:
    helper = lab.journal()
    helper.now += MS
    helper.end_span(30, 'helper', parent=11, trace=below(10))
    worker(lab)
    driver(lab)
    lab.collector(live=False).drain()
    assert joined(lab)
    assert place(lab.spans()['helper']) == (STEP, f'{11:016x}')


def test_points_and_logs_name_the_joined_trace(lab: Lab) -> None:
    journal = worker(lab)
    journal.point('loss', 0.5, span=(below(10), 11))
    journal.put((4, journal.now, 17, 'it went wrong', None, below(10), span_of(11)))
    driver(lab)
    lab.collector(live=False).drain()
    (metric,) = [metric for metric in metrics(lab.folder) if metric['name'] == 'loss']
    assert metric['gauge']['dataPoints'][0]['exemplars'][0]['traceId'] == STEP
    (log,) = lab.lines('logs')[0]['resourceLogs'][0]['scopeLogs'][0]['logRecords']
    assert (log['traceId'], log['spanId']) == (STEP, f'{11:016x}')


def test_a_root_inside_a_task_links_to_where_the_task_was_put(lab: Lab) -> None:
    journal = lab.journal()
    root = lab.run.root_span_id
    journal.called(TASK, 1)
    links = ((below(10), 10, {'lens.link': 'enclosing'}),)
    journal.task(10, TASK)
    journal.open(10, 'task', parent=root, trace=below(10))
    journal.open(12, 'inner step', trace=5, links=links)
    journal.now += MS
    journal.end_span(12, 'inner step', trace=5, links=links)
    lab.collector(live=False).drain()
    (link,) = lab.spans()['inner step']['links']
    assert (link['traceId'], link['spanId']) == (STEP, f'{10:016x}')


def test_nothing_that_waits_is_lost_when_the_run_ends(lab: Lab) -> None:
    sleeper = Sleeper()
    try:
        worker(lab, pid=sleeper.pid, start=sleeper.start)
        collector = lab.collector()
        collector.start()
        collector.finish(5.0, exit_code=0)
    finally:
        sleeper.end()
    assert {'task 10', 'child 10'} <= set(lab.spans())
