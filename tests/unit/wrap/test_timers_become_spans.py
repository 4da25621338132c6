# SPDX-License-Identifier: Apache-2.0
"""The `timer` kind: with blocks, start and stop, labels; each case shows its program and its spans."""

from pathlib import Path

import pytest

from tests.helpers.program import Program, const, label, timer

MODULE = """
    import contextlib, threading

    class Timer:
        def __init__(self): self.running = {}
        def start(self, label): self.running[label] = 1
        def stop(self, label): return self.running.pop(label, 0)
        @contextlib.contextmanager
        def time(self, label):
            self.start(label)
            try: yield
            finally: self.stop(label)

    class SafeTimer(Timer):
        lock = threading.Lock()
        def start(self, label):
            with self.lock: super().start(label)
        def stop(self, label):
            with self.lock: return super().stop(label)
        @contextlib.contextmanager
        def time(self, label):
            with super().time(label): yield

    class Phase:
        def __init__(self, name): self.name = name
        def __enter__(self): return self
        def __exit__(self, *error): return False

    timer, safe = Timer(), SafeTimer()
    class Labels:
        step = 'step'
    def fails(label):
        timer.start(label)
        raise ValueError
"""
WITH = ['m:Timer.time', 'm:SafeTimer.time']
PAIR = [('m:Timer.start', 'Timer.stop'), ('m:SafeTimer.start', 'SafeTimer.stop')]


def rule(**fields: object) -> dict[str, object]:
    labels = {
        'step': label('step', attributes={'label': ('label',), 'i': ('+', ('frame', 'i'), const(1))}),
        'idle': label('idle', bucket='idle'),
        'current': label('current', current=True),
        'other': label('other', current=True),
        'dropped': label('dropped', drop=True),
        'get/dropped': label('never', drop=True),
        'get/*': label('got', name=('fmt', (const('get '), ('label',)))),
        'root': label('root', root=True),
    }
    return timer('t', WITH, PAIR, labels, **fields)


CASES = {
    'a with block is a current span, silent about the start and stop it calls': (
        'with m.timer.time("step"):\n    with m.timer.time("idle"): pass',
        "step label='step' i=1\n  idle",
    ),
    'a pair is a span that is not current': (
        'm.timer.start("idle")\nwith m.timer.time("step"): pass\nm.timer.stop("idle")',
        "idle\nstep label='step' i=1",
    ),
    'pairs overlap': (
        't = m.timer; t.start("idle"); t.start("step"); t.stop("idle"); t.stop("step")',
        "idle\nstep label='step' i=1",
    ),
    'one label on two timers at once': (
        'a, b = m.Timer(), m.Timer(); a.start("idle"); b.start("idle"); a.stop("idle"); b.stop("idle")',
        'idle\nidle',
    ),
    'an override that calls super is one span': ('m.safe.start("idle"); m.safe.stop("idle")', 'idle'),
    'and one span when it is current': (
        'm.safe.start("current"); m.safe.stop("current"); m.timer.start("idle")',
        'current\nidle...',
    ),
    'an override of the with form is one span': ('with m.safe.time("step"): pass', "step label='step' i=1"),
    'a pair inside a with block of the same timer': (
        'with m.safe.time("step"):\n    m.safe.start("idle"); m.safe.stop("idle")',
        "step label='step' i=1\n  idle",
    ),
    'the same label inside its own with block says nothing new': (
        'with m.timer.time("step"):\n    m.timer.start("step"); m.timer.stop("step")',
        "step label='step' i=1",
    ),
    'a stop without a start': ('m.timer.stop("idle")', ''),
    'a start twice, a stop twice': (
        't = m.timer; t.start("idle"); t.start("idle"); t.stop("idle"); t.stop("idle")',
        'idle\nidle',
    ),
    'a pair left open ends with the span around it': (
        'with m.timer.time("step"): m.timer.start("idle")',
        "step label='step' i=1\n  idle lens.orphaned=True",
    ),
    'a pair left open by an exception too': (
        'try:\n    with m.timer.time("step"): m.fails("idle")\n'
        'except ValueError: pass\nwith m.timer.time("idle"): pass',
        "step! label='step' i=1\n  idle lens.orphaned=True\nidle",
    ),
    'a pair left open with nothing around it stays open': ('m.timer.start("idle")', 'idle...'),
    'a current pair is the parent of what follows': (
        't = m.timer; t.start("current"); t.start("idle"); t.stop("idle"); t.stop("current")\n'
        't.start("idle"); t.stop("idle")',
        'current\n  idle\nidle',
    ),
    'current pairs that nest': (
        't = m.timer; t.start("current"); t.start("other"); t.stop("other"); t.stop("current")',
        'current\n  other',
    ),
    'current pairs that do not: the outer stop ends the inner one': (
        't = m.timer; t.start("current"); t.start("other"); t.stop("current"); t.stop("other")\n'
        't.start("idle"); t.stop("idle")',
        'current\n  other lens.orphaned=True\nidle',
    ),
    'a current pair left open ends with the span around it': (
        'with m.timer.time("step"): m.timer.start("current")\nwith m.timer.time("idle"): pass',
        "step label='step' i=1\n  current lens.orphaned=True\nidle",
    ),
    'a dropped label': ('with m.timer.time("dropped"):\n    with m.timer.time("idle"): pass', 'idle'),
    'globs, exact names first': (
        'for l in ("get/a", "get/dropped", "get/b/c"):\n    with m.timer.time(l): pass',
        'get get/a\nget get/b/c',
    ),
    'a label nobody named': ('with m.timer.time("unknown"):\n    with m.timer.time("idle"): pass', 'idle'),
    'a label that is no string': (
        'with m.timer.time(3):\n    with m.timer.time(None): m.timer.start(b"step"); m.timer.stop(b"step")',
        '',
    ),
    'a label by keyword': (
        'with m.timer.time(label="idle"): m.timer.start(label="step"); m.timer.stop(label="step")',
        "idle\n  step label='step' i=1",
    ),
    'a thread has its own branch, under the label that is open where it is started': (
        'import threading\n'
        'def work():\n    with m.timer.time("idle"): pass\n'
        'with m.timer.time("step"):\n    t = threading.Thread(target=work); t.start(); t.join()',
        "step label='step' i=1\n  idle",
    ),
    'a start in one thread and its stop in another': (
        'import threading\nm.timer.start("current")\n'
        't = threading.Thread(target=m.timer.stop, args=("current",)); t.start(); t.join()\n'
        'm.timer.start("idle"); m.timer.stop("idle")',
        'current\n  idle',
    ),
}


