# SPDX-License-Identifier: Apache-2.0
"""The `function` kind: names, attributes, alternatives, budgets, groups, root traces."""

from pathlib import Path

import pytest

from tests.helpers.program import Program, const, function, label, plan_of, timer

MODULE = """
    import functools
    class Trainer:
        def __init__(self, algo='grpo'):
            self.cfg = {'algo': algo, 'lr': 0.5}
        def fit(self, steps, *rest, batch=4, **extra):
            return {'loss': 0.25, 'tokens': [1, 2]}
        @functools.lru_cache
        def cached(self, n): return n
    def run(step): return step
    def calls(f, *a, **k): return f(*a, **k)
    def shield(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs): return f(*args, **kwargs)
        return wrapper
    class Shielded:
        k = 7
        @shield
        def fit(self, steps=1): return steps
        @shield
        @shield
        async def a_fit(self, steps=1): return steps
    class Heir(Shielded): pass
    @shield
    def free(a, b=2): return a
    alias = run
    builtin = len
"""
ALGO = {'algo': {'value': ('.', ('.', ('self',), 'cfg'), 'algo'), 'map': {'grpo': 'g'}, 'default': 'other'}}


def traced(
    folder: Path,
    source: str,
    *rules: dict[str, object],
    groups: tuple[str, ...] = (),
    vars: object = None,
    **environ: str,
):
    program = Program(folder, {'m.py': MODULE, 'main.py': 'import m\n' + source})
    outcome = program.traced(plan_of(rules, groups, vars=vars or {}), **environ)
    assert outcome.visible() == program.plain().visible()
    return outcome.journal


def test_attributes_are_read_from_arguments_result_frame_caller_and_environment(tmp_path: Path) -> None:
    attributes = {
        'steps': ('arg', 'steps'),
        'batch': ('arg', 'batch'),
        'extra': ('arg', 'x'),
        'rest': ('[]', ('arg', 'rest'), const(0)),
        'lr': ('.', ('.', ('self',), 'cfg'), 'lr'),
        'loss': ('.', ('result',), 'loss'),
        'tokens': ('call', 'len', (('.', ('result',), 'tokens'),)),
        'epoch': ('+', ('frame', 'epoch'), const(1)),
        'function': ('caller', 'function'),
        'module': ('caller', 'module'),
        'rank': ('env', 'RANK'),
        'fixed': const('x' * 1000),
        'absent': ('.', ('self',), 'nothing'),
        'fails': ('/', const(1), const(0)),
    }
    source = 'def loop():\n    epoch = 4\n    m.Trainer().fit(3, 9, x="y")\nloop()'
    rule = function('f', 'm:Trainer.fit', attributes=attributes, group='g', bucket='productive')
    journal = traced(tmp_path, source, rule, groups=('g',), RANK='2')
    (span,) = journal.spans
    assert span.attributes == {
        **{
            'steps': 3,
            'batch': 4,
            'extra': 'y',
            'rest': 9,
            'lr': 0.5,
            'loss': 0.25,
            'tokens': 2,
            'epoch': 5,
            'rank': '2',
        },
        **{'function': 'loop', 'module': '__main__', 'fixed': 'x' * 256, 'lens.group': 'g', 'rl.bucket': 'productive'},
    }
    assert journal.stats['f' * 12] == [1, 1, 0, span.duration, 0, 2, 0]
    # An expression that divides by zero is a mistake in the rule: told once, and the rule goes on.
    assert [(f['where'], f['type']) for f in journal.reports('fault')] == [('attribute', 'ZeroDivisionError')]


def test_names_are_templates_over_variables(tmp_path: Path) -> None:
    name = ('fmt', (const('rl.'), ('var', 'algo'), const('.fit')))
    journal = traced(
        tmp_path, 'm.Trainer().fit(1); m.Trainer("ppo").fit(1)', function('f', 'm:Trainer.fit', name=name), vars=ALGO
    )
    assert journal.names() == ['rl.g.fit', 'rl.other.fit']


def test_of_several_targets_the_first_that_is_there_is_patched(tmp_path: Path) -> None:
    rule = function('f', 'm:moved', 'm:run', 'm:calls')
    journal = traced(tmp_path, 'm.calls(m.run, 1)', rule)
    assert journal.names() == ['f']
    assert [r['target'] for r in journal.reports('patched')] == ['m:run']


def test_a_budget_ends_the_spans_not_the_calls(tmp_path: Path) -> None:
    journal = traced(
        tmp_path, 'for i in range(5): m.calls(m.run, i)', function('f', 'm:run', budget=2), function('c', 'm:calls')
    )
    assert journal.tree() == 'c\n  f\nc\n  f\nc\nc\nc'
    assert journal.stats['f' * 12][:2] + [journal.stats['f' * 12][4]] == [5, 2, 3]


