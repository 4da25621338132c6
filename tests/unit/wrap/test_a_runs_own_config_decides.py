# SPDX-License-Identifier: Apache-2.0
"""The `resource` kind: attributes of the run, and a `telemetry:` block that switches rules on and off in place."""

from pathlib import Path

import pytest

from tests.helpers.program import Program, const, function, label, logger, metric, plan_of, resource, timer

MODULE = """
    import contextlib, dataclasses
    class Config:
        def __init__(self, telemetry=None, model='small'):
            self.telemetry, self.model, self.sizes = telemetry, model, {'batch': 8}
    def load(telemetry): return {'telemetry': telemetry, 'model': 'loaded'}
    @dataclasses.dataclass
    class Block:
        enabled: bool = True
        span_groups: str = 'b'
    class Mapping:
        def __init__(self, **kw): self.kw = kw
        def __getattr__(self, name):
            try: return self.__dict__['kw'][name]
            except KeyError: raise AttributeError(name)
    class Timer:
        @contextlib.contextmanager
        def time(self, label): yield
    def a(): pass
    def b(): pass
    def log(metrics): pass
    def all():
        a(); b(); log({'loss': 1})
        with Timer().time('b'): pass
"""
RULES = [
    resource(
        'c',
        'm:Config.__init__',
        ('.', ('self',), 'telemetry'),
        model=('.', ('self',), 'model'),
        batch=('.', ('.', ('self',), 'sizes'), 'batch'),
    ),
    resource('d', 'm:load', ('.', ('result',), 'telemetry'), model=('.', ('result',), 'model')),
    function('a', 'm:a', group='a'),
    function('b', 'm:b', group='b'),
    logger('l', 'm:log', {'loss': metric('rl.loss')}),
    timer('t', ['m:Timer.time'], labels={'b': label('timed', group='b')}),
]
PROVISIONAL = 'enabled,span_groups,traces_enabled,metrics_enabled,export_strategy,export_rank'
BOTH_ON = ['a', 'b', 'timed']

BLOCKS = {
    'nothing said': ('None', ['a'], ['a'], 1),
    'empty': ('{}', ['a'], ['a'], 1),
    'another group': ('{"span_groups": "b"}', ['a'], ['b', 'timed'], 1),
    'one group more': ('{"span_groups": "a,b"}', ['a'], BOTH_ON, 1),
    'everything': ('{"span_groups": "all"}', ['a'], BOTH_ON, 1),
    'off': ('{"enabled": False}', ['a'], [], 0),
    'off, as text': ('{"enabled": "off"}', ['a'], [], 0),
    'no traces': ('{"traces_enabled": False}', ['a'], [], 1),
    'no metrics': ('{"metrics_enabled": False}', ['a'], ['a'], 0),
    'an object': ('m.Block()', ['a'], ['b', 'timed'], 1),
    'a mapping of its own': ('m.Mapping(span_groups="b")', ['a'], ['b', 'timed'], 1),
    'a group nobody knows': ('{"span_groups": "nonsense"}', ['a'], [], 1),
    'nonsense': ('{"enabled": "perhaps", "other": object()}', ['a'], ['a'], 1),
    'no block at all': ('3', ['a'], ['a'], 1),
}


@pytest.mark.parametrize('how', ['m.Config({block})', 'm.load({block})'])
@pytest.mark.parametrize('block', BLOCKS)
def test_a_telemetry_block_patches_and_unpatches_in_place(tmp_path: Path, block: str, how: str) -> None:
    text, before, after, points = BLOCKS[block]
    source = f'import m\nm.all()\nmade = {how.format(block=text)}\nm.all()\nprint(m.a.__code__.co_names)'
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    traced = program.traced(plan_of(RULES, 'ab'), LENS_SPAN_GROUPS='a', LENS_PROVISIONAL=PROVISIONAL)
    assert (traced.stderr, traced.code) == ('', 0)
    assert traced.journal.names() == before + after
    assert len(traced.journal.points) == 1 + points
    assert [f for f in traced.journal.reports('fault') if f['where'] != 'span_groups'] == []
    if 'a' not in after:
        assert traced.stdout == program.plain().stdout
    expected = {'model': 'small', 'batch': 8} if 'Config' in how else {'model': 'loaded'}
    assert traced.journal.resources == [expected]


def test_a_process_that_is_off_can_be_switched_on(tmp_path: Path) -> None:
    source = 'import m, os\nm.all()\nm.Config({"enabled": True, "span_groups": "all"})\nm.all()\n'
    source += 'print(os.environ["LENS_SPAN_GROUPS"])'
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    traced = program.traced(
        plan_of(RULES, 'ab'), LENS_ENABLED='1', LENS_SPAN_GROUPS='default', LENS_PROVISIONAL=PROVISIONAL
    )
    assert traced.journal.names() == BOTH_ON
    assert traced.stdout == 'all\n'  # children of this process get the settings as they are now
    assert traced.journal.reports('settings') == [{'span_groups': 'all'}]


def test_fields_that_a_stronger_source_has_set_stay(tmp_path: Path) -> None:
    source = 'import m\nm.Config({"enabled": False, "span_groups": "b"})\nm.all()'
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    traced = program.traced(plan_of(RULES, 'ab'), LENS_SPAN_GROUPS='a', LENS_PROVISIONAL='')
    assert traced.journal.names() == ['a']


@pytest.mark.parametrize(
    ('ranks', 'expected'),
    [({}, ['a']), ({'RANK': '0', 'WORLD_SIZE': '2'}, ['a']), ({'RANK': '1', 'WORLD_SIZE': '2'}, [])],
)
def test_a_rank_that_does_not_export_is_left_alone(tmp_path: Path, ranks: dict[str, str], expected: list[str]) -> None:
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': 'import m\nm.all()\nprint(m.a.__code__.co_names)'})
    settings = {'LENS_SPAN_GROUPS': 'a', 'LENS_EXPORT_STRATEGY': 'single_rank', 'LENS_EXPORT_RANK': '0'}
    traced = program.traced(plan_of(RULES, 'ab'), **settings, **ranks)
    assert traced.journal.names() == expected
    if not expected:
        assert traced.stdout == program.plain().stdout


def test_a_file_applies_where_its_framework_is_installed(tmp_path: Path) -> None:
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': 'import m\nm.all()', 'framework.py': ''})
    for module, version, expected in (
        ('framework', None, ['a']),
        ('absent', None, []),
        ('pip', '>=1', ['a']),
        ('pip', '<1', []),
    ):
        plan = plan_of([function('a', 'm:a')], when={'module': module, 'version': version})
        traced = program.traced(plan)
        assert (traced.journal.names(), traced.code) == (expected, 0), (module, version)
        assert bool(traced.journal.reports('missing')) is not bool(expected)
    assert const(1) == ('c', 1)
