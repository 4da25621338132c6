# SPDX-License-Identifier: Apache-2.0
"""Spans and points of a program that has OpenTelemetry's API and sets no provider; it sees no change.

The API and the SDK are those of the venv the tests run in.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.journal import Journal
from tests.helpers.program import Outcome, Program, function

pytest.importorskip('opentelemetry.trace')

WORK = """
import asyncio
def outer(f): return f()
async def a_outer(f): return await f()
def step(what='step'): return what
def gen(n):
    for i in range(n): yield i
"""
HEAD = """
import asyncio, os, sys, threading, time, warnings
warnings.simplefilter('error')
from opentelemetry import context, metrics, propagate, trace
import work
tracer = trace.get_tracer('mine')
"""
RULES = [
    function('outer', 'work:outer'),
    function('a_outer', 'work:a_outer'),
    function('step', 'work:step', name=('arg', 'what')),
]


def run(folder: Path, source: str, *rules: str, **environ: str) -> Outcome:
    """Run a program with us and without, which must look the same, and hand back what was recorded."""
    program = Program(folder, {'work.py': WORK, 'main.py': HEAD + source})
    traced = program.traced(RULES, **environ)
    assert traced.visible() == program.plain().visible()
    assert traced.code == 0, traced.stderr
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []
    return traced


def journal(folder: Path, source: str, **environ: str) -> Journal:
    return run(folder, source, **environ).journal


def tree(text: str) -> str:
    return text.strip('\n')


def test_both_sides_are_one_tree(tmp_path: Path) -> None:
    found = journal(
        tmp_path,
        """
def inner():
    with tracer.start_as_current_span('manual'):
        work.step('ours in theirs')
        work.outer(lambda: tracer.start_span('not current').end())
        with tracer.start_as_current_span('theirs in theirs'):
            work.step('deep')
        work.step('after it')
    work.step('beside')
work.outer(inner)
with tracer.start_as_current_span('top'):
    work.step('below the top')
work.step('alone')
""",
    )
    assert found.tree() == tree("""
outer
  manual
    ours in theirs
    outer
      not current
    theirs in theirs
      deep
    after it
  beside
top
  below the top
alone
""")


def test_the_same_in_tasks_threads_and_over_yields(tmp_path: Path) -> None:
    found = journal(
        tmp_path,
        """
async def child(n):
    with tracer.start_as_current_span(f'task {n}'):
        await asyncio.sleep(0.001 * n)
        work.step(f'in task {n}')
async def several():
    await asyncio.gather(child(1), child(2))
    work.step('after the tasks')
def threaded():
    with tracer.start_as_current_span('starts a thread'):
        def run():
            work.step('of a thread')
        # OpenTelemetry's own context is not carried into threads, and ours knows the span below it.
        thread = threading.Thread(target=run); thread.start(); thread.join()
@tracer.start_as_current_span('a decorator')
def decorated():
    work.step('in a decorated function')
def main():
    asyncio.run(work.a_outer(several))
    threaded()
    decorated()
    decorated()
work.outer(main)
""",
    )
    assert found.tree() == tree("""
outer
  a_outer
    task 1
      in task 1
    task 2
      in task 2
    after the tasks
  starts a thread
  of a thread
  a decorator
    in a decorated function
  a decorator
    in a decorated function
""")


def test_all_that_a_span_is_told_is_recorded(tmp_path: Path) -> None:
    found = journal(
        tmp_path,
        """
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
other = SpanContext(5, 6, True, TraceFlags(1))
began = time.time_ns() - 10**9
span = tracer.start_span('first', kind=SpanKind.CLIENT, links=[Link(other, {'why': 'because'})], start_time=began,
    attributes={'row': ['a', 'b'], 'object': object(), 'long': 'x' * 1000})
span.set_attributes({'one': 1, 'truth': True}); span.set_attribute('one', 2.5)
span.add_event('happened', {'times': 3}, timestamp=began + 10)
span.add_link(other)
span.update_name('second')
span.set_status(Status(StatusCode.ERROR, 'a secret'))
span.end(began + 5 * 10**8)
span.end(); span.set_attribute('late', 1); span.add_event('late'); span.update_name('late')
ok = tracer.start_span('fine'); ok.set_status(StatusCode.OK); ok.set_status(StatusCode.ERROR); ok.end()
try:
    with tracer.start_span('raises'):
        raise ValueError('a secret')
except ValueError:
    pass
try:
    with tracer.start_as_current_span('raises too'):
        raise SystemExit(0)
except SystemExit:
    pass
for wrong in (lambda: span.set_attributes(7), lambda: span.end('now'), lambda: tracer.start_span('x', attributes=7)):
    try: wrong()
    except Exception as error: print(error)
