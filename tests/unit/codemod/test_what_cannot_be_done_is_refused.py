# SPDX-License-Identifier: Apache-2.0
"""What is left out, and what is said of it."""

from __future__ import annotations

import pytest

from tests.unit.codemod.conftest import Desk

FUNCTION = "- {kind: function, target: 'mod:f', group: rollout, name: rl.f}\n"
LOOP = "- {kind: loop, target: 'mod:f', match: 'for $i in $x:', group: step, name: rl.step}\n"
TIMER = """
- kind: timer
  with: lib:Timer.time
  pair: lib:Timer.start/stop
  labels:
    gen: generation
    poll: {group: step, continues_over: [wait]}
    mine: {group: step, attributes: {n: arg.other}}
  name: "rl.{label}"
"""
CALLED = "- {kind: timer, with: 'lib:Watch.__call__', name: 'rl.{label}', labels: {gen: generation}}\n"
WHERE = {
    'only_from': FUNCTION.replace('rl.f}', 'rl.f, only_from: other}'),
    'within': FUNCTION.replace('rl.f}', "rl.f, within: 'mod:g'}"),
    'outside': FUNCTION.replace('rl.f}', "rl.f, outside: 'mod:g'}"),
}
CASES = {
    ('lens', LOOP, 'def f(x):\n    for i in x:\n        yield i\n'): 'mod.py:2: not written: there is a `yield` in it',
    (
        'lens',
        FUNCTION,
        'import torch\n@torch.compile\ndef f(): pass\n',
    ): 'torch.compile reads f: it is better left alone',
    ('lens', FUNCTION, 'import torch\ndef f(): pass\ng = torch.jit.script(f)\n'): 'torch.jit.script reads f',
    (
        'lens',
        FUNCTION,
        'from other import f\nf\n',
    ): 'f is not defined here, only named: name the module that defines it',
    ('lens', FUNCTION, 'x = 1\n'): 'there is no f here',
    ('lens', FUNCTION, 'def f(): _lens_x\n'): 'left alone: it uses _lens_x already',
    ('lens', TIMER, 'with t.time(gen): pass\n'): 'mod.py:1: not written: the label is not written here as text',
    ('lens', TIMER, "with t.time('poll'): pass\n"): 'needs the rule at run time',
    (
        'lens',
        TIMER,
        "for x in y:\n    with t.time('poll'):\n        if not x: continue\n        with t.time('of no rule'): pass\n",
    ): 'mod.py:2: not written: a span that goes on in the next block',
    ('lens', CALLED, "def f(watch):\n    with watch('gen'): pass\n"): '`watch` is the timer shows at run time only',
    ('lens', TIMER, "with t.time('mine'): pass\n"): '`arg.other` is known at run time only',
    ('otel', FUNCTION, 'def f(): yield\n'): 'mod.py:1: not written: this is a generator',
    ('otel', TIMER, "def f():\n    t.start('gen')\n    if x:\n        t.stop('gen')\n"): 'stops in another block',
    ('otel', TIMER, "async def f():\n    async with t.time('gen'): pass\n"): 'this is an `async with`',
    (
        'otel',
        "- {kind: resource, target: 'mod:f', attributes: {n: arg.n}}",
        'def f(n): pass\n',
    ): 'no words for resource',
    ('otel', FUNCTION.replace('rl.f', '"rl.{arg.n}"'), 'def f(n): pass\n'): 'known at run time only: style lens',
    ('nemo-lens', FUNCTION, 'async def f(): pass\n'): 'mod.py:1: not written: this is a coroutine function',
}


DYNAMIC = {
    'a name': 'def f(timer, name):\n    with timer.time(name):\n        pass\n',
    'an f-string': 'def f(self, n):\n    with self.timer.time(f"head_{n}"):\n        pass\n',
    'the last line of a call': 'from lib import Timer\nt = Timer()\nt.start(\n    which()\n)\nt.stop(which())\n',
}


