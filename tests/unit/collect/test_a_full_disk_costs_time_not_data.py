# SPDX-License-Identifier: Apache-2.0
"""When the disk is full the collector waits and tries again; when something in it breaks, the launcher hears a note."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from lens_auto.collect import checkpoint, collector, runfile, store
from lens_auto.collect.replay import replay
from lens_auto.record.format import FORMAT
from tests.unit.collect.journals import MS, Lab, spans


def record(lab: Lab, count: int = 50) -> None:
    journal = lab.journal()
    for number in range(1, count + 1):
        journal.now += MS
        journal.end_span(number, 'rl.step')


def steps(lab: Lab) -> list[int]:
    return sorted(int(span['spanId'], 16) for span in spans(lab.folder) if span['name'] == 'rl.step')


@pytest.mark.parametrize('where', ['output', 'checkpoint'])
def test_a_disk_that_is_full_for_a_while(lab: Lab, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    failures = [3]

    def refuse(work: Any, partly: bool) -> Any:
        def write(path: str, data: Any, *rest: Any) -> Any:
            if failures[0]:
                failures[0] -= 1
                if partly:
                    work(path, data[: len(data) // 2], *rest)
                raise OSError(errno.ENOSPC, 'No space left on device')
            return work(path, data, *rest)

        return write

    record(lab)
    if where == 'output':
        monkeypatch.setattr(store, 'write_whole', refuse(store.write_whole, partly=True))
    else:
        monkeypatch.setattr(checkpoint, 'save', refuse(checkpoint.save, partly=False))
    reader = lab.collector()
    monkeypatch.setattr(reader, '_retry_after', 0.01)
    reader.start()
    totals = reader.finish(8.0, exit_code=0)
    assert not failures[0]
    assert steps(lab) == list(range(1, 51))
    assert totals.complete
    assert [what for what in totals.faults if 'OSError in collector flush' in what]


def test_a_disk_that_stays_full_leaves_all_to_a_replay(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, 'No space left on device')

    record(lab)
    with monkeypatch.context() as patched:
        patched.setattr(store, 'write_whole', refuse)
        reader = lab.collector()
        reader.start()
        assert not reader.finish(2.0, exit_code=0).complete
    assert steps(lab) == []
    assert replay(lab.folder.path, lab.environ) == 0
    assert steps(lab) == list(range(1, 51))
    assert not os.path.exists(lab.spool)


def test_a_backlog_is_left_to_a_replay_when_the_time_is_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    record(lab)
    with monkeypatch.context() as patched:
        patched.setattr(collector.Reading, '_read', lambda self: True)  # there is always more
        reader = lab.collector()
        reader.start()
        totals = reader.finish(1.0, exit_code=7)
    assert not totals.complete
    assert os.listdir(os.path.join(lab.folder.path, 'journal')) == [os.path.basename(lab.spool)]
    assert not os.path.exists(lab.spool)
    assert replay(lab.folder.path, lab.environ) == 0
    assert steps(lab) == list(range(1, 51))
    assert not os.path.exists(os.path.join(lab.folder.path, 'journal'))
    (whole,) = runfile.load(lab.folder.path)
    assert whole.complete and whole.exit_code == 7


def test_a_record_without_sense_does_not_stop_those_behind_it(lab: Lab) -> None:
    journal = lab.journal()
    journal.put((2, 'not', 'a', 'span'))
    journal.put((99, 'of a later version'))
    journal.end_span(1, 'rl.step')
    reader = lab.collector()
    reader.start()
    totals = reader.finish(5.0)
    assert steps(lab) == [1]
    assert totals.counts['damaged'] == totals.counts['unknown'] == 1
    assert totals.complete


def test_a_torn_tail_is_the_end_and_foreign_journals_are_left_alone(lab: Lab) -> None:
    journal = lab.journal()
    journal.end_span(1, 'rl.step')
    with open(journal.path, 'r+b') as file:
        file.seek(journal.end)
        file.write((500).to_bytes(4, 'little') + b'\xff' * 500)
    foreign = lab.journal()
    foreign.put((0, FORMAT + 1, {}, 0, 0, foreign.boot, foreign.pid, 1, 0, {}))
    foreign.end_span(2, 'rl.step')
    reader = lab.collector()
    reader.start()
    totals = reader.finish(5.0)
    assert steps(lab) == [1]
    assert totals.counts['foreign'] == 1
    assert not totals.complete
    kept = os.listdir(os.path.join(lab.folder.path, 'journal', os.path.basename(lab.spool)))
    assert os.path.basename(foreign.path) in kept


def test_a_collector_that_breaks_is_a_note_and_the_journals_stay(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    record(lab)
    with monkeypatch.context() as patched:
        patched.setattr(collector.Reading, 'round', lambda self: 1 / 0)
        reader = lab.collector()
        reader.start()
        totals = reader.finish(2.0, exit_code=0)
    assert 'ZeroDivisionError in collector step' in next(iter(totals.faults))
    assert replay(lab.folder.path, lab.environ) == 0
    assert steps(lab) == list(range(1, 51))
