# SPDX-License-Identifier: Apache-2.0
"""Journals written by hand, byte by byte as `lens_auto.record.format` describes them, and a run to put them in."""

from __future__ import annotations

import json
import marshal
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from lens_auto.collect.collector import Collector
from lens_auto.collect.folder import RunFolder, open_run
from lens_auto.collect.run import Run
from lens_auto.collect.spool import choose
from lens_auto.record import process
from lens_auto.record.format import FORMAT

MS = 1_000_000
SECOND = 1_000_000_000


def span_of(number: int | bytes) -> bytes:
    """A span id: bytes as they are, a number as eight of them, 0 as none."""
    return number if isinstance(number, bytes) else number.to_bytes(8, 'big') if number else b''


def trace_of(number: int | bytes) -> bytes:
    """A trace id, likewise."""
    return number if isinstance(number, bytes) else number.to_bytes(16, 'big') if number else b''


def links_of(links: Any) -> Any:
    return links and tuple((trace_of(trace), span_of(span), items) for trace, span, items in links)


class Journal:
    """One process's journal.

    Attributes:
        pid: Its process id.
        start: Its start ticks.
        now: Monotonic time of the next record; tests move it.
    """

    def __init__(
        self,
        spool: str | Path,
        pid: int | None = None,
        start: int | None = None,
        told: dict[str, Any] | None = None,
        flags: dict[str, bool] | None = None,
        host: str | None = None,
        boot: str | None = None,
    ) -> None:
        """Write the header of the first segment; a process that is not alive by default."""
        self.spool = str(spool)
        self.host = host or process.hostname()
        self.pid = dead_pid() if pid is None else pid
        self.start = 1 if start is None else start
        self.told = {'lens.role': 'driver', 'process.runtime.version': '3.11.7', 'process.command': 'train.py'}
        self.told |= told or {}
        self.flags = flags or {}
        self.boot = process.boot_id() if boot is None else boot
        self.wall, self.mono = time.time_ns(), time.monotonic_ns()
        self.now = self.mono
        self.number = -1
        self.roll()

    @property
    def path(self) -> str:
        return os.path.join(self.spool, f'{self.host}-{self.pid}-{self.start}-{self.number}.jnl')

    def roll(self, size: int = 1 << 20) -> None:
        """Begin the next segment."""
        self.number += 1
        with open(self.path, 'wb') as file:
            file.truncate(size)
        self.end = 0
        self.put((0, FORMAT, self.told, self.wall, self.mono, self.boot, self.pid, self.start, self.number, self.flags))

    def put(self, record: tuple[Any, ...]) -> None:
        """Payload first, length after it, as the recorder stores them."""
        body = marshal.dumps(record, 2)
        with open(self.path, 'r+b') as file:
            file.seek(self.end + 4)
            file.write(body)
            file.flush()
            file.seek(self.end)
            file.write(len(body).to_bytes(4, 'little'))
        self.end += 4 + len(body)

    def open(
        self,
        span_id: int | bytes,
        name: str,
        parent: int | bytes = 0,
        trace: int | bytes = 7,
        items: dict[str, Any] | None = None,
        links: Any = None,
    ) -> None:
        ids = (span_of(span_id), trace_of(trace), span_of(parent))
        self.put((1, *ids, self.now, name, 'rule', items, links_of(links)))

    def end_span(
        self,
        span_id: int | bytes,
        name: str,
        duration: int = MS,
        parent: int | bytes = 0,
        trace: int | bytes = 7,
        status: int = 0,
        items: dict[str, Any] | None = None,
        links: Any = None,
        events: Any = None,
        start: int | None = None,
    ) -> None:
        """A span that began `duration` before now."""
        begin = self.now - duration if start is None else start
        ids = (span_of(span_id), trace_of(trace), span_of(parent))
        self.put((2, *ids, begin, duration, name, 'rule', status, items, links_of(links), events))

    def called(self, task: bytes, span: int, trace: int | bytes = 7) -> None:
        """A Ray task was submitted while a span was current."""
        self.put((8, self.now, task, trace_of(trace), span_of(span), 'Worker.run'))

    def task(self, span: int, task: bytes, attempt: int = 0) -> None:
        """A span is the first of a Ray task."""
        self.put((9, self.now, span_of(span), task, attempt))

    def point(
        self,
        name: str,
        value: float,
        instrument: str = 'gauge',
        unit: str = '',
        labels: dict[str, Any] | None = None,
        span: tuple[int | bytes, int | bytes] = (0, 0),
    ) -> None:
        self.put((3, self.now, name, instrument, unit, value, labels, 'rule', trace_of(span[0]), span_of(span[1])))

    def report(self, what: str, **fields: Any) -> None:
        self.put((7, self.now, what, fields))


class Lab:
    """A run in a temporary folder."""

    def __init__(self, path: Path, environ: dict[str, str] | None = None) -> None:
        self.path = path
        self.environ = {'HOME': str(path), 'TMPDIR': str(path), **(environ or {})}
        self.run, self.folder = open_run(self.environ, str(path))
        self.spool = choose(self.environ, self.run, self.folder).path

    def journal(self, **more: Any) -> Journal:
        return Journal(self.spool, **more)

    def collector(self, values: dict[str, Any] | None = None, **more: Any) -> Collector:
        values = {'service_name': 'trainer', 'exporter': 'file', **(values or {})}
        return Collector(self.spool, self.folder, self.run, values, environ=self.environ, **more)

    def lines(self, kind: str) -> list[dict[str, Any]]:
        return lines(self.folder, kind)

    def spans(self) -> dict[str, dict[str, Any]]:
        """Spans of the folder by name, the last of each; without the run's root."""
        return {span['name']: span for span in spans(self.folder) if span['name'] != 'lens.run'}


def lines(folder: RunFolder, kind: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(Path(folder.path).glob(f'{kind}-*.jsonl'))
        for line in path.read_text().splitlines()
    ]


def spans(folder: RunFolder) -> list[dict[str, Any]]:
    return _items(folder, 'traces', 'Spans', 'spans')


def metrics(folder: RunFolder) -> list[dict[str, Any]]:
    return _items(folder, 'metrics', 'Metrics', 'metrics')


def _items(folder: RunFolder, kind: str, noun: str, listed: str) -> list[dict[str, Any]]:
    return [
        item
        for line in lines(folder, kind)
        for group in line[f'resource{noun}']
        for scope in group[f'scope{noun}']
        for item in scope[listed]
    ]


def plain(listed: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Attributes of OTLP JSON as a dict."""
    found: dict[str, Any] = {}
    for item in listed or []:
        ((kind, value),) = item['value'].items()
        found[item['key']] = int(value) if kind == 'intValue' else value
    return found


class Sleeper:
    """A process that lives until `end`; journals are written in its name."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(120)'])
        self.pid = self._process.pid
        self.start = process.start_ticks(self.pid)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def dead_pid() -> int:
    """The id of a process that has just ended."""
    ended = subprocess.Popen([sys.executable, '-S', '-c', ''])
    ended.wait()
    return ended.pid


def root_of(run: Run) -> str:
    return run.root_span_id.hex()
