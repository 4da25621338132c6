# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at any moment, again and again: every span and point is in the folder once, the sums are right."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from lens_auto.collect.collector import own
from lens_auto.collect.replay import replay
from tests.unit.collect.journals import MS, Lab, Sleeper, metrics, spans

# The collector in a process of its own, as the launcher has it; the flush interval is shortened so that a kill finds
# it at work on files and checkpoints rather than asleep.
COLLECT = """
import sys, time
from lens_auto.collect import collector as module
from lens_auto.collect.folder import RunFolder
from lens_auto.collect.replay import _run, read_key
module._FLUSH, module._FLUSH_SHARE = 0.005, 1
module._FAST = 0.001
folder, spool, exporter = sys.argv[1:]
run = _run(read_key(folder))
run.started_mono_ns = time.monotonic_ns()
run.started_wall_ns = time.time_ns()
reader = module.Collector(spool, RunFolder(folder, True), run, {'service_name': 'trainer', 'exporter': exporter},
                          launcher=('node', 1, 1))
reader.start()
time.sleep(60)
"""

REPLAY = 'import sys; from lens_auto.collect.replay import replay; replay(sys.argv[1], {})'


def collect(lab: Lab, exporter: str = 'file') -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, '-c', COLLECT, lab.folder.path, lab.spool, exporter], cwd=Path.cwd())


@pytest.mark.parametrize('exporter', ['file', 'otlp'])
def test_every_span_once_after_sigkills_of_the_collector(lab: Lab, exporter: str) -> None:
    chance = random.Random(7)
    # Two processes that live as long as the test and roll their segments often.
    sleepers = [Sleeper(), Sleeper()]
    journals = [lab.journal(pid=sleeper.pid, start=sleeper.start) for sleeper in sleepers]
    number = 0
    for _ in range(6):
        victim = collect(lab, exporter)
        until = time.monotonic() + chance.uniform(0.2, 0.6)
        while time.monotonic() < until:
            for journal in journals:
                number += 1
                journal.now += MS
                journal.open(number, 'rl.step')
                journal.end_span(number, 'rl.step')
                journal.point('rl.tokens', 1, 'counter')
                if journal.end > 20_000:
                    journal.roll(32_000)
            time.sleep(0.0005)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    for sleeper in sleepers:
        sleeper.end()
    assert number > 100
    for _ in range(4):
        victim = subprocess.Popen([sys.executable, '-c', REPLAY, lab.folder.path], stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.1, 0.3))
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    assert replay(lab.folder.path, lab.environ) == 0

    assert [span['name'] for span in spans(lab.folder)].count('lens.run') == 1
    told = Counter(int(span['spanId'], 16) for span in spans(lab.folder) if span['name'] == 'rl.step')
    assert sorted(told) == list(range(1, number + 1))
    assert set(told.values()) == {1}
    assert not os.path.exists(lab.spool)
    sums: dict[str, int] = {}
    for metric in metrics(lab.folder):
        for point in metric['sum']['dataPoints']:
            sums[point['startTimeUnixNano']] = max(sums.get(point['startTimeUnixNano'], 0), int(point['asInt']))
    assert sum(sums.values()) == number


def test_one_spool_has_one_collector(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.journal().end_span(1, 'rl.step')
    lock = own(lab.spool)
    try:
        assert replay(lab.folder.path, lab.environ) == 1
    finally:
        os.close(lock)
    assert 'still at work' in capsys.readouterr().err
    assert replay(lab.folder.path, lab.environ) == 0
    assert list(lab.spans()) == ['rl.step']