def test_only_from_names_the_modules_of_callers(tmp_path: Path) -> None:
    rules = [function('f', 'm:run', only_from=('m',)), function('g', 'm:alias', only_from=('__main__', 'x.*'))]
    journal = traced(tmp_path, 'm.run(1); m.calls(m.run, 2); m.calls(lambda: m.run(3))', rules[0])
    assert journal.names() == ['f']
    assert (
        traced(tmp_path / 'g', 'm.run(1); m.calls(m.run, 2); m.calls(lambda: m.run(3))', rules[1]).names() == ['g'] * 2
    )


def test_a_root_has_a_trace_of_its_own_and_links(tmp_path: Path) -> None:
    rules = [function('f', 'm:run', root=True), function('c', 'm:calls')]
    journal = traced(tmp_path, 'm.run(1); m.calls(m.run, 1); m.calls(m.run, 1)', *rules)
    roots = [span for span in journal.spans if span.name == 'f']
    assert len({root.trace for root in roots}) == 3 and {root.parent for root in roots} == {b''}
    assert [[link[2]['lens.link'] for link in root.links] for root in roots] == [
        ['run'],
        ['run', 'enclosing'],
        ['run', 'enclosing'],
    ]


def test_a_rule_that_does_not_announce_leaves_no_opening_record(tmp_path: Path) -> None:
    journal = traced(tmp_path, 'm.run(1)', function('f', 'm:run', announce=False))
    assert journal.names() == ['f'] and not any(record[0] == 1 for record in journal.records)


def test_a_group_that_is_off_leaves_the_same_function_and_code(tmp_path: Path) -> None:
    source = 'print(m.run.__code__.co_consts, m.run.__code__.co_varnames); m.run(1)'
    journal = traced(tmp_path, source, function('f', 'm:run', group='off'), groups=('off', 'on'), LENS_SPAN_GROUPS='on')
    assert journal.spans == [] and journal.reports('patched') == []


def test_two_rules_on_one_function_are_two_spans_and_two_names_for_it_one(tmp_path: Path) -> None:
    journal = traced(
        tmp_path, 'm.run(1)', function('f', 'm:run'), function('g', 'm:alias'), function('h', 'm:alias', name='g')
    )
    assert journal.tree() == 'g\n  f'


@pytest.mark.parametrize(
    ('target', 'reason'),
    [
        ('m:absent', 'no absent (of absent)'),
        ('m:Trainer.absent', 'class Trainer has no absent'),
        ('m:Trainer', 'Trainer is a class: name one of its methods, such as Trainer.__init__'),
        ('m:builtin', 'builtin is a builtin_function_or_method without Python code'),
    ],
)
def test_a_target_that_is_not_there_is_told_with_the_reason(tmp_path: Path, target: str, reason: str) -> None:
    journal = traced(tmp_path, 'm.run(1)', function('f', target))
    assert [(r['target'], r['reason']) for r in journal.reports('missing')] == [(target, reason)]


def test_a_decorator_that_only_passes_on_is_looked_through(tmp_path: Path) -> None:
    steps = {'steps': ('arg', 'steps'), 'k': ('.', ('self',), 'k')}
    rules = [
        function('f', 'm:Shielded.fit', attributes=steps),
        function('a', 'm:Shielded.a_fit', attributes=steps),
        function('h', 'm:Heir.fit', name='heir'),
        function('g', 'm:free', attributes={'b': ('arg', 'b')}),
    ]
    source = (
        'import asyncio, time\ns = m.Shielded()\ns.fit(3)\nasyncio.run(s.a_fit(steps=4))\nm.free(1)\nm.Heir().fit(5)\n'
        'print(m.Shielded.fit.__wrapped__.__name__)'
    )
    journal = traced(tmp_path, source, *rules)
    assert journal.tree('steps', 'k', 'b') == 'f steps=3 k=7\na steps=4 k=7\ng b=2\nheir\n  f steps=5 k=7'
    assert journal.reports('missing') == []


def test_an_attribute_the_function_cannot_give_is_left_out_and_named(tmp_path: Path) -> None:
    files = {
        'lib.py': """
            import contextlib
            def run(batch): return batch
            class Timer:
                @contextlib.contextmanager
                def time(self, label): yield
        """,
        'main.py': 'import lib\nlib.run(3)\nwith lib.Timer().time("step"): pass',
    }
    attributes = {'size': ('arg', 'batch'), 'gone': ('arg', 'renamed')}
    rules = [
        function('f', 'lib:run', attributes=attributes),
        timer('t', ['lib:Timer.time'], labels={'step': label('step', attributes={'gone': ('arg', 'renamed')})}),
    ]
    traced = Program(tmp_path, files).traced(rules)
    assert [(s.name, s.attributes) for s in traced.journal.spans] == [('f', {'size': 3}), ('step', {})]
    told = [(r['target'], r['reason']) for r in traced.journal.reports('missing')]
    reason = 'attribute gone: no parameter named renamed'
    assert told == [('lib:run', reason), ('label step', reason)]
