# SPDX-License-Identifier: Apache-2.0
"""The disk of the run folder is most likely the one of the program's checkpoints: the last tenth of it is not ours."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lens_auto.collect import runfile, store
from lens_auto.collect.look import Look
from lens_auto.collect.replay import replay
from lens_auto.record import journal
from tests.unit.collect.journals import MS, Lab, plain, spans

PLAIN = Look(width=200, unicode=False)


def record(lab: Lab, count: int = 50) -> None:
    journal = lab.journal()
    for number in range(1, count + 1):
        journal.now += MS
        journal.end_span(number, 'rl.step')


def steps(lab: Lab) -> list[int]:
    return sorted(int(span['spanId'], 16) for span in spans(lab.folder) if span['name'] == 'rl.step')


def disk(free: Callable[[], float]) -> Callable[[str], Any]:
    """A `statvfs` of a disk of 1 TB."""
    return lambda _: SimpleNamespace(f_blocks=1 << 28, f_bavail=int(free() * (1 << 28)), f_frsize=4096)


def test_the_share_is_that_of_the_journals() -> None:
    assert store.SHARE == journal.DISK_SHARE


def test_a_disk_over_its_share_keeps_all_in_the_journals_and_says_so(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    record(lab)
    with monkeypatch.context() as patched:
        patched.setattr(os, 'statvfs', disk(lambda: 0.0999))
        reader = lab.collector()
        reader.start()
        totals = reader.finish(4.0, exit_code=0)
        text = reader.summary(PLAIN)
        assert replay(lab.folder.path, lab.environ) == 1
    assert 'make room, then --replay' in capfd.readouterr().err
    assert (steps(lab), totals.complete, totals.faults) == ([], False, {})
    (part,) = runfile.load(lab.folder.path)
    assert part.counts['no_room'] and not part.complete
    assert 'the file system of the run folder was 90 % full' in text
    assert 'what is not in the folder waits in the journals; make room, then --replay' in text

    assert replay(lab.folder.path, lab.environ) == 0
    assert steps(lab) == list(range(1, 51))
    assert 'waits in the journals' not in capfd.readouterr().err


def test_a_disk_that_had_no_room_for_a_while_costs_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([0.05, 0.05])
    monkeypatch.setattr(os, 'statvfs', disk(lambda: next(looks, 0.5)))
    record(lab)
    reader = lab.collector()
    monkeypatch.setattr(reader, '_retry_after', 0.01)
    monkeypatch.setattr(reader, '_flush_every', 0.0)
    reader.start()
    while not steps(lab):
        pass
    totals = reader.finish(8.0, exit_code=0)
    assert totals.complete and totals.counts['no_room'] == 2 and not totals.notes
    assert steps(lab) == list(range(1, 51))


def test_nobody_waits_at_the_end_for_a_disk_over_its_share(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, 'statvfs', disk(lambda: 0.05))
    record(lab)
    reader = lab.collector()
    monkeypatch.setattr(reader, '_retry_after', 60.0)
    monkeypatch.setattr(reader, '_flush_every', 0.0)
    reader.start()
    while not reader.no_room:
        pass
    begun = time.monotonic()
    assert not reader.finish(60.0, exit_code=0).complete
    assert time.monotonic() - begun < 30  # of the 36 seconds that reading may take


def test_journals_are_not_copied_to_a_disk_over_its_share(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EXDEV, 'Invalid cross-device link')

    def never(*_: Any) -> None:
        raise AssertionError('copied')

    record(lab)
    monkeypatch.setattr(os, 'statvfs', disk(lambda: 0.05))
    monkeypatch.setattr(shutil, 'copyfile', never)
    reader = lab.collector()
    reader.start()
    rename = os.rename
    monkeypatch.setattr(os, 'rename', lambda old, new: refuse() if old == lab.spool else rename(old, new))
    totals = reader.finish(3.0, exit_code=0)
    assert totals.spools == [lab.spool] and os.path.isdir(lab.spool)
    assert not totals.faults


def test_a_run_folder_at_its_limit_takes_the_end_of_the_run_and_counts_the_rest(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, 'LIMIT', 4096)
    record(lab)
    lab.journal().point('rl.reward', 1.0)
    reader = lab.collector()
    reader.start()
    totals = reader.finish(5.0, exit_code=3)
    text = reader.summary(PLAIN)

    assert [span['name'] for span in spans(lab.folder)] == ['lens.run']
    assert plain(spans(lab.folder)[0]['attributes'])['process.exit.code'] == 3
    assert totals.dropped == {store.FULL: 51}
    assert f'51 records lost: {store.FULL}' in text
    assert sum(path.stat().st_size for path in Path(lab.folder.path).glob('*.jsonl')) < 4096
    (part,) = runfile.load(lab.folder.path)
    assert part.dropped == {store.FULL: 51}


def test_what_a_full_folder_dropped_is_known_after_a_restart(lab: Lab) -> None:
    first = store.Store(lab.folder.path, 'node-1', False)
    first.dropped = 7
    again = store.Store(lab.folder.path, 'node-1', False)
    again.recover(first.state())
    assert again.dropped == 7


def test_chunks_stay_in_the_outbox_of_a_disk_over_its_share(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    out = store.Store(lab.folder.path, 'node-1', True)
    out.put(store.TRACES, '{"resource":{}}', 3)
    out.flush()
    out.commit()
    with monkeypatch.context() as patched:
        patched.setattr(os, 'statvfs', disk(lambda: 0.05))
        assert out.leave() == {'spans': 3}
    assert len(store.chunks(lab.folder.path)) == 1 and not out.left
    assert out.leave() == {'spans': 3}
    assert len(out.left) == 1
