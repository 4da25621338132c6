# SPDX-License-Identifier: Apache-2.0
"""What each rule becomes in the source, before and after; the import block is left out."""

from __future__ import annotations

import pytest

from tests.unit.codemod.conftest import Desk

FUNCTION = """
- {kind: function, target: "mod:f", group: rollout, name: rl.f, attributes: {n: arg.n}}
- {kind: function, target: "mod:C.m", group: weird, name: "rl.{caller.function}", bucket: idle}
"""
TIMER = """
- kind: timer
  with: lib:Timer.time
  pair: lib:Timer.start/stop
  only_from: mod
  labels:
    gen: {group: generation, name: "rl.{label}", attributes: {where: caller.function}}
    "eval/*": evaluate
    fit: {group: policy_update, name: rl.fit}
  name: "rl.{label}"
"""
CALLED = """
- {kind: timer, with: "lib:Watch.__call__", name: "rl.{label}", labels: {gen: generation}}
"""
GOES_ON = """
- kind: timer
  with: lib:Timer.time
  pair: lib:Timer.start/stop
  labels: {step: {group: step, continues_over: [wait]}, gen: generation}
  name: "rl.{label}"
"""
LOOP = """
- {kind: loop, target: mod, match: "for $i in $x:", expect: 1+, group: step, name: rl.step}
"""
CASES = {
    'a decorator stands next to the def, under all others': (
        FUNCTION.replace('group: weird', 'group: rollout'),
        'import a\n\n@a.b\n# why\n@a.c(\n)\n# here\ndef f(n): return n\n',
        'import a\n\n\n@a.b\n# why\n@a.c(\n)\n# here\n'
        "@_lens_function('rl.f', group='rollout', attributes={'n': 'arg.n'})\ndef f(n): return n\n",
    ),
    'a method is a function, and the file keeps its tabs': (
        FUNCTION.replace('group: weird', 'group: rollout'),
        'class C:\n\tasync def m(self):\n\t\tpass',
        "\nclass C:\n\t@_lens_function('rl.{caller.function}', group='rollout', bucket='idle')\n"
        '\tasync def m(self):\n\t\tpass',
    ),
    'a timed block gets one more item, in parentheses and without': (
        TIMER,
        "def f(t):\n    with t.time('gen'), x as y:  # c\n        pass\n"
        "    with (\n        a,\n        t.time('eval/x'),  # d\n    ):\n        pass\n",
        "\ndef f(t):\n    with t.time('gen'), x as y, "
        "_lens_block('rl.gen', group='generation', attributes={'where': \"'f'\"}):  # c\n        pass\n"
        "    with (\n        a,\n        t.time('eval/x'), _lens_block('rl.eval/x', group='evaluate'),  # d\n"
        '    ):\n        pass\n',
    ),
    'a timer that is called itself is known by what makes it': (
        CALLED,
        'def f(w: Watch):\n    a = self.b = lib.Watch()\n    c = other()\n'
        "    with w('gen'): pass\n    with a('gen'): pass\n    with self.b('gen'): pass\n    with c('gen'): pass\n",
        '\ndef f(w: Watch):\n    a = self.b = lib.Watch()\n    c = other()\n'
        "    with w('gen'), _lens_block('rl.gen', group='generation'): pass\n"
        "    with a('gen'), _lens_block('rl.gen', group='generation'): pass\n"
        "    with self.b('gen'), _lens_block('rl.gen', group='generation'): pass\n    with c('gen'): pass\n",
    ),
    'a step that cannot go on in the next one ends with its block': (
        GOES_ON,
        "def f():\n    t = T()\n    with t.time('step'):\n        t.time\n        with t.time('wait'): pass\n"
        "        with t.time('gen'): pass\n        t.start('gen')\n        t.stop('gen')\n",
        "\ndef f():\n    t = T()\n    with t.time('step'), _lens_block('rl.step', group='step'):\n        t.time\n"
        "        with t.time('wait'): pass\n"
        "        with t.time('gen'), _lens_block('rl.gen', group='generation'): pass\n"
        "        t.start('gen')\n        _lens_begin(t, 'gen', 'rl.gen', group='generation')\n"
        "        t.stop('gen')\n        _lens_end(t, 'gen')\n",
    ),
    'a start and a stop get a line each': (
        TIMER,
        "def f(self):\n    self.t.start('fit')\n    x = self.t.stop('fit')",
        "\ndef f(self):\n    self.t.start('fit')\n    _lens_begin(self.t, 'fit', 'rl.fit', group='policy_update')\n"
        "    x = self.t.stop('fit')\n    _lens_end(self.t, 'fit')",
    ),
    'the body of a loop goes in by one level, strings and comments further out do not': (
        LOOP,
        'for i in x:\n    # c\n    a = """\n  b\n"""\n\n# out\n    b(\n  c)\n    # end\nelse:\n    d()\n',
        "\nfor i in x:\n    with _lens_block('rl.step', group='step'):\n"
        '        # c\n        a = """\n  b\n"""\n\n# out\n        b(\n  c)\n    # end\nelse:\n    d()\n',
    ),
    'a loop on one line gets a block on the next': (
        LOOP,
        'for i in x: a(); b()  # c\n',
        "\nfor i in x:\n    with _lens_block('rl.step', group='step'): a(); b()  # c\n",
    ),
    'a loop whose body is one block needs no new level': (
        LOOP,
        'for i in x:\n    with a:\n        b()\n',
        "\nfor i in x:\n    with _lens_block('rl.step', group='step'), a:\n        b()\n",
    ),
}


