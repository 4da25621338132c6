# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lens_auto.collect.system import sampler
from lens_auto.collect.system.measurement import Measurement
from lens_auto.collect.system.procfs import NodeFigures, ProcessFigures
from lens_auto.record import process
from tests.unit.collect.journals import Lab, Sleeper, lines, plain

SECOND = 1_000_000_000
Shown = dict[str, dict[str, list[float]]]  # role -> metric -> values
TICKS, PAGE = os.sysconf('SC_CLK_TCK'), os.sysconf('SC_PAGE_SIZE')


def by_name(found: Any) -> dict[str, float]:
    """Values by name and label."""
    return {'/'.join((one.name, *(one.labels or {}).values())): one.value for one in found}


class Kernel:
    """A /proc of the test's own, with one process in it."""

    def __init__(self, folder: Path, pid: int, started: int) -> None:
        self.proc = str(folder)
        self.started = started
        self._folder = folder / str(pid)
        self._folder.mkdir()

    def says(self, user: float, system: float, read: int, written: int) -> None:
        fields = ['S', *['0'] * 10, str(int(user * TICKS)), str(int(system * TICKS)), *['0'] * 4, '7', '0']
        fields += [str(self.started), '0', '1000', *['0'] * 20]
        (self._folder / 'stat').write_text(f'1 (a ) name) {" ".join(fields)}\n')
        (self._folder / 'io').write_text(f'rchar: 1\nwchar: 2\nread_bytes: {read}\nwrite_bytes: {written}\n')


def test_what_a_process_used_since_and_what_it_holds(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, os.getpid(), 55)
    figures = ProcessFigures(os.getpid(), 55, kernel.proc)
    kernel.says(2.0, 1.0, 100, 10)
    assert by_name(figures.read(10 * SECOND)) == {
        'process.cpu.time/user': 2.0,
        'process.cpu.time/system': 1.0,
        'process.memory.usage': 1000 * PAGE,
        'process.thread.count': 7,
        'process.disk.io/read': 100,
        'process.disk.io/write': 10,
    }
    kernel.says(2.5, 1.5, 100, 5000)
    cpus = len(os.sched_getaffinity(0))
    assert by_name(figures.read(12 * SECOND)) == {
        'process.cpu.time/user': 0.5,
        'process.cpu.time/system': 0.5,
        'process.cpu.utilization': pytest.approx(0.5 / cpus),
        'process.memory.usage': 1000 * PAGE,
        'process.thread.count': 7,
        'process.disk.io/read': 0,
        'process.disk.io/write': 4990,
    }


def test_another_process_with_its_number_is_none_of_it(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, 4, 56)
    kernel.says(2.0, 1.0, 100, 10)
    assert list(ProcessFigures(4, 55, kernel.proc).read(SECOND)) == []


def test_a_process_whose_disk_use_is_hidden_has_the_rest(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, 4, 55)
    kernel.says(2.0, 1.0, 100, 10)
    (tmp_path / '4' / 'io').unlink()
    found = by_name(ProcessFigures(4, 55, kernel.proc).read(SECOND))
    assert 'process.memory.usage' in found and not [name for name in found if 'disk' in name]


def test_the_node_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / 'stat').write_text('cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1\n')
    (tmp_path / 'meminfo').write_text(
        'MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:    600 kB\nHugePages_Total: 3\n'
    )
    node = NodeFigures(str(tmp_path))
    first = by_name(node.read())
    assert first == {
        'system.cpu.logical.count': os.cpu_count(),
        'system.memory.usage/used': 400 << 10,
        'system.memory.limit': 1000 << 10,
    }
    (tmp_path / 'stat').write_text('cpu  130 0 130 720 120 0 0 0 0 0\n')
    assert by_name(node.read())['system.cpu.utilization'] == pytest.approx(0.6)


