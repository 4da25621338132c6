# SPDX-License-Identifier: Apache-2.0
"""The `logger` kind: which values of which calls become which points."""

import json
from pathlib import Path

import pytest

from tests.helpers.program import Program, const, function, logger, metric

MODULE = """
    class Logger:
        def log_metrics(self, metrics, step=0, prefix=''): return metrics
        def log(self, **kw): return kw
        def other(self, *args): return args
    def outer(f, *a): return f(*a)
    log = Logger()
"""
METRICS = {
    'loss': metric('rl.loss'),
    'reward': metric('rl.reward', unit='1'),
    'mean_reward': metric('rl.reward'),
    'tokens': metric('rl.tokens', 'counter', step=('arg', 'step')),
    '*_s': metric('rl.seconds', phase=('key',)),
    'grad/*': metric(('fmt', (const('rl.grad.'), ('key',))), 'histogram', key=('key',)),
}
RULES = [logger('l', 'm:Logger.log_metrics', METRICS), function('o', 'm:outer')]


def points(
    folder: Path, source: str, rules: list[dict[str, object]] = RULES
) -> list[tuple[str, float, dict[str, object]]]:
    program = Program(folder, {'m.py': MODULE, 'main.py': 'import m\nlog = m.log.log_metrics\n' + source})
    traced = program.traced(rules)
    assert traced.visible() == program.plain().visible()
    assert traced.code == 0, traced.stderr
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []
    return traced.journal.points


CASES = {
    'a number': ('log({"loss": 0.5, "unknown": 1})', [('rl.loss', 0.5, {})]),
    'the first key that is there feeds a metric': (
        'log({"mean_reward": 2, "reward": 1}); log({"mean_reward": 3})',
        [('rl.reward', 1, {}), ('rl.reward', 3, {})],
    ),
    'keys with attributes of their own each feed it': (
        'log({"load_s": 1, "init_s": 2})',
        [('rl.seconds', 1, {'phase': 'load_s'}), ('rl.seconds', 2, {'phase': 'init_s'})],
    ),
    'one that cannot be read makes way': ('log({"reward": None, "mean_reward": 3})', [('rl.reward', 3, {})]),
    'labels': ('log({"tokens": 5}, 7)', [('rl.tokens', 5, {'step': 7})]),
    'globs': (
        'log({"grad/a": 1, "grad/b": 2.5})',
        [('rl.grad.grad/a', 1, {'key': 'grad/a'}), ('rl.grad.grad/b', 2.5, {'key': 'grad/b'})],
    ),
    'what is no number': ('log({"loss": True, "reward": "1", "tokens": [1], "grad/x": None, 3: 4})', []),
    'numpy': (
        'import numpy as n\n'
        'log({"loss": n.float32(0.5), "reward": n.int64(2), "tokens": n.bool_(True), "grad/x": n.array(3.0),'
        '"grad/y": n.array([1.0, 2.0])})',
        [('rl.loss', 0.5, {}), ('rl.reward', 2, {}), ('rl.grad.grad/x', 3.0, {'key': 'grad/x'})],
    ),
    'torch': (
        'import torch as t\n'
        'log({"loss": t.tensor(0.5, requires_grad=True), "reward": t.tensor([2]), "tokens": t.ones(2),'
        '"grad/x": t.empty((), device="meta")})',
        [('rl.loss', 0.5, {}), ('rl.reward', 2, {})],
    ),
    'what is no dict': ('log(3); log(None); log([("loss", 1)])', []),
    'beyond finite': ('log({"loss": float("inf")})', [('rl.loss', float('inf'), {})]),
    'a subclass of dict': (
        'import collections as c; log(c.OrderedDict(loss=1)); log(c.defaultdict(int))',
        [('rl.loss', 1, {})],
    ),
}


@pytest.mark.parametrize('case', CASES)
def test_points(tmp_path: Path, case: str) -> None:
    source, expected = CASES[case]
    assert points(tmp_path, source) == expected


def test_a_point_carries_instrument_unit_and_the_current_span(tmp_path: Path) -> None:
    program = Program(
        tmp_path, {'m.py': MODULE, 'main.py': 'import m; m.outer(m.log.log_metrics, {"reward": 1, "tokens": 2})'}
    )
    journal = program.traced(RULES).journal
    assert journal.instruments == {'rl.reward': ('gauge', '1'), 'rl.tokens': ('counter', '')}
    assert {record[9] for record in journal.records if record[0] == 3} == {journal.spans[0].id}


