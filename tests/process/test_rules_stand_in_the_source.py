# SPDX-License-Identifier: Apache-2.0
"""`lens_auto.source`: what a rule file can say, said in the source, gives the same spans; said twice, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.helpers.program import Program, every_python, function, label, python, timer

TIMER = """
import contextlib
class Timer:
    def start(self, label): pass
    def stop(self, label): pass
    @contextlib.contextmanager
    def time(self, label):
        self.start(label)
        yield
        self.stop(label)
"""
LIBRARY = """
from lens_auto.source import begin, block, call, end, function, metric, logger, interval
from timing import Timer

@function('job', group='job', attributes={'n': 'arg.count', 'gone': 'arg.nothing', 'last': 'result[-1]'})
def train(count):
    timer, found = Timer(), []
    for step in range(count):
        with timer.time('step'), block('step', group='step', root=True, attributes={'i': 'frame.step + 1'}):
            timer.start('fit')
            begin(timer, 'fit', 'fit', group='policy_update', current=True)
            found.append(call('called', group='rollout')(fit)(step))
            timer.stop('fit')
            end(timer, 'fit')
    return found

@logger(metrics={'loss': {'name': 'rl.loss', 'unit': '1'}})
def log(metrics): pass

@metric({'name': 'fits', 'value': 'result', 'instrument': 'counter'})
def fit(step):
    log({'loss': step * 0.5})
    return step

@function('numbers', group='rollout')
def numbers():
    yield 1

class Engine:
    @interval('start', 'engine', group='generation')
    def start(self): pass
    @interval('stop', 'engine', group='generation')
    def stop(self): pass
"""
MAIN = """
import library
print(library.train(2), list(library.numbers()))
engine = library.Engine()
engine.start()
engine.stop()
"""
FILES = {'timing.py': TIMER, 'library.py': LIBRARY, 'main.py': MAIN}
RULES = [
    function('r', 'library:train', name='job'),
    timer(
        't',
        ['timing:Timer.time'],
        [('timing:Timer.start', 'Timer.stop')],
        {
            'step': label('step', root=True, attributes={'i': ('+', ('frame', 'step'), ('c', 1))}),
            'fit': label('fit', current=True),
        },
    ),
]
TREE = """\
job n=2 last=1
  ~ step i=1
    fit
      called
  ~ step i=2
    fit
      called
numbers
engine"""


def tree(spans: list[Any]) -> str:
    lines, depth = [], {}
    for span in spans:
        parent = (
            span.parent
            if span.parent in depth
            else next((link[1] for link in span.links or () if link[1] in depth), None)
        )
        depth[span.id] = 0 if parent is None else depth[parent] + 1
        mark = '~ ' if parent is not None and span.parent != parent else ''
        shown = ''.join(f' {k}={v}' for k, v in span.attributes.items() if k in ('n', 'i', 'last'))
        lines.append('  ' * depth[span.id] + mark + span.name + shown)
    return '\n'.join(lines)


@every_python
def test_the_source_says_it(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, FILES)
    traced = program.traced([], python=python(version), LENS_SPAN_GROUPS='all')
    assert traced.visible() == program.plain().visible()
    assert tree(traced.journal.spans) == TREE


@every_python
def test_rules_that_say_the_same_add_nothing(tmp_path: Path, version: str) -> None:
    traced = Program(tmp_path, FILES).traced(RULES, python=python(version), LENS_SPAN_GROUPS='all')
    assert tree(traced.journal.spans) == TREE


def test_groups_budgets_and_switches_hold_in_the_source(tmp_path: Path) -> None:
    main = """
    from lens_auto.source import block, function
    @function('two', group='rollout', budget=2)
    def f(): pass
    @function('mine', group='of_no_rule_file', group_bucket='idle')
    def g(): pass
    for _ in range(5):
        f()
    g()
    read = {'bad': 'a +', 'n': 2, 'one': 'frame.one', 'two': 'env.HOME'}
    with block('off', group='wait'):
        with block('idle', group='job', bucket='idle', attributes=read):
            one = 1
    """
    program = Program(tmp_path, {'main.py': main})
    names = [s.name for s in program.traced([], LENS_SPAN_GROUPS='rollout,job').journal.spans]
    assert names == ['two', 'two', 'idle']
    traced = program.traced([], LENS_SPAN_GROUPS='all')
    assert [s.name for s in traced.journal.spans] == ['two', 'two', 'mine', 'off', 'idle']
    mine, idle = traced.journal.spans[2], traced.journal.spans[4]
    assert mine.attributes == {'lens.group': 'of_no_rule_file', 'rl.bucket': 'idle'}
    assert idle.attributes.keys() == {'lens.group', 'rl.bucket', 'n', 'two'}  # `one` is not bound yet
    assert program.traced([], LENS_TRACES_ENABLED='0').journal.spans == []


@every_python
def test_exceptions_and_coroutines_are_told_as_by_a_rule(tmp_path: Path, version: str) -> None:
    main = """
    import asyncio
    from lens_auto.source import block, call, function
    @function('work', group='job')
    async def work():
        async with block('inside', group='job', attributes={'n': 'frame.n'}) if (n := 3) else None:
            await asyncio.sleep(0)
            raise ValueError('secret')
    def fail(): raise KeyError('secret')
    for each in (lambda: asyncio.run(work()), lambda: call('failing', group='job')(fail)()):
        try:
            each()
        except (ValueError, KeyError) as error:
            print(repr(error))
    """
    program = Program(tmp_path, {'main.py': main})
    traced = program.traced([], python=python(version), LENS_SPAN_GROUPS='all')
    assert traced.visible() == program.plain().visible()
    spans = {span.name: span for span in traced.journal.spans}
    assert {name: span.error for name, span in spans.items()} == {'work': True, 'inside': True, 'failing': True}
    assert spans['inside'].parent == spans['work'].id and spans['inside'].attributes['n'] == 3
    assert 'secret' not in repr(traced.journal.records)
