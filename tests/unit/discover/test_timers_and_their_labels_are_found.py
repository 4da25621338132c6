# SPDX-License-Identifier: Apache-2.0
"""Timers of all the shapes that trainers have, and the labels they are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.discovered import Discovered

CLOCK = """
import time
from contextlib import contextmanager
"""

SHAPES = {
    'a function': (
        """
        @contextmanager
        def timed(name, timings=None):
            start = time.time()
            yield
            print(name, time.time() - start)

        def step(x):
            with timed('generation'):
                work(x)
            with timed('old_log_prob', x):
                work(x)
        """,
        {'with': 'm:timed'},
        {'generation': 'generation', 'old_log_prob': 'logprob'},
    ),
    'a method with start and stop': (
        """
        class Timer:
            def start(self, name): self.at[name] = time.monotonic()
            def stop(self, name): return time.monotonic() - self.at[name]

            @contextmanager
            def time(self, name):
                self.start(name)
                yield
                self.stop(name)

        def step(timer):
            with timer.time('reward_calculation'):
                work()
            timer.start('policy_training')
            timer.stop('policy_training')
        """,
        {'with': 'm:Timer.time', 'pair': 'm:Timer.start/stop'},
        {'reward_calculation': 'reward', 'policy_training': 'policy_update'},
    ),
    'a label that is not the first parameter': (
        """
        @contextmanager
        def span(sample, name):
            start = time.time()
            yield
            sample.took = time.time() - start

        def step(sample):
            with span(sample, 'generate'):
                work()
            with span(sample, name='reward_model'):
                work()
        """,
        {'with': 'm:span', 'label_arg': 'name'},
        {'generate': 'generation', 'reward_model': 'reward'},
    ),
    'an object that is called': (
        """
        class Watch:
            @contextmanager
            def __call__(self, name):
                start = time.time()
                yield
                self.times[name] = time.time() - start

        def step():
            sw = Watch()
            with torch.no_grad(), sw('ref'):
                work()
            with sw('rollout'):
                work()
        """,
        {'with': 'm:Watch.__call__'},
        {'ref': 'reference_policy', 'rollout': 'rollout'},
    ),
    'a class that a function makes, under a longer name, and a decorator': (
        """
        class Profile:
            def __init__(self, name, report):
                self.name = name
            def __enter__(self): self.at = time.perf_counter()
            def __exit__(self, *error): print(self.name, time.perf_counter() - self.at)

        def profiled(trainer, name):
            full = f'{trainer.__class__.__name__}.{name}'
            return Profile(name=full, report=trainer.report)

        def profile(function):
            def wrapper(self, *args):
                with profiled(self, function.__name__):
                    return function(self, *args)
            return wrapper

        class Trainer:
            @profile
            def compute_rewards(self, batch):
                return work(batch)

            def step(self, batch):
                with profiled(self, 'sync_weights'):
                    work(batch)
        """,
        {'with': 'm:Profile', 'label_arg': 'name'},
        {'*.compute_rewards': 'reward', '*.sync_weights': 'refit'},
    ),
    'a label that is partly made': (
        """
        @contextmanager
        def timed(name):
            start = time.time()
            yield

        def step(prefix):
            with timed(f'{prefix}log_probs'):
                work()
            with timed('train_wait'):
                work()
        """,
        {'with': 'm:timed'},
        {'*log_probs': 'logprob', 'train_wait': 'efficiency'},
    ),
}


@pytest.mark.parametrize(('source', 'keys', 'labels'), list(SHAPES.values()), ids=list(SHAPES))
def test_a_timer_is_hooked_where_every_label_passes(
    tmp_path: Path, source: str, keys: dict[str, str], labels: dict[str, str]
) -> None:
    import textwrap

    found = Discovered(tmp_path, {'m.py': CLOCK + textwrap.dedent(source)})
    fields = found.only('timer').fields
    assert {key: fields[key] for key in ('with', 'pair', 'label_arg') if key in fields} == keys
    assert found.labels() == labels


def test_all_definitions_of_a_timer_that_is_chosen_at_import_are_hooked(tmp_path: Path) -> None:
    definition = """
    import time
    from contextlib import contextmanager

    @contextmanager
    def marked_timer(name, timings, color=None):
        start = time.time()
        yield
        timings[name] = time.time() - start
    """
    files = {
        'p/__init__.py': '',
        'p/plain.py': definition,
        'p/nvtx.py': definition,
        'p/debug.py': """
        try:
            from p.nvtx import marked_timer
        except ImportError:
            from p.plain import marked_timer
        """,
        'p/loop.py': """
        from p.debug import marked_timer

        def fit(timings):
            with marked_timer('gen', timings, color='red'):
                work()
            with marked_timer('update_actor', timings):
                work()
        """,
    }
    found = Discovered(tmp_path, files)
    assert found.only('timer').fields['with'] == ['p.nvtx:marked_timer', 'p.plain:marked_timer']
    assert found.proposal.when == 'p'


def test_context_managers_that_time_nothing_are_no_timers(tmp_path: Path) -> None:
    source = """
    import threading
    from contextlib import contextmanager

    @contextmanager
    def opened(name):
        file = open(name)
        yield file

    @contextmanager
    def reward_lock(name):
        with threading.Lock():
            yield

    def main():
        with opened('rollout'), reward_lock('generation'):
            work()
        with open('reward') as file:
            work()
    """
    assert Discovered(tmp_path, {'m.py': source}).rules('timer') == []


def test_labels_without_a_meaning_are_told_and_not_guessed(tmp_path: Path) -> None:
    source = """
    import time
    from contextlib import contextmanager

    @contextmanager
    def timed(name):
        start = time.time()
        yield

    def main(names):
        with timed('generation'):
            work()
        with timed('flibber'):
            work()
        for name in names:
            with timed(name):
                work()
    """
    found = Discovered(tmp_path, {'m.py': source})
    assert found.labels() == {'generation': 'generation'}
    assert '# a label that means nothing here: flibber (m.py:13)' in found.text
    assert '# a label made at run time: m.py:16 timed(name)' in found.text
    assert 'flibber: {' not in found.text


def test_of_two_spans_around_the_same_second_one_has_it(tmp_path: Path) -> None:
    source = """
    import time
    from contextlib import contextmanager

    @contextmanager
    def timed(name):
        start = time.time()
        yield

    def fit(steps):
        for step in range(steps):
            with timed('generation'):
                with timed('reward'):
                    work()
            with timed('train'):
                with timed('old_log_prob'):
                    work()
                with timed('update_actor'):
                    work()
    """
    labels = Discovered(tmp_path, {'m.py': source}).only('timer').fields['labels']
    assert isinstance(labels, dict)
    buckets = {label: value.get('bucket') for label, value in labels.items() if isinstance(value, dict)}
    assert buckets == {'generation': 'none', 'reward': None, 'old_log_prob': None, 'update_actor': None}


def test_a_step_that_is_started_and_stopped_encloses_its_phases(tmp_path: Path) -> None:
    source = """
    import time

    class Timers:
        def start(self, name): self.at[name] = time.monotonic()
        def stop(self, name): print(time.monotonic() - self.at[name])

    def fit(steps):
        timers = Timers()
        for i in range(steps):
            timers.start('step')
            timers.start('generation')
            timers.stop('generation')
            timers.stop('step')
    """
    found = Discovered(tmp_path, {'m.py': source})
    fields = found.only('timer').fields
    assert fields['pair'] == 'm:Timers.start/stop' and 'with' not in fields
    labels = fields['labels']
    assert isinstance(labels, dict)
    name = f'rl.{found.proposal.framework}'
    step = {'group': 'step', 'name': f'{name}.step', 'root': True, 'current': True}
    assert labels['step'] == {**step, 'attributes': {'rl.iteration': 'frame.i'}}
    assert labels['generation'] == {'group': 'generation', 'name': f'{name}.generation'}
