# SPDX-License-Identifier: Apache-2.0
"""`continues_over`: blocks in which nothing but waiting was timed go on in the next one."""

from pathlib import Path

import pytest

from tests.helpers.program import Program, function, label, timer

MODULE = """
    import contextlib

    class Timer:
        def start(self, label): pass
        def stop(self, label): pass
        @contextlib.contextmanager
        def time(self, label):
            self.start(label)
            try: yield
            finally: self.stop(label)

    def train(timer, blocks):
        for labels in blocks:
            with timer.time('step'):
                for each in labels:
                    if each == 'raise': raise ValueError
                    with timer.time(each): pass
    timer, other = Timer(), Timer()
"""
LABELS = {
    'step': label('step', continues_over=('wait', 'look')),
    'wait': label('wait', continues_over=('step', 'look')),
    'work': label('work'),
}
RULES = [timer('t', ['m:Timer.time'], [('m:Timer.start', 'Timer.stop')], LABELS), function('j', 'm:train', name='job')]
CASES = {
    'polls, then work': (
        'm.train(m.timer, [["wait"], ["wait"], ["wait", "work"], ["work"]])',
        'job\n  step\n    wait\n    work\n  step\n    work',
    ),
    'a label that has no line counts as well': (
        'm.train(m.timer, [["unknown"], ["work"]])',
        'job\n  step\n  step\n    work',
    ),
    'one it continues over may have none': ('m.train(m.timer, [["look"], ["work"]])', 'job\n  step\n    work'),
    'work ends a step for good': (
        'm.train(m.timer, [["work"], ["wait"], ["work"]])',
        'job\n  step\n    work\n  step\n    wait\n    work',
    ),
    'another timer is another step': (
        'm.train(m.timer, [["wait"]]); m.train(m.other, [["wait"]])',
        'job\n  step\n    wait\njob\n  step\n    wait',
    ),
    'the last poll': ('m.train(m.timer, [["work"], ["wait"], ["wait"]])', 'job\n  step\n    work\n  step\n    wait'),
    'an exception': (
        'try: m.train(m.timer, [["wait"], ["wait", "raise"]])\nexcept ValueError: pass\nm.train(m.timer, [["work"]])',
        'job!\n  step!\n    wait\njob\n  step\n    work',
    ),
    'something else between two polls': (
        'm.train(m.timer, [["wait"]])\nwith m.timer.time("work"): pass\nm.train(m.timer, [["wait"]])',
        'job\n  step\n    wait\nwork\njob\n  step\n    wait',
    ),
}


@pytest.mark.parametrize('case', CASES)
def test_polls(tmp_path: Path, case: str) -> None:
    source, expected = CASES[case]
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': f'import m\n{source}\n'})
    traced = program.traced(RULES)
    assert traced.visible() == program.plain().visible()
    assert traced.journal.tree() == expected
    assert all(span.ended for span in traced.journal.spans)
    assert not any('lens.orphaned' in span.attributes for span in traced.journal.spans)
    assert traced.journal.reports('fault') == []


def test_a_step_ends_when_its_last_block_did(tmp_path: Path) -> None:
    """Not when the job does, and with no job around it not when the process does."""
    source = 'import m, time\nm.train(m.timer, [["wait"]])\ntime.sleep(0.3)\n'
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    for rules in (RULES, RULES[:1]):
        steps = [span for span in program.traced(rules).journal.spans if span.name == 'step']
        assert [span.ended for span in steps] == [True]
        assert steps[0].duration < 250_000_000


def test_a_root_step_stays_one_trace(tmp_path: Path) -> None:
    labels = {'step': label('step', root=True, continues_over=('wait',)), 'work': label('work')}
    rule = timer('t', ['m:Timer.time'], [('m:Timer.start', 'Timer.stop')], labels)
    source = 'import m\nm.train(m.timer, [["wait"], ["wait", "work"]])\n'
    step, work = Program(tmp_path, {'m.py': MODULE, 'main.py': source}).traced([rule]).journal.spans
    assert (work.trace, work.parent) == (step.trace, step.id)


def test_of_two_threads_that_poll_at_once_each_span_ends(tmp_path: Path) -> None:
    source = """
        import m, threading
        barrier = threading.Barrier(2)
        def poll():
            with m.timer.time('step'): barrier.wait()
        threads = [threading.Thread(target=poll) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
    labels = {'step': label('step', continues_over=('step',))}
    rule = timer('t', ['m:Timer.time'], [('m:Timer.start', 'Timer.stop')], labels)
    spans = Program(tmp_path, {'m.py': MODULE, 'main.py': source}).traced([rule]).journal.spans
    assert [span.ended for span in spans] == [True, True]


def test_a_timer_that_is_a_function_is_one_timer(tmp_path: Path) -> None:
    module = """
        import contextlib
        @contextlib.contextmanager
        def timed(label): yield
    """
    source = 'import m\nfor label in ("step", "work", "step"):\n    with m.timed(label): pass\n'
    labels = {'step': label('step', continues_over=()), 'work': label('work')}
    program = Program(tmp_path, {'m.py': module, 'main.py': source})
    assert program.traced([timer('t', ['m:timed'], (), labels)]).journal.tree() == 'step\nwork\nstep'