""",
    )
    first, fine, raises, too = found.spans[:4]
    assert first.attributes == {
        **{'row': ('a', 'b'), 'long': 'x' * 256, 'span.kind': 'client', 'otel.scope.name': 'mine'},
        **{'one': 2.5, 'truth': True},
    }
    assert (first.name, first.status, first.duration) == ('second', 2, pytest.approx(5 * 10**8, abs=10**7))
    assert [(trace[-1], span[-1], attributes) for trace, span, attributes in first.links] == [
        (5, 6, {'why': 'because'}),
        (5, 6, None),
    ]
    assert first.events == [('happened', {'times': 3})]
    assert (fine.name, fine.status) == ('fine', 1)
    assert raises.error and [name for name, _ in raises.events] == ['exception']
    assert not too.error and too.ended
    assert 'a secret' not in str([span.events for span in found.spans])


def test_a_context_the_program_names_is_the_parent(tmp_path: Path) -> None:
    found = journal(
        tmp_path,
        """
remote = propagate.extract({'traceparent': '00-' + '12' * 16 + '-' + '34' * 8 + '-01'})
unsampled = propagate.extract({'traceparent': '00-' + '12' * 16 + '-' + '34' * 8 + '-00'})
def inner():
    with tracer.start_as_current_span('of a request', context=remote):
        work.step('served')
    with tracer.start_as_current_span('root', context=context.Context()):
        work.step('below a root')
    tracer.start_span('unsampled', context=unsampled).end()
    kept = tracer.start_span('kept')
    later = trace.set_span_in_context(kept)
    with tracer.start_as_current_span('passed on', context=later): pass
    token = context.attach(remote)
    work.step('attached')
    context.detach(token)
    kept.end()
work.outer(inner)
""",
    )
    spans = {span.name: span for span in found.spans}
    run = b'\xab' * 16, b'\xcd' * 8
    remote = b'\x12' * 16, b'\x34' * 8
    where = {name: (span.trace, span.parent) for name, span in spans.items()}
    assert where == {
        'outer': run,
        'of a request': remote,
        'served': (remote[0], spans['of a request'].id),
        'root': run,
        'below a root': (run[0], spans['root'].id),
        'unsampled': run,
        'kept': (run[0], spans['outer'].id),
        'passed on': (run[0], spans['kept'].id),
        'attached': remote,
    }


def test_a_request_carries_the_span_on(tmp_path: Path) -> None:
    program = Program(tmp_path, {'work.py': WORK})
    source = """
with tracer.start_as_current_span('calls') as span:
    carrier = {}
    propagate.inject(carrier)
    assert carrier['traceparent'].split('-')[2] == f'{span.get_span_context().span_id:016x}'
    assert span.is_recording() and trace.get_current_span() is span
    with tracer.start_as_current_span('serves', context=propagate.extract(carrier)):
        pass
"""
    program.write({'main.py': HEAD + source})
    traced = program.traced(RULES)
    assert traced.visible() == ('', '', 0)
    assert traced.journal.tree() == 'calls\n  serves'


def test_what_the_api_says_of_itself_stays(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
print(type(trace.get_tracer_provider()), trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE._done)
print(type(metrics.get_meter_provider()), type(tracer), trace.get_current_span())
work.step()
print(trace.get_current_span() is trace.INVALID_SPAN, context.get_current())
print(sorted(name for name in sys.modules if 'opentelemetry.sdk' in name))
import inspect
print(inspect.signature(trace.NoOpTracer.start_span), inspect.getsource(trace.NoOpTracer.start_span)[:40])
""",
    )


def test_points_without_a_meter_provider(tmp_path: Path) -> None:
    found = journal(
        tmp_path,
        """
meter = metrics.get_meter('mine')
meter.create_counter('tokens', '{token}').add(5, {'model': 'm'})
waiting = meter.create_up_down_counter('waiting'); waiting.add(3); waiting.add(-2); waiting.add(1, {'queue': 'b'})
meter.create_histogram('seconds', 's').record(0.25)
if hasattr(meter, 'create_gauge'): meter.create_gauge('level').set(7)
meter.create_observable_gauge('observed', [lambda options: 1 / 0])
meter.create_counter('wrong').add('x'); meter.create_counter('wrong').add(-1)
""",
    )
    assert [point for point in found.points if point[0] != 'level'] == [
        ('tokens', 5, {'model': 'm'}),
        ('waiting', 3, {}),
        ('waiting', 1, {}),
        ('waiting', 1, {'queue': 'b'}),
        ('seconds', 0.25, {}),
    ]
    assert found.instruments['tokens'] == ('counter', '{token}') and found.instruments['waiting'][0] == 'gauge'


