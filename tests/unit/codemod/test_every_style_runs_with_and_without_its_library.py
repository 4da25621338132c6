# SPDX-License-Identifier: Apache-2.0
"""What is written runs: the same program where the library is absent, and with spans where it is there."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.unit.codemod.conftest import Desk
from tests.unit.codemod.everything import on_everything

RULES = """
- {kind: function, target: "mod:train", group: job, name: rl.job, attributes: {n: arg.n, gone: arg.n.nothing, k: "'c'"}}
- {kind: loop, target: "mod:train", match: "for $i in range($$$):", group: step, root: true, name: rl.step,
   attributes: {i: match.i}}
- kind: timer
  with: mod:Timer.time
  pair: mod:Timer.start/stop
  name: "rl.{label}"
  labels: {generation: generation, fit: {group: policy_update, attributes: {half: frame.step / 2}}}
- {kind: call, target: "mod:train", match: "score($x)", group: reward, name: rl.score}
- {kind: function, target: "mod:wait", group: wait, name: rl.wait}
"""
SOURCE = """\
import asyncio
import contextlib


class Timer:
    def start(self, label):
        pass

    def stop(self, label):
        pass

    @contextlib.contextmanager
    def time(self, label):
        yield


def score(x):
    return 2 * x


async def wait():
    await asyncio.sleep(0)
    return 3


def train(n):
    timer, total = Timer(), 0
    for step in range(n):
        with timer.time('generation'):
            total += score(step)
        timer.start('fit')
        total += 1
        timer.stop('fit')
    return total + asyncio.run(wait())
"""
# Says what nemo-lens does with a span, in the words of its documentation.
NEMO = """
import contextlib
from opentelemetry import trace

def is_span_group_enabled(group):
    return group != 'reward'

@contextlib.contextmanager
def managed_span(group, name, tracer=None, **attributes):
    if not is_span_group_enabled(group):
        yield None
        return
    with trace.get_tracer('x').start_as_current_span(name, attributes=attributes) as span:
        yield span

def trace_fn(group, name, tracer=None):
    def decorate(function):
        def called(*args, **kwargs):
            with managed_span(group, name):
                return function(*args, **kwargs)
        return called
    return decorate
"""
MAIN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
import mod
print(mod.train(2))
spans = sorted(kept.get_finished_spans(), key=lambda span: span.start_time)
names = {span.context.span_id: span.name for span in spans}
for span in spans:
    print(span.name, '<', span.parent and names[span.parent.span_id], dict(span.attributes))
"""
OTEL = """\
7
rl.job < None {'lens.group': 'job', 'k': 'c', 'n': 2}
rl.step < None {'lens.group': 'step', 'i': 0}
rl.generation < rl.step {'lens.group': 'generation', 'rl.bucket': 'productive'}
rl.score < rl.generation {'lens.group': 'reward', 'rl.bucket': 'productive'}
rl.fit < rl.step {'lens.group': 'policy_update', 'rl.bucket': 'productive', 'half': 0.0}
rl.step < None {'lens.group': 'step', 'i': 1}
rl.generation < rl.step {'lens.group': 'generation', 'rl.bucket': 'productive'}
rl.score < rl.generation {'lens.group': 'reward', 'rl.bucket': 'productive'}
rl.fit < rl.step {'lens.group': 'policy_update', 'rl.bucket': 'productive', 'half': 0.5}
rl.wait < rl.job {'lens.group': 'wait'}
"""
NEMO_LENS = """\
7
rl.job < None {'n': 2, 'k': 'c'}
rl.step < rl.job {'i': 0}
rl.generation < rl.step {'rl.bucket': 'productive'}
rl.fit < rl.step {'rl.bucket': 'productive', 'half': 0.0}
rl.step < rl.job {'i': 1}
rl.generation < rl.step {'rl.bucket': 'productive'}
rl.fit < rl.step {'rl.bucket': 'productive', 'half': 0.5}
"""