def test_prefixes_choose_the_calls(tmp_path: Path) -> None:
    rule = logger('l', 'm:Logger.log_metrics', METRICS, prefixes=('', 'train'), prefix_arg='prefix')
    source = 'for p in ("train", "validation", "", None): log({"loss": 1}, 0, p)'
    assert len(points(tmp_path, source, [rule])) == 3


@pytest.mark.parametrize(
    ('target', 'call'),
    [('m:Logger.log', 'm.log.log(loss=1)'), ('m:Logger.other', 'm.log.other("a", {"loss": 1})')],
)
def test_the_metrics_are_found_in_keywords_and_among_positional_arguments(
    tmp_path: Path, target: str, call: str
) -> None:
    assert points(tmp_path, call, [logger('l', target, {'loss': metric('rl.loss')})]) == [('rl.loss', 1, {})]


def test_metrics_that_are_off_leave_the_function_alone(tmp_path: Path) -> None:
    source = 'import m, json; print(json.dumps(m.Logger.log_metrics.__code__.co_names)); m.log.log_metrics({"loss": 1})'
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    traced = program.traced(RULES, LENS_METRICS_ENABLED='0')
    assert json.loads(traced.stdout) == [] and traced.journal.points == []


def test_an_argument_that_is_not_there_is_told(tmp_path: Path) -> None:
    rule = logger('l', 'm:Logger.log_metrics', METRICS, metrics_arg='stats')
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': 'import m; m.log.log_metrics({"loss": 1})'}).traced([rule])
    assert [r['reason'] for r in traced.journal.reports('missing')] == ['no parameter named stats']


def test_numbers_beyond_64_bits_become_floats(tmp_path: Path) -> None:
    main = """
        import lens_auto, m
        for value in (2**63 - 1, -2**63, 2**63, 10**400): m.log({'loss': value})
        for value in (2**64, 10**400): lens_auto.metric('own', value)
    """
    program = Program(tmp_path, {'m.py': 'def log(metrics): pass', 'main.py': main})
    traced = program.traced([logger('l', 'm:log', {'loss': metric('loss')})])
    found = [(record[2], record[5]) for record in traced.journal.records if record[0] == 3]
    assert found == [('loss', 2**63 - 1), ('loss', -(2**63)), ('loss', float(2**63)), ('own', float(2**64))]
    assert [type(value) for _, value in found] == [int, int, float, float]
    assert traced.journal.reports('stats')[-1]['l' * 12][5] == 1
    assert [(fault['where'], fault['type']) for fault in traced.journal.reports('fault')] == [('value', 'Unreadable')]


def test_metrics_that_occur_are_told_and_calls_without_any_are_counted(tmp_path: Path) -> None:
    main = "import m\nm.log({'loss': 1.0, 'other': 2})\nm.log({'other': 2})\nm.log({'reward/a': 2})"
    program = Program(tmp_path, {'m.py': 'def log(metrics): pass', 'main.py': main})
    metrics = {'loss': metric('loss'), 'reward/*': metric('reward'), 'renamed': metric('renamed')}
    traced = program.traced([logger('l', 'm:log', metrics)])
    assert traced.journal.reports('seen')[-1] == {'l' * 12: ('loss', 'reward/*')}
    calls, spans, *_, filtered = traced.journal.reports('stats')[-1]['l' * 12]
    assert (calls, spans, filtered) == (3, 2, 1)


def test_points_of_zero_may_be_left_out(tmp_path: Path) -> None:
    rule = logger(
        'l', 'm:Logger.log_metrics', {'loss': {**metric('rl.loss'), 'nonzero': True}, 'tokens': metric('rl.n')}
    )
    assert points(tmp_path, 'log({"loss": 2.5, "tokens": 0}); log({"loss": 0.0, "tokens": 0})', [rule]) == [
        ('rl.loss', 2.5, {}),
        ('rl.n', 0, {}),
        ('rl.n', 0, {}),
    ]


def test_the_programs_own_backends_have_them_first(tmp_path: Path) -> None:
    module = (
        MODULE
        + """
    class Backend:
        def log(self, metrics, step=0): metrics['loss'] = 2.0
    class Tee:
        def log_metrics(self, metrics, step=0):
            Backend().log(metrics)
            if metrics.get('reward') == 9: raise ValueError
"""
    )
    source = """
    import m
    m.Tee().log_metrics({'loss': 1.0})
    try: m.Tee().log_metrics({'reward': 9})
    except ValueError: pass
    """
    program = Program(tmp_path, {'m.py': module, 'main.py': source})
    traced = program.traced([logger('l', 'm:Tee.log_metrics', METRICS)])
    assert traced.code == 0, traced.stderr
    # What a backend refused is no metric of the run's.
    assert traced.journal.points == [('rl.loss', 2.0, {})]