@pytest.mark.parametrize('how', DYNAMIC)
def test_a_file_that_has_only_labels_known_at_run_time_is_told_of(desk: Desk, how: str) -> None:
    desk.put(TIMER, {'mod.py': DYNAMIC[how], 'other.py': 'import time\nx = time.time()\nthread.start(x)\n'})
    code, out, said = desk.run('apply', '--write', '.')
    assert (code, out) == (0, 'nothing to change\n')
    assert 'not written: the label is not written here as text' in said and 'mod.py:' in said
    assert 'lens.yaml:4 asks for it' in said and 'other.py' not in said


@pytest.mark.parametrize('style', ['otel', 'nemo-lens'])
@pytest.mark.parametrize('key', WHERE)
def test_a_span_for_some_calls_only_is_not_written_for_all(desk: Desk, key: str, style: str) -> None:
    desk.put(WHERE[key], {'mod.py': 'def g(): pass\ndef f(): pass\n'})
    code, out, said = desk.run('apply', '--style', style, '--write', 'mod.py')
    assert (code, out) == (0, 'nothing to change\n')
    assert f'mod.py:2: not written: which calls `{key}` means shows at run time only' in said
    assert desk.run('apply', '--style', 'lens', '--write', 'mod.py')[1] == 'mod.py: 1 place\n'


@pytest.mark.parametrize('case', CASES, ids=lambda case: f'{case[0]} {CASES[case][-30:]}')
def test_refused_with_the_reason_and_the_rule(case: tuple[str, str, str], desk: Desk) -> None:
    style, rules, source = case
    desk.put(rules, {'mod.py': source})
    code, out, said = desk.run('apply', '--style', style, '--write', 'mod.py')
    assert CASES[case] in said, said
    assert 'lens.yaml:' in said or code == 1
    assert (code, out) == (int('left alone' in said and 'better' not in said), 'nothing to change\n')
    assert desk.text('mod.py') == source


def test_attributes_without_words_are_left_out_and_said(desk: Desk) -> None:
    rules = FUNCTION.replace('rl.f}', 'rl.f, budget: 3, attributes: {n: arg.n, r: result, t: total(arg.n)}}')
    desk.put(rules, {'mod.py': 'def f(n):\n    """Doc."""\n'})
    code, _, said = desk.run('apply', '--style', 'otel', '--write', '.')
    assert code == 0
    assert 'the span is written without its `budget`' in said
    assert 'the span is written without r: `result`' in said and 'without t: `total()`' in said
    assert desk.body('mod.py').endswith('"""Doc."""\n    _lens_set({\'n\': lambda: n})\n') or desk.body(
        'mod.py'
    ).endswith('"""Doc."""\n    _lens_set({\'n\': n})\n')


@pytest.mark.parametrize('what', ['x = ' + ' + '.join('x' * 3000), 'x = ' + ' '.join(["'x'"] * 3000)])
def test_a_file_too_deep_for_the_parser_is_left_alone(desk: Desk, what: str) -> None:
    desk.put(FUNCTION, {'mod.py': f'def f(): pass\n{what}\n'})
    code, out, said = desk.run('apply', '--write', '.')
    assert (code, out) == (1, 'nothing to change\n')
    assert 'mod.py: left alone: it is nested too deep for the parser' in said


def test_a_file_that_is_no_python_is_left_alone(desk: Desk) -> None:
    desk.put(FUNCTION, {'mod.py': 'def f(:\n'})
    code, _, said = desk.run('apply', '--write', '.')
    assert code == 1 and 'mod.py: left alone: syntax error in line 1' in said


def test_a_wrong_rule_file_and_a_missing_path_are_the_users_to_mend(desk: Desk) -> None:
    desk.put('- {kind: function}', {'mod.py': ''})
    assert desk.run('apply', '.')[0] == 2
    code, _, said = desk.run('apply', 'nowhere')
    assert code == 2 and said == 'lens-codemod: nowhere: no such file or folder\n'


def test_a_rule_without_a_place_is_told(desk: Desk) -> None:
    desk.put(FUNCTION + FUNCTION.replace('mod:f', 'other:g'), {'mod.py': 'def f(): pass\n'})
    assert 'lens.yaml:4: this function rule has no place here' in desk.run('apply', '.')[2]
