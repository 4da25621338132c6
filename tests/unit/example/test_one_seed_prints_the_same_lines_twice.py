# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable

Run = Callable[..., list[str]]


def test_one_seed_prints_the_same_lines_twice(run_grpo: Run):
    first = run_grpo('--steps', '6', '--seed', '3')
    again = run_grpo('--steps', '6', '--seed', '3')
    other = run_grpo('--steps', '6', '--seed', '4')

    assert len([line for line in first if line.startswith('train')]) == 6
    assert first == again
    assert first != other


def test_neither_validating_nor_saving_changes_what_is_learned(run_grpo: Run):
    plain = run_grpo('--steps', '6', '--validate-every', '0', '--save-every', '0')
    busy = run_grpo('--steps', '6', '--validate-every', '2', '--save-every', '1')

    assert [line for line in busy if line.startswith('train')] == [line for line in plain if line.startswith('train')]
    assert len([line for line in busy if line.startswith('validation')]) == 3
