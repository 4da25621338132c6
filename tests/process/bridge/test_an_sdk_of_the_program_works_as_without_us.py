# SPDX-License-Identifier: Apache-2.0
"""A program that sets up OpenTelemetry's SDK: before us, after us, for itself alone; and how the two trees join.

What the program exports is printed by an exporter of its own, with ids in the order in which they first appear.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.program import Outcome, Program, function

pytest.importorskip('opentelemetry.sdk')

WORK = """
def outer(f): return f()
def step(what='step'): return what
"""
SDK = """
import json, os, random, sys, warnings
warnings.simplefilter('error')
random.seed(1)
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased, ALWAYS_ON
class Exporter(SpanExporter):
    def __init__(self): self.spans = []
    def export(self, spans): self.spans += spans
    def shutdown(self): pass
def provider(sampler=None):
    made = TracerProvider(sampler=sampler) if sampler else TracerProvider()
    exporter = Exporter(); made.add_span_processor(SimpleSpanProcessor(exporter))
    return made, exporter
def show(exporter):
    with open(os.environ['EXPORTED'], 'w') as file:
        json.dump([{'name': s.name, 'start': s.start_time,
            'trace': f'{s.context.trace_id:032x}', 'id': f'{s.context.span_id:016x}',
            'parent': f'{s.parent.span_id:016x}' if s.parent else ''} for s in exporter.spans], file)
"""
RULES = [function('outer', 'work:outer'), function('step', 'work:step', name=('arg', 'what'))]
OTLP = {'LENS_EXPORTER': 'otlp'}

NESTED = """
def inner():
    with tracer.start_as_current_span('theirs'):
        work.step('ours in theirs')
        def deeper():
            with tracer.start_as_current_span('theirs in ours'):
                work.step('deep')
            tracer.start_span('by itself').end()
        work.outer(deeper)
        with tracer.start_as_current_span('theirs in theirs'): pass
    work.step('after it')
tracer = trace.get_tracer('mine')
work.outer(inner)
with tracer.start_as_current_span('top'):
    work.step('below the top')
print(random.random())
show(exporter)
"""
SET_UP = 'made, exporter = provider(); trace.set_tracer_provider(made)\n'


class Both:
    """A program run with us and without, and what its own exporter was given each time."""

    def __init__(self, folder: Path, source: str, **environ: str) -> None:
        program = Program(folder, {'work.py': WORK, 'main.py': SDK + source})
        self.traced: Outcome = program.traced(RULES, EXPORTED=str(folder / 'with'), **environ)
        plain = program.plain(EXPORTED=str(folder / 'without'), **environ)
        assert self.traced.visible() == plain.visible()
        assert self.traced.code == 0, self.traced.stderr
        assert self.traced.journal.reports('fault') == self.traced.journal.reports('missing') == []
        self.theirs: list[dict[str, Any]] = json.loads((folder / 'with').read_text())
        self.without: list[dict[str, Any]] = json.loads((folder / 'without').read_text())

    @property
    def tree(self) -> str:
        """Spans of both sides as one; theirs in brackets."""
        spans = [(s['start'], s['id'], s['parent'], f'[{s["name"]}]') for s in self.theirs]
        shift = 0
        ours = self.traced.journal.spans
        for record in self.traced.journal.records:
            if record[0] == 0:
                shift = record[3] - record[4]
        spans += [(s.start + shift, s.id.hex(), s.parent.hex(), s.name) for s in ours]
        return '\n'.join(_lines(sorted(spans), '', 0, {span[1] for span in spans}))

    def shape(self, spans: list[dict[str, Any]]) -> list[tuple[str, str]]:
        """Names with those of their parents."""
        names = {span['id']: span['name'] for span in spans}
        return [(span['name'], names.get(span['parent'], span['parent'] and 'unknown')) for span in spans]


def _lines(spans: list[tuple[Any, ...]], parent: str, depth: int, ids: set[str]) -> list[str]:
    found: list[str] = []
    for _, own, above, name in spans:
        if above == parent or (not depth and above not in ids):
            found += ['  ' * depth + name, *_lines(spans, own, depth + 1, ids)]
    return found


JOINED = """
outer
  [theirs]
    ours in theirs
    outer
      [theirs in ours]
        deep
      [by itself]
    [theirs in theirs]
  after it
[top]
  below the top
