# SPDX-License-Identifier: Apache-2.0
"""An exception planted in each part of the agent changes neither output nor exit code, and is reported."""

from pathlib import Path

import pytest

from tests.helpers.program import (
    Program,
    every_python,
    function,
    interval,
    label,
    logger,
    metric,
    python,
    resource,
    timer,
)

MODULE = """
    import asyncio, contextlib
    class Config:
        def __init__(self): self.model = 'm'
    class Timer:
        def start(self, label): return label
        def stop(self, label): return label
        @contextlib.contextmanager
        def time(self, label):
            yield
    class Block:
        def __enter__(self): return self
        def __exit__(self, *e): return None
    def f(n=1): return n
    def fails(): raise KeyError('user')
    def gen(n):
        for i in range(n): yield i
    async def co(n): return n
    async def a_gen(n):
        for i in range(n): yield i
    def log(metrics): return metrics
    def begin(): pass
    def end(): pass
    def lap(): pass
"""
MAIN = """
    import asyncio, sys, m
    async def a_main():
        return await m.co(1), [i async for i in m.a_gen(3)]
    def work(step):
        print(m.Config().model, m.f(step), list(m.gen(3)), asyncio.run(a_main()), m.log({'loss': 1}))
        try: m.fails()
        except KeyError as error: print(error)
        t = m.Timer()
        print(t.start('a'), t.stop('a'))
        with t.time('a'), m.Block(): print('in')
        m.begin(); m.end(); m.lap(); m.lap()
    for step in range(2): work(step)
    sys.exit(3)
"""
RULES = [
    resource('c', 'm:Config.__init__', ('.', ('self',), 'telemetry'), model=('.', ('self',), 'model')),
    function(
        'f',
        'm:f',
        attributes={'n': ('+', ('arg', 'n'), ('frame', 'step')), 'r': ('result',)},
        name=('fmt', (('arg', 'n'),)),
    ),
    *[function(name, f'm:{name}', attributes={'n': ('arg', 'n')}) for name in ('gen', 'co', 'a_gen')],
    *[function(name, f'm:{name}') for name in ('fails', 'Block')],
    timer('t', ['m:Timer.time'], [('m:Timer.start', 'Timer.stop')], {'a': label('a')}),
    logger('l', 'm:log', {'loss': metric('loss')}),
    interval('i', start='m:begin', stop='m:end', lap='m:lap'),
]
FAULTS = {
    'stage 2': 'lens_auto.hook.activate.start',
    'plan': 'lens_auto.rules.plan.load',
    'settings': 'lens_auto.settings.project.from_environment',
    'loader': 'lens_auto.hook.loader._give_back',
    'patching': 'lens_auto.hook.activate.Activation.executed',
    'resolve': 'lens_auto.hook.patches.resolve',
    'code': 'lens_auto.wrap.code.wrapped',
    'readers': 'lens_auto.hook.sites.Readers',
    'site, open': 'lens_auto.wrap.site.Site.open',
    'site, start': 'lens_auto.wrap.site.Site._start',
    'site, leave': 'lens_auto.wrap.site.Site.leave',
    'site, fail': 'lens_auto.wrap.site.Site.fail',
    'site, read': 'lens_auto.wrap.site.Site.read',
    'timer, open': 'lens_auto.wrap.timer.TimerSite.open',
    'timer, started': 'lens_auto.wrap.timer.TimerSite.started',
    'timer, stopped': 'lens_auto.wrap.timer.TimerSite.stopped',
    'block, started': 'lens_auto.wrap.context_manager.ContextSite.started',
    'block, stopped': 'lens_auto.wrap.context_manager.ContextSite.stopped',
    'interval, started': 'lens_auto.wrap.interval.IntervalSite.started',
    'interval, lapped': 'lens_auto.wrap.interval.IntervalSite.lapped',
    'logger': 'lens_auto.wrap.logger.LoggerSite.returned',
    'resource': 'lens_auto.wrap.resource.ResourceSite.returned',
    'expression': 'lens_auto.wrap.expression.local',
    'scalar': 'lens_auto.wrap.site.scalar',
    'recorder, open': 'lens_auto.record.recorder.Recorder.open',
    'recorder, close': 'lens_auto.record.recorder.Recorder.close',
    'recorder, detach': 'lens_auto.record.recorder.Recorder.detach',
    'recorder, point': 'lens_auto.record.recorder.Recorder.point',
    'recorder, report': 'lens_auto.record.recorder.Recorder.report',
    'journal, put': 'lens_auto.record.journal.Journal.put',
    'journal, segment': 'lens_auto.record.journal.Journal._open_segment',
    'fault': 'lens_auto.record.fault.Faults.take',
    'figures': 'lens_auto.hook.patches.Patches.figures',
}
PLANT = """
    import importlib
    def boom(*args, **kwargs): raise {error}
    path = {path!r}.split('.')
    for cut in range(len(path) - 1, 0, -1):
        try: found = importlib.import_module('.'.join(path[:cut]))
        except ImportError: continue
        for part in path[cut:-1]: found = getattr(found, part)
        getattr(found, path[-1])
        setattr(found, path[-1], boom)
        break
"""
SILENT = ('recorder, report', 'journal, put', 'journal, segment', 'fault')


@pytest.mark.parametrize(
    'error', ['RuntimeError("planted secret")', 'RecursionError()', 'MemoryError()', 'AttributeError("x")']
)
@pytest.mark.parametrize('part', FAULTS)
def test_a_planted_exception(tmp_path: Path, part: str, error: str) -> None:
    plant(tmp_path, part, error, '3.11')


@every_python
def test_a_planted_exception_on_every_python(tmp_path: Path, version: str) -> None:
    for number, part in enumerate(('site, leave', 'site, fail', 'timer, stopped', 'recorder, open')):
        plant(tmp_path / str(number), part, 'RuntimeError("planted secret")', version)


def plant(folder: Path, part: str, error: str, version: str) -> None:
    program = Program(folder, {'m.py': MODULE, 'main.py': MAIN})
    plain = program.plain(python=python(version))
    program.write({'sitecustomize.py': PLANT.format(path=FAULTS[part], error=error)})
    traced = program.traced(RULES, python=python(version))
    assert traced.visible() == plain.visible()
    told = traced.journal.reports('fault') + traced.journal.reports('missing')
    stood_down = [row for row in traced.processes if row[4] == 'stood_down']
    if error.startswith('Runtime') and part not in SILENT:
        assert told or stood_down
    assert 'secret' not in repr(told) + repr(stood_down)
