# SPDX-License-Identifier: Apache-2.0
"""The `interval` kind: start and stop, laps."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.program import Program, const, function, interval

MODULE = """
    class Clock:
        def begin(self, phase='p'): pass
        def end(self, phase='p'): return 7
        def lap(self, phase='p'): pass
    class Sub(Clock):
        def begin(self, phase='p'): super().begin(phase)
        def end(self, phase='p'): return super().end(phase)
        def lap(self, phase='p'): super().lap(phase)
    def begin(): pass
    def end(): pass
    def outer(f): return f()
    clock, sub = Clock(), Sub()
"""


def both(part: str) -> tuple[tuple[str, str], ...]:
    return (('m', f'Clock.{part}'), ('m', f'Sub.{part}'))


def rules(**fields: object) -> list[dict[str, Any]]:
    named = {
        'name': ('label',),
        'attributes': {'got': ('result',), 'phase': ('arg', 'phase')},
        'label_arg': 'phase',
        **fields,
    }
    return [
        interval('s', **{**named, 'attributes': {'got': ('result',)}}) | {'start': both('begin'), 'stop': both('end')},
        interval('l', **named) | {'lap': both('lap')},
        interval('f', start='m:begin', stop='m:end', name='free', current=bool(fields.get('current'))),
        function('o', 'm:outer', name='outer'),
    ]


CASES = {
    'start to stop': ('m.clock.begin(); m.clock.end()', 'p got=7'),
    'by label, overlapping': ('c = m.clock; c.begin("a"); c.begin("b"); c.end("a"); c.end("b")', 'a got=7\nb got=7'),
    'by object': ('a, b = m.Clock(), m.Clock(); a.begin(); b.begin(); a.end(); b.end()', 'p got=7\np got=7'),
    'functions': ('m.begin(); m.end(); m.end()', 'free'),
    'an override that calls super is one span': ('m.sub.begin(); m.sub.end()', 'p got=7'),
    'and one lap': ('m.sub.lap("a"); m.sub.lap("b")', "b phase='b'"),
    'laps': ('for phase in "abc": m.clock.lap(phase)', "b phase='b'\nc phase='c'"),
    'left open inside a span': ('m.outer(m.clock.begin)', 'outer\n  p lens.orphaned=True'),
    'left open with nothing around': ('m.clock.begin()', 'p...'),
    'a stop without a start': ('m.clock.end()', ''),
}


@pytest.mark.parametrize('case', CASES)
def test_interval(tmp_path: Path, case: str) -> None:
    source, expected = CASES[case]
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': 'import m\n' + source}).traced(rules())
    assert traced.journal.tree('got', 'phase', 'lens.orphaned') == expected
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []
    assert traced.visible() == ('', '', 0)


def test_an_interval_is_current_when_its_rule_says_so(tmp_path: Path) -> None:
    source = 'import m\nm.clock.begin("a"); m.begin(); m.end(); m.clock.end("a"); m.begin(); m.end()\n'
    source += 'm.outer(m.clock.begin); m.begin(); m.end()'
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': source}).traced(rules(current=True))
    assert traced.journal.tree('lens.orphaned') == 'a\n  free\nfree\nouter\n  p lens.orphaned=True\nfree'


def test_a_budget_counts_intervals_and_laps(tmp_path: Path) -> None:
    source = 'import m\nfor i in range(4): m.clock.begin(); m.clock.end(); m.clock.lap()'
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': source}).traced(rules(budget=2))
    assert sorted(traced.journal.names()) == ['p'] * 4
    assert [traced.journal.stats[key * 12][:2] + [traced.journal.stats[key * 12][4]] for key in 'sl'] == [
        [4, 2, 2],
        [4, 2, 1],
    ]


def test_a_label_argument_that_is_not_there_is_told(tmp_path: Path) -> None:
    rule = interval('s', start='m:begin', stop='m:end', label_arg='phase', name=const('x'))
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': 'import m; m.begin()'}).traced([rule])
    assert {r['reason'] for r in traced.journal.reports('missing')} == {'no parameter named phase'}
    assert traced.journal.spans == []


@pytest.mark.parametrize(('stop_at', 'tree'), [('return', 'start-up\n  train'), ('call', 'start-up\ntrain')])
def test_an_interval_may_end_where_its_stop_begins(tmp_path: Path, stop_at: str, tree: str) -> None:
    """A start-up is over when the training function is called, long before that returns."""
    module = 'def begin(): pass\ndef run(): train()\ndef train(): pass\n'
    start_up = interval('s', start='m:begin', stop='m:run', name='start-up', current=True, stop_at=stop_at)
    program = Program(tmp_path, {'m.py': module, 'main.py': 'import m\nm.begin()\nm.run()\n'})
    traced = program.traced([start_up, function('t', 'm:train', name='train')])
    assert traced.journal.tree() == tree
    assert [span.ended for span in traced.journal.spans] == [True, True]
