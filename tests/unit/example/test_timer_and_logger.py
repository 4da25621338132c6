# SPDX-License-Identifier: Apache-2.0
import io

import pytest
from tiny_grpo.logger import Logger
from tiny_grpo.timer import Timer


def test_a_timed_block_calls_start_and_stop_once():
    calls: list[tuple[str, str]] = []

    class Spy(Timer):
        def start(self, label: str) -> None:
            calls.append(('start', label))
            super().start(label)

        def stop(self, label: str) -> float:
            calls.append(('stop', label))
            return super().stop(label)

    timer = Spy()
    with timer.time('step'), timer.time('generation'):
        pass

    assert calls == [('start', 'step'), ('start', 'generation'), ('stop', 'generation'), ('stop', 'step')]
    assert len(timer.durations('step')) == len(timer.durations('generation')) == 1
    assert timer.durations('step')[0] >= timer.durations('generation')[0] >= 0


def test_a_block_that_raises_is_still_timed():
    timer = Timer()
    with pytest.raises(KeyError), timer.time('step'):
        raise KeyError('x')

    assert len(timer.durations('step')) == 1
    timer.start('step')


def test_unbalanced_starts_and_stops_are_refused():
    timer = Timer()
    with pytest.raises(ValueError, match="'step' is not running"):
        timer.stop('step')
    timer.start('step')
    with pytest.raises(ValueError, match="'step' is already running"):
        timer.start('step')


def test_the_logger_prints_one_line_a_call_in_the_order_given():
    stream = io.StringIO()
    logger = Logger(stream)
    logger.log_metrics({'loss': -0.25, 'reward': 0.5, 'generated_tokens': 128}, step=7, prefix='train')
    logger.log_metrics({'accuracy': 1.0}, step=7, prefix='validation')

    assert stream.getvalue() == (
        'train       step    7  loss -0.250000  reward  0.500000  generated_tokens 128\n'
        'validation  step    7  accuracy  1.000000\n'
    )
