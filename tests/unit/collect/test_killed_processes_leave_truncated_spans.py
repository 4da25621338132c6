# SPDX-License-Identifier: Apache-2.0
"""A span whose end never came is told with what is known: that it was cut short, and when."""

from __future__ import annotations

import os
import time
from typing import Any

from lens_auto.collect import runfile
from lens_auto.collect.replay import replay
from tests.unit.collect.journals import MS, SECOND, Lab, Sleeper, plain, spans


def wait_until(what: Any, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, 'it never happened'
        time.sleep(0.01)


def test_an_open_span_ends_when_its_process_is_seen_dead(lab: Lab) -> None:
    victim = Sleeper()
    journal = lab.journal(pid=victim.pid, start=victim.start)
    journal.open(1, 'rl.step', items={'rl.iteration': 3})
    journal.end_span(2, 'rollout', parent=1)
    collector = lab.collector()
    collector.start()
    wait_until(lambda: collector.reading.members)
    before = time.time_ns()
    victim.end()
    totals = collector.finish(5.0, signal=9)

    cut = lab.spans()['rl.step']
    assert cut['status'] == {'message': 'the process ended before the span did', 'code': 2}
    assert plain(cut['attributes']) == {'rl.iteration': 3, 'lens.truncated': True}
    assert before <= int(cut['endTimeUnixNano']) <= time.time_ns()
    assert lab.spans()['rollout']['status'] == {}
    assert totals.counts['truncated'] == 1
    assert totals.complete


def test_a_span_of_a_process_nobody_saw_die_ends_with_its_last_record(lab: Lab) -> None:
    journal = lab.journal()
    journal.open(1, 'rl.step')
    journal.now += 5 * SECOND
    journal.end_span(2, 'rollout', parent=1)
    assert replay(lab.folder.path, lab.environ) == 0

    cut = lab.spans()['rl.step']
    assert plain(cut['attributes']) == {'lens.truncated': True, 'lens.end_estimated': True}
    assert int(cut['endTimeUnixNano']) - int(cut['startTimeUnixNano']) == 5 * SECOND


def test_a_process_that_goes_on_keeps_its_spans_open_until_it_ends(lab: Lab) -> None:
    sleeper = Sleeper()
    journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
    journal.open(1, 'rl.step')
    collector = lab.collector()
    collector.start()
    totals = collector.finish(2.0, exit_code=0)
    assert not totals.complete
    assert '1 process is still running' in totals.notes[0]
    assert replay(lab.folder.path, lab.environ) == 1
    assert 'rl.step' not in lab.spans()

    # Later: it has ended its span and itself.
    journal.now += SECOND
    journal.end_span(1, 'rl.step', SECOND)
    sleeper.end()
    before = len(spans(lab.folder))
    assert replay(lab.folder.path, lab.environ) == 0
    assert plain(lab.spans()['rl.step'].get('attributes')) == {}
    assert len(spans(lab.folder)) == before + 1
    assert not os.path.exists(lab.spool)
    (whole,) = runfile.load(lab.folder.path)
    assert whole.complete and not whole.notes


def test_the_open_phase_of_a_killed_step_is_not_idle(lab: Lab) -> None:
    victim = Sleeper()
    journal = lab.journal(pid=victim.pid, start=victim.start)
    journal.open(1, 'rl.step', items={'lens.group': 'step'})
    journal.open(2, 'rollout', parent=1)
    collector = lab.collector()
    collector.start()
    wait_until(lambda: collector.reading.members)
    victim.end()
    totals = collector.finish(5.0, signal=9)

    (step,) = [row for row in totals.spans if row.path[-1] == 'rl.step']
    assert step.watched == step.total > 0
    assert step.idle == 0


def test_no_span_ends_after_the_root_of_the_run(lab: Lab) -> None:
    journal = lab.journal()
    journal.open(1, 'rl.job', parent=lab.run.root_span_id)
    journal.now += MS
    journal.end_span(2, 'rollout', parent=1)
    collector = lab.collector()
    collector.start()
    collector.finish(5.0, exit_code=0)
    root = next(span for span in spans(lab.folder) if span['name'] == 'lens.run')
    assert max(int(span['endTimeUnixNano']) for span in spans(lab.folder)) == int(root['endTimeUnixNano'])
