# SPDX-License-Identifier: Apache-2.0
"""Figures of a process and of its node from Linux's /proc; a file that cannot be read gives none."""

from __future__ import annotations

import os

from lens_auto.collect.system.measurement import Measurement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TICKS = os.sysconf('SC_CLK_TCK')  # a second
_PAGE = os.sysconf('SC_PAGE_SIZE')
_USER, _SYSTEM = {'cpu.mode': 'user'}, {'cpu.mode': 'system'}
_READ, _WRITE = {'disk.io.direction': 'read'}, {'disk.io.direction': 'write'}
# Where fields of /proc/<pid>/stat are, counted from behind the command's closing bracket; proc_pid_stat(5).
_UTIME, _STIME, _THREADS, _START, _RSS = 11, 12, 17, 19, 21


class ProcessFigures:
    """Figures of one process."""

    __slots__ = ('_at', '_cpus', '_io', '_path', '_started', '_ticks')

    def __init__(self, pid: int, started: int, proc: str = '/proc') -> None:
        """Nothing is read yet.

        Args:
            pid: The process.
            started: Its start time in ticks since boot.
            proc: Where the kernel's file system is.
        """
        self._path = f'{proc}/{pid}'
        self._started = started
        self._cpus = _usable_cpus(pid)
        self._at = 0
        self._ticks = (0, 0)
        self._io = (0, 0)

    def read(self, at: int) -> Iterator[Measurement]:
        """What it has used since it was last asked, and what it holds; nothing once it has ended.

        Args:
            at: Now, in monotonic nanoseconds.

        Raises:
            OSError: It is gone.
        """
        with open(f'{self._path}/stat', 'rb') as stat:
            fields = stat.read().rpartition(b')')[2].split()
        if self._started and int(fields[_START]) != self._started:
            return  # another process has its number by now
        ticks = int(fields[_UTIME]), int(fields[_STIME])
        spent = ticks[0] - self._ticks[0], ticks[1] - self._ticks[1]
        yield Measurement('process.cpu.time', 'counter', 's', spent[0] / _TICKS, _USER)
        yield Measurement('process.cpu.time', 'counter', 's', spent[1] / _TICKS, _SYSTEM)
        if self._at and at > self._at:
            used = sum(spent) / _TICKS / ((at - self._at) / 1e9)
            yield Measurement('process.cpu.utilization', 'gauge', '1', used / self._cpus)
        yield Measurement('process.memory.usage', 'updowncounter', 'By', int(fields[_RSS]) * _PAGE)
        yield Measurement('process.thread.count', 'updowncounter', '{thread}', int(fields[_THREADS]))
        self._at, self._ticks = at, ticks
        yield from self._disk()

    def _disk(self) -> Iterator[Measurement]:
        try:
            with open(f'{self._path}/io', 'rb') as text:
                found = dict(line.split(b': ', 1) for line in text.read().splitlines())
            io = int(found[b'read_bytes']), int(found[b'write_bytes'])
        except (OSError, KeyError, ValueError):
            return  # a program that changed its user, or a kernel that does not account for it
        for labels, now, before in ((_READ, io[0], self._io[0]), (_WRITE, io[1], self._io[1])):
            yield Measurement('process.disk.io', 'counter', 'By', max(0, now - before), labels)
        self._io = io


class NodeFigures:
    """Figures of the node, whoever uses it."""

    __slots__ = ('_cpu', '_proc')

    def __init__(self, proc: str = '/proc') -> None:
        """Nothing is read yet.

        Args:
            proc: Where the kernel's file system is.
        """
        self._proc = proc
        self._cpu = (0, 0)

    def read(self) -> Iterator[Measurement]:
        """The share of its CPUs in use since it was last asked, and its memory.

        Raises:
            OSError: /proc does not have them.
        """
        cpus = os.cpu_count()
        if cpus:
            yield Measurement('system.cpu.logical.count', 'updowncounter', '{cpu}', cpus)
        with open(f'{self._proc}/stat', 'rb') as stat:
            # user nice system idle iowait irq softirq steal: guest times are part of user's.
            ticks = [int(field) for field in stat.readline().split()[1:9]]
        total, idle = sum(ticks), sum(ticks[3:5])
        passed, idled = total - self._cpu[0], idle - self._cpu[1]
        if self._cpu[0] and passed > 0:
            yield Measurement('system.cpu.utilization', 'gauge', '1', min(1.0, max(0.0, 1 - idled / passed)))
        self._cpu = total, idle
        memory = self._memory()
        if 'MemTotal' in memory and 'MemAvailable' in memory:
            used = memory['MemTotal'] - memory['MemAvailable']
            yield Measurement('system.memory.usage', 'updowncounter', 'By', used, {'system.memory.state': 'used'})
            yield Measurement('system.memory.limit', 'updowncounter', 'By', memory['MemTotal'])

    def _memory(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        with open(f'{self._proc}/meminfo', encoding='ascii', errors='replace') as text:
            for line in text:
                name, _, rest = line.partition(':')
                amount, _, unit = rest.strip().partition(' ')
                if amount.isdigit() and unit == 'kB':
                    found[name] = int(amount) << 10
        return found


def _usable_cpus(pid: int) -> int:
    try:
        return len(os.sched_getaffinity(pid)) or 1
    except (OSError, AttributeError):
        return os.cpu_count() or 1
