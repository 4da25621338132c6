# SPDX-License-Identifier: Apache-2.0
"""The `metric` kind: points from what a call returned, was given, and took."""

from pathlib import Path

from tests.helpers.program import Program, const, function, measures

MODULE = """
    import asyncio, time
    class Engine:
        name = 'tiny'
        def generate(self, prompts, fail=False):
            time.sleep(0.02)
            if fail: raise ValueError
            return {'lengths': [len(prompt) for prompt in prompts]}
        async def agenerate(self, prompts):
            await asyncio.sleep(0)
            return {'lengths': [1]}
        def stream(self, prompts): yield from prompts
    engine = Engine()
"""
TOTAL = ('call', 'total', (('.', ('result',), 'lengths'),))
USAGE = {'name': 'usage', 'value': TOTAL, 'unit': '{token}', 'attributes': {'model': ('.', ('self',), 'name')}}
TIME = {'name': 'time', 'value': ('elapsed',), 'unit': 's'}
ASKED = {'name': 'asked', 'value': ('call', 'len', (('arg', 'prompts'),)), 'instrument': 'counter'}


def test_points_of_calls(tmp_path: Path) -> None:
    source = (
        'import m\nprint(m.engine.generate(["a", "bc"]))\n'
        'try: m.engine.generate([], fail=True)\nexcept ValueError as error: print(error.__traceback__.tb_lineno)\n'
        'print(m.asyncio.run(m.engine.agenerate([])))\n'
    )
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    rules = [
        measures('g', 'm:Engine.generate', USAGE, TIME, ASKED),
        measures('a', 'm:Engine.agenerate', USAGE),
        function('s', 'm:Engine.generate', name='span'),
    ]
    traced = program.traced(rules)
    assert traced.visible() == program.plain().visible()
    (usage, time, asked, later) = traced.journal.points
    assert (usage, asked, later) == (
        ('usage', 3, {'model': 'tiny'}),
        ('asked', 2, {}),
        ('usage', 1, {'model': 'tiny'}),
    )
    assert time[0] == 'time' and 0.02 <= time[1] < 10
    assert traced.journal.instruments == {
        'usage': ('histogram', '{token}'),
        'time': ('histogram', 's'),
        'asked': ('counter', ''),
    }
    assert traced.journal.tree() == 'span\nspan!'
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []


def test_what_cannot_be_measured_is_left_out_and_counted(tmp_path: Path) -> None:
    program = Program(
        tmp_path, {'m.py': MODULE, 'main.py': 'import m\nm.engine.generate(["a"])\nlist(m.engine.stream("a"))\n'}
    )
    wrong = {'name': 'wrong', 'value': ('.', ('result',), 'nothing')}
    text = {'name': 'text', 'value': const('no number')}
    traced = program.traced(
        [measures('g' * 12, 'm:Engine.generate', wrong, text, ASKED), measures('s', 'm:Engine.stream', TIME)]
    )
    assert traced.journal.points == [('asked', 1, {})]
    assert traced.journal.stats['g' * 12][5] == 2
    (missing,) = traced.journal.reports('missing')
    assert 'generator' in missing['reason']


def test_off_is_off(tmp_path: Path) -> None:
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': 'import m\nprint(m.Engine.generate.__code__.co_names)\n'})
    rules = [measures('g', 'm:Engine.generate', USAGE)]
    assert program.traced(rules, LENS_METRICS_ENABLED='0').visible() == program.plain().visible()
    assert program.traced(rules, LENS_TRACES_ENABLED='0').visible() != program.plain().visible()


def test_a_value_that_fails_costs_its_point_only(tmp_path: Path) -> None:
    source = 'import m\nfor prompts in (["a"], [], ["b"]): m.engine.generate(prompts)\n'
    mean = {'name': 'mean', 'value': ('call', 'mean', (('.', ('result',), 'lengths'),))}
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': source}).traced([measures('g', 'm:Engine.generate', mean)])
    assert [point[:2] for point in traced.journal.points] == [('mean', 1.0), ('mean', 1.0)]


def test_arguments_that_nothing_reads_do_not_live_longer(tmp_path: Path) -> None:
    module = """
        import weakref
        class Batch: pass
        class Engine:
            name = 'tiny'
            def generate(self, batch, count):
                gone = weakref.ref(batch)
                del batch
                return gone() is None
        def run(engine): return engine.generate(Batch(), 3)
    """
    program = Program(tmp_path, {'m.py': module, 'main.py': 'import m\nprint(m.run(m.Engine()))\n'})
    of = {'model': ('.', ('self',), 'name')}
    rule = measures('g', 'm:Engine.generate', {'name': 'n', 'value': ('arg', 'count'), 'attributes': of})
    traced = program.traced([rule])
    assert (traced.stdout, traced.journal.points) == (program.plain().stdout, [('n', 3, {'model': 'tiny'})])