@pytest.mark.parametrize('name', CASES)
def test_before_and_after(name: str, desk: Desk) -> None:
    rules, before, after = CASES[name]
    desk.put(rules, {'mod.py': before})
    places = after.count('_lens_')
    assert desk.run('apply', '--write', '.')[:2] == (0, f'mod.py: {places} place{"s" if places > 1 else ""}\n')
    assert desk.body('mod.py') == after
    assert desk.run('check', '.')[0] == 0
    assert desk.run('apply', '--write', '.')[1] == 'nothing to change\n'
    assert desk.run('revert', 'mod.py')[0] == 0
    assert desk.text('mod.py') == before


@pytest.mark.parametrize(
    'body',
    [
        "    try: g()\n    finally: t.stop('fit')\n",
        "    if t: t.stop('fit')\n",
        "    return t.stop('fit')\n",
        "    t.stop('fit')\n    return t.stop('fit')\n",
        '    later(t)\n',
    ],
)
def test_a_start_whose_stop_cannot_be_written_is_not_written_either(desk: Desk, body: str) -> None:
    desk.put(TIMER, {'mod.py': f"def f(t):\n    t.start('fit')\n{body}"})
    code, out, said = desk.run('apply', '--write', '.')
    assert (code, out) == (0, 'nothing to change\n')
    assert 'mod.py:2' in said and '`fit` is not stopped in this file by a statement on a line of its own' in said


def test_each_end_of_an_interval_is_written(desk: Desk) -> None:
    rule = "- {kind: interval, start: 'mod:C.begin', stop: ['mod:f', 'mod:g', 'mod:h'], group: setup, name: rl.x}"
    desk.put(rule, {'mod.py': 'class C(Base): pass\ndef f(): pass\ndef h(): pass\n'})
    code, out, said = desk.run('apply', '--write', '.')
    assert (code, out) == (0, 'mod.py: 3 places\n')
    assert 'mod.py: not written: there is no g here' in said
    stop = "@_lens_interval('stop', 'rl.x', group='setup')\n"
    assert desk.body('mod.py').endswith(f'class C(Base): pass\n{stop}def f(): pass\n{stop}def h(): pass\n')


def test_a_group_of_a_rule_file_takes_its_bucket_along(desk: Desk) -> None:
    desk.put("- {kind: function, target: 'mod:f', group: mine, name: x}", {'mod.py': 'def f(): pass\n'})
    rules = desk.text('lens.yaml').replace('rules:', 'groups: {mine: {bucket: wasted}}\nrules:')
    desk.put('', {'lens.yaml': rules})
    desk.run('apply', '--write', 'mod.py')
    assert "@_lens_function('x', group='mine', group_bucket='wasted')\n" in desk.text('mod.py')


def test_what_a_class_has_from_elsewhere_is_said_of_the_class(desk: Desk) -> None:
    source = 'import dataclasses\n\n@dataclasses.dataclass\nclass C:\n    x: int\n'
    desk.put("- {kind: resource, target: 'mod:C.__init__', attributes: {x: self.x}}", {'mod.py': source})
    desk.run('apply', '--write', 'mod.py')
    assert "@_lens_resource(attributes={'x': 'self.x'}, method='__init__')\n@dataclasses.dataclass\n" in desk.text(
        'mod.py'
    )


def test_variables_and_a_result_are_said_with_the_rule(desk: Desk) -> None:
    rules = """
    - {kind: function, target: "mod:f", group: step, name: "rl.{algo}",
       attributes: {size: len(result), k: "'text'", n: 3}}
    """
    desk.put(rules, {'mod.py': 'def f(): pass\n'})
    variables = 'vars: {algo: {value: caller.module, map: {a: b}, default: rl}}\nrules:'
    desk.put('', {'lens.yaml': desk.text('lens.yaml').replace('rules:', variables)})
    desk.run('apply', '--write', 'mod.py')
    text = desk.text('mod.py')
    assert "attributes={'size': 'len(result)', 'k': \"'text'\", 'n': 3}" in text
    assert "vars={'algo': ('caller.module', {'a': 'b'}, 'rl')}" in text


def test_only_the_groups_asked_for_are_written(desk: Desk) -> None:
    desk.put(FUNCTION.replace('weird', 'step'), {'mod.py': 'def f(n): pass\nclass C:\n    def m(self): pass\n'})
    assert desk.run('apply', '--span-groups', 'step', '--write', '.')[1] == 'mod.py: 1 place\n'
    assert 'rl.{caller.function}' in desk.text('mod.py') and 'rl.f' not in desk.text('mod.py')
    code, _, said = desk.run('apply', '--span-groups', 'stp', '.')
    assert code == 2 and said.startswith('lens-codemod: span group `stp` is not known\n    known: ')
