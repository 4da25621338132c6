# SPDX-License-Identifier: Apache-2.0
"""In-process mode: `opentelemetry-instrument` finds our entry point, and its SDK sends the spans of our rules."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.other_venv import other_venv
from tests.helpers.otlp_receiver import Receiver
from tests.helpers.packages import python_with
from tests.helpers.run import PATIENCE, REPOSITORY, Place

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(900)]

_LAUNCH = 'import sys; from opentelemetry.instrumentation.auto_instrumentation import run; sys.exit(run())'
_ENTRY_POINT = '[opentelemetry_instrumentor]\nlens_auto = lens_auto.launch.in_process:Instrumentor\n'


@pytest.fixture(scope='module')
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A venv with this one's packages, OpenTelemetry's launcher, and us as an install would put us there."""
    folder = tmp_path_factory.mktemp('instrumented')
    python = other_venv(folder / 'venv', sys.executable)
    asked = [python_with('opentelemetry-distro'), '-c', 'import sysconfig; print(sysconfig.get_path("purelib"))']
    distro = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    ours = folder / 'ours'
    (ours / 'lens_auto-0.dist-info').mkdir(parents=True)
    (ours / 'lens_auto-0.dist-info' / 'METADATA').write_text('Metadata-Version: 2.1\nName: lens-auto\nVersion: 0\n')
    (ours / 'lens_auto-0.dist-info' / 'entry_points.txt').write_text(_ENTRY_POINT)
    for name in ('lens_auto', 'rules'):
        (ours / name).symlink_to(REPOSITORY / name)
    [site] = (folder / 'venv').glob('lib/python*/site-packages')
    (site / 'more.pth').write_text(f'{distro}\n{ours}\n')
    return python


def _tree(spans: Sequence[Any]) -> list[str]:
    """Spans as indented names with their attributes' names; a trace of its own is under what it links to."""
    spans = sorted(
        (span for span in spans if span.name != 'lens.run'),
        key=lambda span: (span.start_time_unix_nano, -span.end_time_unix_nano),
    )
    ids = {span.span_id for span in spans}

    def over(span: Any) -> bytes:
        above = [span.parent_span_id, *(link.span_id for link in span.links)]
        return next((one for one in above if one in ids), b'')

    def lines(parent: bytes, depth: int) -> Iterator[str]:
        for span in spans:
            if over(span) == parent:
                names = ' '.join(sorted(item.key for item in span.attributes))
                root = '~ ' if depth and not span.parent_span_id else ''
                yield f'{"  " * depth}{root}{span.name} {span.status.code} {names}'
                yield from lines(span.span_id, depth + 1)

    return list(lines(b'', 0))


def _sent(place: Place, command: list[str], settings: dict[str, str]) -> tuple[list[str], set[str], str]:
    with Receiver() as backend:
        environ = {**place.env, **backend.environment('http/protobuf'), **settings}
        done = subprocess.run(command, cwd=place.cwd, env=environ, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        # What a process takes of its machine is sampled by our collector, which there is none of in-process.
        names = {metric.name for metric in backend.metric_list()}
        names = {name for name in names if not name.startswith(('process.', 'system.', 'hw.'))}
        return _tree(backend.spans()), names, done.stdout


def test_the_example(tmp_path: Path, interpreter: str) -> None:
    place = Place(tmp_path)
    shutil.copytree(REPOSITORY / 'examples', place.cwd, dirs_exist_ok=True)
    program = [interpreter, 'run_grpo.py', '--steps', '2']
    settings = {'LENS_SPAN_GROUPS': 'all', 'OTEL_LOGS_EXPORTER': 'none', 'OTEL_TRACES_EXPORTER': 'otlp'}
    settings |= {'OTEL_METRICS_EXPORTER': 'otlp'}
    ours, points, _ = _sent(place, [str(Path(sys.executable).parent / 'lens-instrument'), *program], settings)
    theirs, their_points, _ = _sent(place, [interpreter, '-c', _LAUNCH, *program], settings)
    assert theirs == ours
    assert their_points == points
    assert len(ours) > 10


WORK = """
import threading
def outer(f): return f()
def step(what): return what
"""
MAIN = """
import os, subprocess, sys, threading
from opentelemetry import trace
import work
tracer = trace.get_tracer('mine')
def inside():
    with tracer.start_as_current_span('theirs'):
        work.step('ours')
    thread = threading.Thread(target=work.step, args=['thread']); thread.start(); thread.join()
    try: work.outer(lambda: 1 / 0)
    except ZeroDivisionError: print('raised')
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)
work.outer(inside)
"""
RULES = """
framework: mine
rules:
- {kind: function, target: 'work:outer', group: job, name: outer}
- {kind: function, target: 'work:step', group: job, name: step}
"""


def test_spans_of_the_program_are_in_the_same_tree(tmp_path: Path, interpreter: str) -> None:
    place = Place(tmp_path).write({'work.py': WORK, 'main.py': MAIN, 'lens.yaml': RULES})
    settings = {'LENS_SPAN_GROUPS': 'all', 'OTEL_LOGS_EXPORTER': 'none', 'OTEL_METRICS_EXPORTER': 'none'}
    settings |= {'OTEL_TRACES_EXPORTER': 'otlp'}
    tree, _, stdout = _sent(place, [interpreter, '-c', _LAUNCH, interpreter, 'main.py'], settings)
    assert stdout == 'raised\n'
    assert [line.split()[0] if not line.startswith(' ') else line.rstrip().partition(' lens')[0] for line in tree] == [
        'outer',
        '  theirs 0',
        '    step 0',
        '  step 0',
        '  outer 2',
    ]