@pytest.mark.parametrize('case', CASES)
def test_timer(tmp_path: Path, case: str) -> None:
    source, expected = CASES[case]
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': f'import m\ni = 0\n{source}\n'})
    traced = program.traced([rule()])
    assert traced.visible() == program.plain().visible()
    assert traced.journal.tree('label', 'i', 'lens.orphaned') == expected
    assert traced.journal.reports('fault') == []


def test_a_root_label_starts_a_trace_linked_to_the_run_and_to_what_is_around_it(tmp_path: Path) -> None:
    source = 'import m\nwith m.timer.time("step"):\n    with m.timer.time("root"):\n'
    source += '        with m.timer.time("idle"): pass\n'
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': source}).traced([rule()])
    step, root, idle = traced.journal.spans
    run_trace, run_root = b'\xab' * 16, b'\xcd' * 8
    assert (step.trace, step.parent) == (run_trace, run_root)
    assert root.trace not in (run_trace, b'') and root.parent == b''
    assert [(t, s, a['lens.link']) for t, s, a in root.links] == [
        (run_trace, run_root, 'run'),
        (run_trace, step.id, 'enclosing'),
    ]
    assert (idle.trace, idle.parent) == (root.trace, root.id)


def test_labels_of_groups_that_are_off_are_silent_and_a_timer_with_none_on_is_untouched(tmp_path: Path) -> None:
    from tests.helpers.program import plan_of

    source = 'import m\nwith m.timer.time("step"):\n    with m.timer.time("root"): pass\n'
    source += 'print(m.Timer.start.__code__.co_names)'
    labels = {'step': label('step', group='a'), 'root': label('root', group='b')}
    plan = plan_of([timer('t', WITH, PAIR, labels)], groups=('a', 'b'))
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    assert program.traced(plan, LENS_SPAN_GROUPS='a').journal.tree() == 'step'
    assert program.traced(plan, LENS_SPAN_GROUPS='b').journal.tree() == 'root'
    assert program.traced(plan, LENS_SPAN_GROUPS='default').visible() == program.plain().visible()


def test_only_from_looks_through_the_timers_own_methods(tmp_path: Path) -> None:
    files = {
        'm.py': MODULE,
        'here/__init__.py': '',
        'here/a.py': 'import m\nwith m.safe.time("idle"): m.timer.start("idle"); m.timer.stop("idle")',
        'there.py': 'import m\nwith m.safe.time("idle"): m.timer.start("idle"); m.timer.stop("idle")',
        'main.py': 'import here.a, there',
    }
    traced = Program(tmp_path, files).traced([rule(only_from=('here.*', 'elsewhere'))])
    assert traced.journal.tree() == 'idle\n  idle'


def test_a_class_with_enter_and_exit_is_a_timer_too(tmp_path: Path) -> None:
    source = """
        import m
        p = m.Phase('outer')
        with p:
            with m.Phase('inner'), m.Phase('unknown'): pass
            with p: pass
        try:
            with m.Phase('inner'): raise ValueError
        except ValueError: pass
        m.Phase(3).__enter__()
    """
    labels = {'outer': label('outer'), 'inner': label('inner')}
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': source}).traced(
        [timer('t', ['m:Phase'], labels=labels, label_arg='name')]
    )
    assert traced.journal.tree() == 'outer\n  inner\n  outer\ninner!'
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []


def test_a_budget_counts_the_spans_of_all_labels_together(tmp_path: Path) -> None:
    source = 'import m\nfor i in range(5):\n    with m.timer.time("step"):\n        with m.timer.time("idle"): pass\n'
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': source}).traced([rule(budget=3)])
    assert traced.journal.names() == ['step', 'idle', 'step']
    calls, spans, _, _, over, *_ = traced.journal.stats['t' * 12]
    assert (calls, spans, over) == (10, 3, 7)


def test_labels_that_occur_are_told_and_the_others_are_counted(tmp_path: Path) -> None:
    module = """
        import contextlib
        class Timer:
            @contextlib.contextmanager
            def time(self, label): yield
    """
    main = "import m\nt = m.Timer()\nfor label in ('a', 'off', 'b1', 'unlisted', 'a'):\n    with t.time(label): pass"
    labels = {'a': label('a'), 'b*': label('b'), 'off': label('off', drop=True), 'renamed': label('renamed')}
    program = Program(tmp_path, {'m.py': module, 'main.py': main})
    traced = program.traced([timer('t', ['m:Timer.time'], labels=labels)])
    assert traced.journal.reports('seen')[-1] == {'t' * 12: ('a', 'b*', 'off')}
    calls, spans, *_, filtered = traced.journal.reports('stats')[-1]['t' * 12]
    assert (calls, spans, filtered) == (5, 3, 2)
