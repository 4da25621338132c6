# SPDX-License-Identifier: Apache-2.0
"""Ray's own tracing switched on, with an SDK in driver and workers: both are whole, and one where both are sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.ray_program import RayPlace, rules_text

pytest.importorskip('opentelemetry.sdk')

PROGRAM = """
import ray
import work
from opentelemetry import trace

@ray.remote
def task():
    work.inner()

@ray.remote
class Actor:
    def method(self):
        work.inner()

def train():
    actor = Actor.remote()
    ray.get(actor.method.remote())
    with trace.get_tracer('mine').start_as_current_span('mine'):
        ray.get(task.remote())

ray.init(address='local', num_cpus=2, include_dashboard=False, _tracing_startup_hook='exporting:set_up')
work.train(train)
ray.shutdown()
"""
EXPORTING = """
import os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

class Exporter(SpanExporter):
    def export(self, spans):
        with open(os.environ['EXPORTED'], 'a') as file:
            for span in spans:
                parent = f'{span.parent.span_id:016x}' if span.parent else ''
                row = (f'[{span.name}]', f'{span.context.span_id:016x}', parent, f'{span.context.trace_id:032x}')
                file.write('|'.join((*row, str(span.start_time))) + '\\n')
    def shutdown(self): pass

def set_up():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Exporter()))
    trace.set_tracer_provider(provider)
"""
WORK = 'def train(run): return run()\ndef inner(): pass\n'
ONE = """
train
  [Actor.__init__ ray.remote]
    [Actor.__init__ ray.remote_worker]
  [Actor.method ray.remote]
    [Actor.method ray.remote_worker]
      inner
  [mine]
    [__main__.task ray.remote]
      [__main__.task ray.remote_worker]
        inner
"""
THEIRS = """
[Actor.__init__ ray.remote]
  [Actor.__init__ ray.remote_worker]
[Actor.method ray.remote]
  [Actor.method ray.remote_worker]
[mine]
  [__main__.task ray.remote]
    [__main__.task ray.remote_worker]
"""
OURS = """
train
  inner
  inner
"""


def _tree(rows: list[tuple[str, ...]]) -> str:
    ids = {row[1] for row in rows}

    def lines(parent: str, depth: int) -> list[str]:
        found: list[str] = []
        for name, own, above, _, _ in sorted(rows, key=lambda row: int(row[4])):
            if above == parent or (not depth and above not in ids):
                found += ['  ' * depth + name, *lines(own, depth + 1)]
        return found

    return '\n'.join(lines('none', 0))


def _warnings(said: str) -> list[str]:
    return sorted(line for line in said.splitlines() if 'Warning' in line or 'Overriding' in line)


@pytest.mark.parametrize('exporter', ['otlp', 'file'])
def test_the_trees(new_place: Callable[..., RayPlace], tmp_path: Path, exporter: str) -> None:
    names = {'train': 'work:train', 'inner': 'work:inner'}
    files = {'main.py': PROGRAM, 'exporting.py': EXPORTING, 'work.py': WORK, 'rules.yaml': rules_text(names)}
    place = new_place().write(files)
    exported = tmp_path / 'exported'
    environ = {'EXPORTED': str(exported), 'PYTHONPATH': str(place.cwd), 'LENS_EXPORT_STRATEGY': 'all_ranks'}
    environ |= {'LENS_EXPORTER': exporter}
    if exporter == 'otlp':  # nobody is there: what is not sent stays in the folder
        environ['OTEL_EXPORTER_OTLP_ENDPOINT'] = 'http://127.0.0.1:9'
    plain = place.without('main.py', env=environ)
    alone = _tree([tuple(line.split('|')) for line in exported.read_text().splitlines()])
    exported.unlink()
    traced = place.traced('main.py', env=environ)
    assert (traced.done.code, traced.done.stdout) == (plain.code, plain.stdout) == (0, plain.stdout), traced.done.stderr
    assert _warnings(traced.done.stderr) == _warnings(plain.stderr)
    theirs = [tuple(line.split('|')) for line in exported.read_text().splitlines()]
    ours = [(s.name, s.id, s.parent, s.trace, str(s.start)) for s in traced.spans if s.name in names]
    if exporter == 'otlp':
        assert _tree([*theirs, *ours]) == ONE.strip()
        assert len({row[3] for row in (*theirs, *ours)}) == 1
    else:
        assert _tree(theirs) == alone == THEIRS.strip()
        assert _tree(ours) == OURS.strip()
