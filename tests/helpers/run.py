# SPDX-License-Identifier: Apache-2.0
"""Runs the installed `lens-instrument` as a user would, and reads the run folder it leaves.

A `Place` is a working directory with an environment that holds nothing of ours; a `Run` is a finished run's folder.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = Path(sys.executable).parent
LENS = str(SCRIPTS / 'lens-instrument')
PATIENCE = 120.0

# What the launcher itself says, but for the summary: the first line is under its name, more of the same indented.
_OURS = re.compile(r'^lens-instrument: .*\n(?:    (?!File ).*\n)*', re.MULTILINE)


@dataclass(frozen=True)
class Span:
    """A span of a run folder's traces files, or of an OTLP payload."""

    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    status: int
    attributes: dict[str, Any]
    links: tuple[tuple[str, str], ...]
    events: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
    resource: dict[str, Any] = field(compare=False)
    kind: int = field(default=1, compare=False)  # OTLP's: 1 internal, 2 server, 3 client

    @property
    def error(self) -> bool:
        return self.status == 2

    @property
    def truncated(self) -> bool:
        return self.attributes.get('lens.truncated') is True

    @property
    def times(self) -> tuple[str, str, str, str, int, int]:
        """What a replay must not change."""
        return self.name, self.trace, self.id, self.parent, self.start, self.end


@dataclass(frozen=True)
class Point:
    """A data point of a run folder's metrics files."""

    name: str
    value: float
    at: int
    attributes: dict[str, Any]
    resource: dict[str, Any] = field(compare=False)


class Run:
    """The folder of a run.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def facts(self) -> dict[str, Any]:
        """run.json."""
        return json.loads((self.path / 'run.json').read_text())

    @property
    def spans(self) -> list[Span]:
        """All spans, in the order they started."""
        found = [span for line in self._lines('traces') for span in spans_of(line)]
        return sorted(found, key=lambda span: (span.start, -span.end))

    @property
    def points(self) -> list[Point]:
        """All metric points that the program's own code came to, in the order of the files."""
        return [point for point in self.all_points if not point.name.startswith(('process.', 'system.', 'hw.'))]

    @property
    def all_points(self) -> list[Point]:
        """Those of the system besides: how many there are depends on how long the run took."""
        return [point for line in self._lines('metrics') for point in _points_of(line)]

    def named(self, name: str) -> list[Span]:
        """The spans of one name."""
        return [span for span in self.spans if span.name == name]

    def only(self, name: str) -> Span:
        """The one span of a name."""
        [span] = self.named(name)
        return span

    def names(self) -> set[str]:
        return {span.name for span in self.spans} - {'lens.run'}

    def metric_names(self) -> set[str]:
        return {point.name for point in self.points}

    def tree(self, *shown: str) -> str:
        """The run as indented text: children under parents, `~` before a trace of its own under what it links to.

        Args:
            shown: Attributes to show.
        """
        return '\n'.join(tree(self.spans, shown))

    def _lines(self, kind: str) -> Iterator[dict[str, Any]]:
        for path in sorted(self.path.glob(f'{kind}*.jsonl')):
            for line in path.read_text().splitlines():
                yield json.loads(line)


def tree(spans: Sequence[Span], shown: Sequence[str] = ()) -> Iterator[str]:
    """Spans as indented text; see `Run.tree`."""
    ids = {span.id for span in spans}

    def above(span: Span) -> str:
        """What it is drawn under: its parent, or for a root the innermost span it links to."""
        if span.parent:
            return span.parent
        linked = [other.id for other in spans if other.id in {target for _, target in span.links}]
        return linked[-1] if linked else ''

    def lines(parent: str, depth: int) -> Iterator[str]:
        for span in spans:
            over = above(span)
            if over == parent or (not depth and over not in ids):
                values = ''.join(f' {name}={span.attributes[name]}' for name in shown if name in span.attributes)
                mark = '~ ' if parent and not span.parent else ''
                cut = '...' if span.truncated else ''
                yield f'{"  " * depth}{mark}{span.name}{"!" if span.error else ""}{cut}{values}'
                yield from lines(span.id, depth + 1)

    return lines('', 0)