def test_what_this_kernel_says_of_this_process_is_read() -> None:
    figures = ProcessFigures(os.getpid(), process.start_ticks())
    begun, spent = time.process_time(), by_name(figures.read(time.monotonic_ns()))
    assert spent['process.cpu.time/user'] + spent['process.cpu.time/system'] == pytest.approx(begun, abs=0.1, rel=0.1)
    while time.process_time() < begun + 0.3:
        pass
    again = by_name(figures.read(time.monotonic_ns()))
    assert 0.2 < again['process.cpu.time/user'] + again['process.cpu.time/system'] < 1.0
    assert 0 < again['process.cpu.utilization'] <= 1
    assert again['process.memory.usage'] > 10 << 20


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, '_SHORTEST', 0.02)
    monkeypatch.setattr(sampler, '_LONGEST', 0.02)


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    made = Sleeper()
    yield made
    made.end()


def shown(lab: Lab) -> Shown:
    found: Shown = {}
    for line in lines(lab.folder, 'metrics'):
        for group in line['resourceMetrics']:
            of = found.setdefault(plain(group['resource']['attributes'])['lens.role'], {})
            for metric in (metric for scope in group['scopeMetrics'] for metric in scope['metrics']):
                for point in (metric.get('sum') or metric['gauge'])['dataPoints']:
                    of.setdefault(metric['name'], []).append(float(point.get('asInt', point.get('asDouble'))))
    return found


def collected(
    lab: Lab, sleeper: Sleeper, until: Any, *reports: Any, **values: Any
) -> dict[str, dict[str, list[float]]]:
    journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
    for fields in reports:
        journal.report('settings', **fields)
    journal.end_span(1, 'rl.step')
    reader = lab.collector({'system_metrics': True, **values})
    reader.start()
    deadline = time.monotonic() + 20
    while not until(reader) and time.monotonic() < deadline:
        time.sleep(0.02)
    sleeper.end()
    assert reader.finish(8.0).complete
    assert not reader.faults
    return shown(lab)


def test_they_are_metrics_of_the_process_and_of_the_launcher_for_the_node(
    lab: Lab, sleeper: Sleeper, quick: None
) -> None:
    found = collected(lab, sleeper, lambda reader: reader.intake.counts.get('measured', 0) > 100)
    assert len(found['driver']['process.memory.usage']) > 3
    assert min(found['driver']['process.memory.usage']) > 1 << 20
    assert {'process.cpu.time', 'process.cpu.utilization', 'process.thread.count'} <= found['driver'].keys()
    assert {'system.cpu.utilization', 'system.memory.usage', 'system.memory.limit'} <= found['launcher'].keys()
    assert not [name for name in found['launcher'] if name.startswith('process.')]


def test_switched_off_nobody_asks(lab: Lab, sleeper: Sleeper, quick: None) -> None:
    started = time.monotonic()
    found = collected(lab, sleeper, lambda reader: time.monotonic() > started + 0.5, metrics_enabled=False)
    assert found == {}


def test_the_programs_own_config_switches_it_off(lab: Lab, sleeper: Sleeper, quick: None) -> None:
    started = time.monotonic()
    off = {'system_metrics': False}
    assert collected(lab, sleeper, lambda reader: time.monotonic() > started + 0.5, off) == {}


def test_a_fault_of_it_is_counted_and_the_rest_goes_on(
    lab: Lab, sleeper: Sleeper, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, at: int) -> list[Measurement]:
        raise ZeroDivisionError

    monkeypatch.setattr(ProcessFigures, 'read', broken)
    journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
    journal.end_span(1, 'rl.step')
    reader = lab.collector({'system_metrics': True})
    reader.start()
    deadline = time.monotonic() + 20
    while not reader.faults and time.monotonic() < deadline:
        time.sleep(0.02)
    totals = reader.finish(8.0)
    assert [said for said in totals.faults if 'ZeroDivisionError in collector system figures' in said]
    assert 'rl.step' in lab.spans()