@pytest.mark.parametrize('order', [('metrics', 'trace'), ('trace', 'metrics')], ids='-'.join)
def test_whichever_half_of_it_is_imported_first(tmp_path: Path, order: tuple[str, str]) -> None:
    main = """
from opentelemetry import %s
print(sorted(name for name in __import__('sys').modules if name == 'opentelemetry.trace'))
from opentelemetry import %s
import work
metrics.get_meter('mine').create_counter('tokens').add(5)
with trace.get_tracer('mine').start_as_current_span('theirs'): work.step()
"""
    program = Program(tmp_path, {'work.py': WORK, 'main.py': main % order})
    traced = program.traced(RULES)
    assert traced.visible() == program.plain().visible()
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []
    assert traced.journal.tree() == 'theirs\n  step'
    assert traced.journal.points == [('tokens', 5, {})]


def test_nothing_is_patched_where_nothing_is_recorded(tmp_path: Path) -> None:
    source = (
        HEAD
        + """
print(tracer.start_span('x') is trace.INVALID_SPAN or tracer.start_span('x').is_recording())
print(trace.NoOpTracer.start_span.__code__.co_consts[:1])
"""
    )
    program = Program(tmp_path, {'work.py': WORK, 'main.py': source})
    switched = {'LENS_TRACES_ENABLED': '0', 'LENS_METRICS_ENABLED': '0'}
    traced = program.traced(RULES, **switched)
    assert traced.visible() == program.plain().visible()
    assert not traced.journal.spans


def test_a_span_that_was_open_when_the_process_was_killed_is_known(tmp_path: Path) -> None:
    source = (
        HEAD
        + """
span = tracer.start_as_current_span('doomed'); span.__enter__()
work.outer(lambda: os.kill(os.getpid(), 9))
"""
    )
    traced = Program(tmp_path, {'work.py': WORK, 'main.py': source}).traced(RULES)
    assert traced.code == -9
    assert traced.journal.tree() == 'doomed...\n  outer...'


def test_a_forked_child_has_its_own_spans(tmp_path: Path) -> None:
    found = journal(
        tmp_path,
        """
with tracer.start_as_current_span('parent') as span:
    pid = os.fork()
    if not pid:
        with tracer.start_as_current_span('child'):
            work.step('in the child')
    else:
        os.waitpid(pid, 0)
if not pid: os._exit(0)
""",
    )
    assert found.tree() == 'parent\n  child\n    in the child'
    assert all(span.ended for span in found.spans)


FORKS = """
import multiprocessing, multiprocessing.pool, os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
def job(what): return work.step(what)
def manual(what):
    with tracer.start_as_current_span('manual'): work.step(what)
def current(_): return trace.get_current_span().get_span_context().span_id != 0
def own(what):
    sys.stdout.flush()
    pid = os.fork()
    if not pid: work.step(what); os._exit(0)
    os.waitpid(pid, 0)
fork = multiprocessing.get_context('fork')
with tracer.start_as_current_span('span'):
    pool = fork.Pool(1); pool.apply(job, ['pool, inside'])
    executor = ProcessPoolExecutor(1, mp_context=fork); executor.submit(job, 'executor, inside').result()
    process = fork.Process(target=job, args=['process']); process.start(); process.join()
    own('fork')
pool.apply(job, ['pool, after']); executor.submit(job, 'executor, after').result()
pool.apply(manual, ['pool, manual'])
own('fork, after')
print(len({executor.submit(current, 1).result(), pool.apply(current, [1])}))
pool.close(); executor.shutdown()
"""


def test_a_span_is_left_behind_by_the_workers_of_a_pool_that_was_made_in_it(tmp_path: Path) -> None:
    found = journal(tmp_path, FORKS)
    assert found.tree() == tree("""
span
  process
  fork
pool, inside
executor, inside
pool, after
executor, after
manual
  pool, manual
fork, after
""")
    spans = {span.name: span for span in found.spans}
    assert {spans[name].parent.hex() for name in ('pool, after', 'executor, after', 'manual')} == {'cd' * 8}


def test_telemetry_of_vllms_own_stays_off_without_a_provider(tmp_path: Path) -> None:
    found = journal(
        tmp_path,
        """
def started(what):
    with trace.get_tracer('vllm.v1.engine.core').start_as_current_span(what):
        propagate.inject(os.environ)
        work.step('inside')
started('Executor init')
with tracer.start_as_current_span('manual'): work.outer(lambda: started('Worker init'))
with trace.get_tracer('vllm_of_my_own').start_as_current_span('another'): pass
print([name for name in os.environ if name.lower() in ('traceparent', 'tracestate')])
""",
    )
    assert found.tree() == tree("""
inside
manual
  outer
    inside
another
""")