def spans_of(line: Mapping[str, Any]) -> Iterator[Span]:
    """The spans of one line of OTLP JSON."""
    for group in line['resourceSpans']:
        resource = _attributes(group['resource'])
        for scope in group['scopeSpans']:
            for span in scope['spans']:
                yield Span(
                    span['name'],
                    span['traceId'],
                    span['spanId'],
                    span.get('parentSpanId', ''),
                    int(span['startTimeUnixNano']),
                    int(span['endTimeUnixNano']),
                    span.get('status', {}).get('code', 0),
                    _attributes(span),
                    tuple((link['traceId'], link['spanId']) for link in span.get('links', ())),
                    tuple((event['name'], tuple(_attributes(event).items())) for event in span.get('events', ())),
                    resource,
                    kind=int(span.get('kind') or 1),
                )


def _points_of(line: Mapping[str, Any]) -> Iterator[Point]:
    for group in line['resourceMetrics']:
        resource = _attributes(group['resource'])
        for scope in group['scopeMetrics']:
            for metric in scope['metrics']:
                data = metric.get('gauge') or metric.get('sum') or metric['histogram']
                for point in data['dataPoints']:
                    value = point.get('asDouble', point.get('asInt', point.get('sum')))
                    at = int(point['timeUnixNano'])
                    yield Point(metric['name'], float(value), at, _attributes(point), resource)


def _attributes(holder: Mapping[str, Any]) -> dict[str, Any]:
    return {item['key']: _value(item['value']) for item in holder.get('attributes', ())}


def _value(value: Mapping[str, Any]) -> Any:
    [(kind, plain)] = value.items()
    return int(plain) if kind == 'intValue' else plain


@dataclass
class Done:
    """A finished command."""

    code: int
    stdout: str
    stderr: str

    @property
    def theirs(self) -> str:
        """stderr without what the launcher said; to be used with `--no-summary`."""
        return _OURS.sub('', self.stderr)

    @property
    def ours(self) -> str:
        """What the launcher said on stderr, without the summary."""
        return ''.join(_OURS.findall(self.stderr))


class Place:
    """A working directory to launch from.

    Args:
        folder: An empty folder of the test.
    """

    def __init__(self, folder: Path, name: str = 'work here') -> None:
        self.folder = folder
        self.cwd = folder / name
        self.cwd.mkdir(parents=True)
        (folder / 'tmp').mkdir(exist_ok=True)
        drop = ('LENS_', 'PYTHON', 'OTEL_', 'NEMO_', 'SLURM_', 'COV_', 'GRPC_')
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
        self.env |= {
            'PATH': f'{SCRIPTS}:{self.env["PATH"]}',
            'XDG_CACHE_HOME': str(folder / 'cache'),
            'TMPDIR': str(folder / 'tmp'),
            'PYTHONHASHSEED': '0',
        }

    def write(self, files: Mapping[str, str]) -> Place:
        """Put files into the working directory."""
        for name, text in files.items():
            path = self.cwd / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self

    def plain(self, *command: str, env: Mapping[str, str] | None = None) -> Done:
        """Run a command without us."""
        done = subprocess.run(
            command,
            cwd=self.cwd,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def lens(self, *arguments: str, env: Mapping[str, str] | None = None) -> Done:
        """Run `lens-instrument ARGUMENTS`."""
        return self.plain(LENS, *arguments, env=env)

    def start(
        self, *command: str, env: Mapping[str, str] | None = None, out: IO[bytes] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own and do not wait.

        Args:
            command: The command.
            env: More variables.
            out: Where its output goes, both streams; pipes by default.
        """
        return subprocess.Popen(
            command,
            cwd=self.cwd,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out or subprocess.PIPE,
            stderr=out or subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def runs(self) -> list[Run]:
        """The run folders in the working directory, oldest first."""
        parent = self.cwd / 'lens-runs'
        folders = [path for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
        return [Run(path) for path in sorted(folders, key=lambda path: path.stat().st_ctime_ns)]

    @property
    def run(self) -> Run:
        """The only run."""
        [run] = self.runs
        return run

    def record(self, *arguments: str, env: Mapping[str, str] | None = None) -> Run:
        """Run `lens-instrument ARGUMENTS`, which must succeed, and hand back the new run."""
        before = {run.path for run in self.runs}
        done = self.lens('--no-summary', *arguments, env=env)
        assert done.code == 0, done.stderr
        [new] = [run for run in self.runs if run.path not in before]
        return new
