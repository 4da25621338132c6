# SPDX-License-Identifier: Apache-2.0
"""`lens_auto.span` and its kin: part of the same trace under the launcher, nothing at all without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.program import Program, function

PROGRAM = """
import asyncio
import lens_auto

@lens_auto.trace('outer', size=3)
def outer():
    with lens_auto.span('inner', kept='x', dropped=[1]) as inner:
        inner.set_attribute('late', 2.5)
        lens_auto.event('happened', times=1)
        lens_auto.metric('queue.length', 4, unit='{item}', name='left')
        return 7

@lens_auto.trace('task')
async def task():
    lens_auto.set_attribute('on', True)
    return 'awaited'

print(outer(), asyncio.run(task()), outer.__name__)
try:
    with lens_auto.span('failing'):
        raise ValueError('a secret')
except ValueError as error:
    print(error)
"""


def test_by_hand_spans_nest_and_carry_what_was_set(tmp_path: Path) -> None:
    program = Program(tmp_path, {'main.py': PROGRAM})
    traced = program.traced([])
    assert traced.visible() == program.plain().visible()
    outer, inner, task, failing = traced.journal.spans
    assert [s.name for s in (outer, inner, task, failing)] == ['outer', 'inner', 'task', 'failing']
    assert (inner.parent, inner.trace) == (outer.id, outer.trace)
    assert outer.attributes == {'size': 3}
    assert inner.attributes == {'kept': 'x', 'late': 2.5}
    assert inner.events == [('happened', {'times': 1})]
    assert task.attributes == {'on': True}
    assert failing.error and failing.events[0][1]['exception.type'] == 'ValueError'
    assert 'a secret' not in repr(traced.journal.records)
    (point,) = [r for r in traced.journal.records if r[0] == 3]
    assert point[2:7] == ('queue.length', 'gauge', '{item}', 4, {'name': 'left'})
    assert point[9] == inner.id


def test_by_hand_spans_join_those_of_rules(tmp_path: Path) -> None:
    files = {'lib.py': 'def run(f): return f()', 'main.py': 'import lib, lens_auto\nlib.run(lens_auto.trace("x")(int))'}
    ruled, by_hand = Program(tmp_path, files).traced([function('r', 'lib:run')]).journal.spans
    assert (ruled.name, by_hand.name, by_hand.parent) == ('r', 'x', ruled.id)


@pytest.mark.parametrize('setting, names', [('LENS_TRACES_ENABLED', ['queue.length']), ('LENS_METRICS_ENABLED', [])])
def test_what_is_off_is_off_by_hand_too(tmp_path: Path, setting: str, names: list[str]) -> None:
    traced = Program(tmp_path, {'main.py': PROGRAM}).traced([], **{setting: '0'})
    assert [r[2] for r in traced.journal.records if r[0] == 3] == names
    assert bool(traced.journal.spans) is (setting != 'LENS_TRACES_ENABLED')


def test_a_generator_is_refused_and_a_wrong_instrument_too(tmp_path: Path) -> None:
    source = """
    import lens_auto
    def gen(): yield
    metric = lens_auto.metric
    for wrong in (lambda: lens_auto.trace('x')(gen), lambda: lens_auto.trace(gen), lambda: metric('x', 1, 'guage')):
        try:
            wrong()
        except (TypeError, ValueError) as error:
            print(error)
    """
    printed = Program(tmp_path, {'main.py': source}).plain().stdout.splitlines()
    assert printed == [
        'trace() cannot wrap the generator function gen: use span() inside it',
        "trace() takes the span's name: @trace('name')",
        "instrument is 'guage'; it can be 'gauge', 'counter' or 'histogram'",
    ]