"""
SET = {
    'before us': SET_UP + 'import work\n' + NESTED,
    'after us': 'import work\n' + SET_UP + NESTED,
    'after a tracer was made': 'import work\ntracer = trace.get_tracer("early")\n' + SET_UP + NESTED,
}


@pytest.mark.parametrize('when', SET)
def test_both_are_one_tree_where_both_are_sent(tmp_path: Path, when: str) -> None:
    both = Both(tmp_path, SET[when], **OTLP)
    assert both.tree == JOINED.strip()
    spans = {span.id.hex(): span for span in both.traced.journal.spans}
    for span in both.theirs:
        if span['parent'] in spans:
            assert span['trace'] == spans[span['parent']].trace.hex()


@pytest.mark.parametrize('when', SET)
def test_each_tree_is_whole_where_ours_stays_in_a_folder(tmp_path: Path, when: str) -> None:
    both = Both(tmp_path, SET[when])
    assert both.shape(both.theirs) == both.shape(both.without)
    assert both.traced.journal.tree() == 'outer\n  ours in theirs\n  outer\n    deep\n  after it\nbelow the top'
    ids = {span['name']: span['id'] for span in both.theirs}
    links = {span.name: [(target.hex(), a) for _, target, a in span.links] for span in both.traced.journal.spans}
    assert links['ours in theirs'] == [(ids['theirs'], {'lens.link': 'app'})]
    assert links['deep'] == [(ids['theirs in ours'], {'lens.link': 'app'})]
    assert links['after it'] == []


@pytest.mark.parametrize('sampler', ['ParentBased(TraceIdRatioBased(0.0))', 'TraceIdRatioBased(0.0)'])
def test_a_program_that_samples_sends_no_more_than_without_us(tmp_path: Path, sampler: str) -> None:
    source = f'made, exporter = provider({sampler}); trace.set_tracer_provider(made)\nimport work\n'
    both = Both(tmp_path, source + NESTED, **OTLP)
    assert both.theirs == both.without == []
    # Nobody will ever see the program's span, so ours do not hang below it.
    assert both.traced.journal.tree() == 'outer\n  ours in theirs\n  outer\n    deep\n  after it\nbelow the top'


def test_a_provider_that_is_set_while_spans_are_open(tmp_path: Path) -> None:
    source = """
import work
tracer = trace.get_tracer('mine')
def inner():
    with tracer.start_as_current_span('recorded by us'):
        work.step('before')
        made, exporter = provider(); trace.set_tracer_provider(made)
        with tracer.start_as_current_span('theirs'):
            work.step('after')
    show(exporter)
    assert trace.get_tracer_provider() is made
    trace.set_tracer_provider(provider()[0])
work.outer(inner)
"""
    both = Both(tmp_path, source, **OTLP)
    assert both.tree == 'outer\n  recorded by us\n    before\n    [theirs]\n      after'
    assert 'Overriding of current TracerProvider' in both.traced.stderr  # as without us


def test_an_sdk_that_is_imported_and_never_set(tmp_path: Path) -> None:
    both = Both(tmp_path, 'import work\nmade, exporter = provider()\n' + NESTED)
    assert both.theirs == []
    assert both.traced.journal.tree() == JOINED.strip().replace('[', '').replace(']', '')


def test_a_provider_of_a_librarys_own_is_left_alone(tmp_path: Path) -> None:
    source = 'import work\nmade, exporter = provider(); set_up = made.get_tracer("own")\n'
    source += NESTED.replace("trace.get_tracer('mine')", 'set_up')
    both = Both(tmp_path, source, **OTLP)
    assert both.shape(both.theirs) == both.shape(both.without)
    assert both.traced.journal.tree() == 'outer\n  ours in theirs\n  outer\n    deep\n  after it\nbelow the top'


def test_an_sdk_that_is_switched_off_records_nothing(tmp_path: Path) -> None:
    both = Both(tmp_path, SET['after us'], OTEL_SDK_DISABLED='true')
    assert both.theirs == []
    assert both.traced.journal.tree() == 'outer\n  ours in theirs\n  outer\n    deep\n  after it\nbelow the top'


def test_the_programs_random_numbers_are_the_same(tmp_path: Path) -> None:
    for number, environ in enumerate(({}, OTLP)):
        both = Both(tmp_path / str(number), SET['after us'], **environ)  # prints one
        assert [span['id'] for span in both.theirs] == [span['id'] for span in both.without]
