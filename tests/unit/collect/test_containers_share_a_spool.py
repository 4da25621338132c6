# SPDX-License-Identifier: Apache-2.0
"""A process in a PID namespace or on a boot of its own: its number says nothing here about whether it lives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lens_auto.collect.replay import replay
from lens_auto.record import process
from tests.unit.collect.journals import SECOND, Lab, plain

REPOSITORY = Path(__file__).parents[3]
ELSEWHERE: list[dict[str, Any]] = [
    {'flags': {'pidns': process.namespace() + 1}},
    {'boot': 'another kernel'},
    {'flags': {'pidns': process.namespace() + 1}, 'host': 'container-7'},
]


@pytest.mark.parametrize('where', ELSEWHERE)
def test_it_is_alive_while_the_run_lasts_and_cut_short_at_its_end(lab: Lab, where: dict[str, Any]) -> None:
    reader = lab.collector()
    reader.start()
    journal = lab.journal(**where)
    journal.now += SECOND
    journal.open(1, 'rollout')
    time.sleep(0.3)  # rounds in which a process with that number is not there
    journal.now += SECOND
    journal.end_span(2, 'reward', parent=1)
    totals = reader.finish(5.0)

    assert totals.complete
    rollout, reward = lab.spans()['rollout'], lab.spans()['reward']
    said = plain(rollout['attributes'])
    assert said['lens.truncated'] and said['lens.end_estimated']
    # Its end is the last thing that was heard of it.
    assert rollout['endTimeUnixNano'] == reward['endTimeUnixNano']


def test_a_replay_does_not_wait_for_it(lab: Lab) -> None:
    lab.collector().save()
    journal = lab.journal(flags={'pidns': process.namespace() + 1})
    journal.open(1, 'rollout')
    assert replay(lab.folder.path, lab.environ) == 0
    assert plain(lab.spans()['rollout']['attributes'])['lens.end_estimated']


def test_a_number_of_this_namespace_is_believed(lab: Lab) -> None:
    reader = lab.collector()
    reader.start()
    journal = lab.journal(flags={'pidns': process.namespace()}, host='renamed')
    journal.open(1, 'rollout')
    deadline = time.monotonic() + 10
    while not reader.totals.counts.get('truncated') and time.monotonic() < deadline:
        time.sleep(0.02)
        reader.totals.counts = dict(reader.intake.counts)
    reader.finish(5.0)
    said = plain(lab.spans()['rollout']['attributes'])
    assert said['lens.truncated'] and 'lens.end_estimated' not in said


WORK = """
import sys, time
sys.path.insert(0, {repository!r})
from lens_auto.record.recorder import start
recorder = start(dict(LENS_SPOOL={spool!r}, LENS_RUN_ROOT=f'{{1:032x}}-{{1:016x}}'))
class Site: key = 'rule'
for name in ('first', 'second'):
    span = recorder.open(Site, name, 'rule', None, False, True, True)
    time.sleep(0.4)
    recorder.close(span, time.monotonic_ns(), 'rule', 0)
    recorder.detach(span)
"""
UNSHARE = [shutil.which('unshare') or 'unshare', '-pf', '--mount-proc', '--kill-child']


@pytest.mark.skipif(
    subprocess.run([*UNSHARE, 'true'], capture_output=True, check=False).returncode != 0,
    reason='no right to make a PID namespace',
)
def test_all_that_a_container_records_is_there(lab: Lab) -> None:
    reader = lab.collector()
    reader.start()
    program = WORK.format(repository=str(REPOSITORY), spool=lab.spool)
    subprocess.run([*UNSHARE, sys.executable, '-S', '-c', program], check=True, env={'PATH': os.environ['PATH']})
    totals = reader.finish(5.0)
    assert totals.complete and totals.counts == {'spans': 2}
    assert set(lab.spans()) == {'first', 'second'}