def python(folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize('style, spans', [('otel', OTEL), ('nemo-lens', NEMO_LENS)])
def test_spans_where_the_library_is(style: str, spans: str, desk: Desk) -> None:
    desk.put(RULES, {'mod.py': SOURCE, 'nemo/lens.py': NEMO, 'main.py': MAIN})
    desk.run('apply', '--style', style, '--write', 'mod.py')
    assert python(desk.folder, 'main.py') == spans


SENT_RULES = """
- {kind: function, target: "mod:Actor.work", group: job, name: rl.work, attributes: {n: arg.n, k: "'c'"}}
- {kind: function, target: "mod:Actor.wait", group: wait, name: rl.wait}
- {kind: loop, target: "mod:Actor.work", match: "for $i in range($$$):", group: step, root: true, name: rl.step}
- {kind: call, target: "mod:Actor.work", match: "score($x)", group: reward, name: rl.score}
"""
SENT_SOURCE = """\
import asyncio

import ray


def score(x):
    return 2 * x


@ray.remote
class Actor:
    def work(self, n):
        total = 0
        for step in range(n):
            total += score(step)
        return total

    async def wait(self):
        await asyncio.sleep(0)
        return 3
"""
# Stands for Ray: what `ray.remote` decorates goes to a worker by value, with its own module's globals.
RAY = """
import cloudpickle, sys
def remote(cls):
    cloudpickle.register_pickle_by_value(sys.modules[cls.__module__])
    return cls
def sent(cls):
    return cloudpickle.loads(cloudpickle.dumps(cls))
"""
SENT_MAIN = MAIN.replace('mod.train(2)', '(ray.sent(mod.Actor)().work(2), asyncio.run(ray.sent(mod.Actor)().wait()))')
SENT_SPANS = """\
(2, 3)
rl.work < None {'lens.group': 'job', 'k': 'c', 'n': 2}
rl.step < None {'lens.group': 'step'}
rl.score < rl.step {'lens.group': 'reward', 'rl.bucket': 'productive'}
rl.step < None {'lens.group': 'step'}
rl.score < rl.step {'lens.group': 'reward', 'rl.bucket': 'productive'}
rl.wait < None {'lens.group': 'wait'}
"""


def test_in_the_words_of_opentelemetry_code_still_travels_by_value(desk: Desk) -> None:
    """A provider of an SDK is set by then: its tracers cannot be pickled, nor can what they decorate with."""
    pytest.importorskip('cloudpickle')
    desk.put(SENT_RULES, {'mod.py': SENT_SOURCE, 'ray.py': RAY, 'main.py': f'import asyncio, ray{SENT_MAIN}'})
    assert desk.run('apply', '--style', 'otel', '--write', 'mod.py')[:2] == (0, 'mod.py: 4 places\n')
    assert python(desk.folder, 'main.py') == SENT_SPANS
    code = """if True:
        import asyncio, sys
        sys.path.insert(0, '')
        import mod
        print(mod.Actor().work(2), asyncio.run(mod.Actor().wait()))
    """
    (desk.folder / 'ray.py').write_text('def remote(cls): return cls')
    assert python(desk.folder, '-S', '-c', code) == '2 3\n'
    assert desk.run('check', 'mod.py')[0] == 0
    assert desk.run('revert', 'mod.py')[0] == 0
    assert desk.text('mod.py') == SENT_SOURCE


@pytest.mark.parametrize('style', ['lens', 'otel', 'nemo-lens'])
def test_the_same_program_where_it_is_not(style: str, desk: Desk) -> None:
    desk.put(RULES, {'mod.py': SOURCE})
    assert desk.run('apply', '--style', style, '--write', 'mod.py')[0] == 0
    for absent in ('-S', '-s'):  # without any library; with whatever is installed, and nothing that records
        code = 'import sys; sys.path.insert(0, ""); import mod; print(mod.train(2))'
        assert python(desk.folder, absent, '-c', code) == '7\n'


@pytest.mark.parametrize('style', ['lens', 'otel', 'nemo-lens'])
def test_modules_with_a_rule_on_everything_work_as_before(style: str, tmp_path: Path) -> None:
    library = Path(textwrap.__file__).parent
    for name in ('textwrap', 'heapq', 'fractions', 'calendar'):
        source, written = on_everything((library / f'{name}.py').read_bytes(), style, calls=style == 'lens')
        (tmp_path / f'{name}_.py').write_bytes(source.data(written.text))
    code = """
    import calendar_, fractions_, heapq_, textwrap_
    heap = [5, 1, 4]
    heapq_.heapify(heap)
    print(heapq_.heappop(heap), list(heapq_.merge([1, 4], [2])), heapq_.nsmallest(2, [3, 1, 2]))
    print(textwrap_.fill('one two three', 8), textwrap_.dedent('  a'))
    print(fractions_.Fraction(1, 3) + fractions_.Fraction('1/6'), round(fractions_.Fraction(7, 2)))
    print(calendar_.TextCalendar().formatmonth(2026, 2))
    """
    changed = python(tmp_path, '-c', textwrap.dedent(code))
    plain = (
        textwrap.dedent(code)
        .replace('_.', '.')
        .replace('calendar_, fractions_, heapq_, textwrap_', 'calendar, fractions, heapq, textwrap')
    )
    assert changed == python(tmp_path, '-c', plain)
