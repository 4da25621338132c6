# SPDX-License-Identifier: Apache-2.0
"""A framework's new version renames what a rule names: CI learns it from `lens-rules check`, a run from its summary."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.run import REPOSITORY, Place

EXAMPLES = REPOSITORY / 'examples'


def rows(stdout: str) -> dict[str, str]:
    """Target -> its state and what is said of it, of a `lens-rules check`."""
    lines = [line.split(None, 3) for line in stdout.splitlines() if line[:2] == '  ' and line.split()[0].isdigit()]
    return {line[2]: line[3] for line in lines}


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def example(tmp_path: Path) -> Place:
    """A copy of the example to change."""
    place = Place(tmp_path)
    shutil.copytree(EXAMPLES, place.cwd / 'examples', ignore=shutil.ignore_patterns('__pycache__'))
    return place


def test_the_example_fits_its_rules(example: Place):
    done = example.plain('lens-rules', 'check', 'examples/lens.yaml')

    assert done.code == 0, done.stdout + done.stderr
    assert {state.split()[0] for state in rows(done.stdout).values()} == {'matched'}


@pytest.mark.parametrize(
    ('name', 'old', 'new', 'target', 'said'),
    [
        ('trainer.py', 'def grpo_train', 'def train_grpo', 'tiny_grpo.trainer:grpo_train', 'missing'),
        ('timer.py', 'def time(', 'def timed(', 'tiny_grpo.timer:Timer.time', 'missing'),
        ('logger.py', 'class Logger', 'class Reporter', 'tiny_grpo.logger:Logger.log_metrics', 'missing'),
        ('trainer.py', 'config: GrpoConfig,', 'settings: GrpoConfig,', 'tiny_grpo.trainer:grpo_train', 'config'),
    ],
)
def test_check_fails_with_the_row_of_what_was_renamed(
    example: Place, name: str, old: str, new: str, target: str, said: str
):
    replace(example.cwd / 'examples' / 'tiny_grpo' / name, old, new)

    done = example.plain('lens-rules', 'check', 'examples/lens.yaml')

    assert done.code == 1, done.stdout
    drifted = {row: state for row, state in rows(done.stdout).items() if not state.startswith('matched')}
    assert list(drifted) == [target]
    assert said in drifted[target]


def test_a_run_says_what_matched_nothing_and_why(place: Place):
    replace(place.cwd / 'trainer.py', 'score(', 'evaluate(')

    done = place.lens('python', 'train.py')

    assert (done.code, done.stdout) == (0, place.plain('python', 'train.py').stdout)
    summary = ' '.join(done.stderr.split())
    assert 'matched nothing (trainer has no `score`): score' in summary or 'matched nothing (' in summary
    [row] = [rule for rule in place.run.facts['rules'] if rule['name'] == 'score']
    assert (row['processes'], row['calls'], row['spans']) == (0, 0, 0)
    assert len(row['missing']) == 1
    assert place.run.names() == {'job', 'step', 'rollout', 'update'}


def test_a_rule_that_lost_one_of_its_places_is_told_though_others_matched(place: Place):
    """Without the `with` form phases no longer nest: it still makes spans, but not those it was written for."""
    replace(place.cwd / 'trainer.py', 'time(', 'timed(')

    done = place.lens('python', 'train.py')

    assert len(place.run.named('step')) == 3
    assert 'matched in part (class Timer has no time): trainer:Timer.time' in ' '.join(done.stderr.split())


def test_a_module_that_is_not_there_is_told_and_one_of_another_mode_is_not(place: Place):
    rules = (place.cwd / 'lens.yaml').read_text()
    place.write({'parts/__init__.py': '', 'parts/scoring.py': 'def score(): ...\n'})

    place.write({'lens.yaml': rules.replace('trainer:score', 'parts.scoring:score')})
    other = place.lens('--strict', 'python', 'train.py')
    place.write({'lens.yaml': rules.replace('trainer:score', 'parts.scorer:score')})
    gone = place.lens('--strict', 'python', 'train.py')

    assert other.code == 0 and 'matched nothing' not in other.stderr
    assert gone.code == 1
    assert 'matched nothing (parts has no module scorer): score' in ' '.join(gone.stderr.split())


def test_a_run_without_any_span_says_so_and_why(place: Place):
    place.write({'nothing.py': 'print(1)\n', 'empty.py': 'import trainer\n'})

    untouched = place.lens('python', 'nothing.py')
    uncalled = place.lens('python', 'empty.py')
    isolated = place.lens('python', '-I', 'nothing.py')
    foreign = place.lens('echo', '1')

    assert [done.stdout for done in (untouched, isolated, foreign)] == ['1\n'] * 3
    assert 'lens.yaml (5 rules): no process imported trainer' in untouched.stderr
    assert 'matched, but what they hook was never called' in uncalled.stderr
    for done in (isolated, foreign):
        assert 'no Python process of this run loaded the agent' in done.stderr
    for done in (untouched, uncalled, isolated, foreign):
        assert '0 spans recorded' in done.stderr


def test_strict_turns_drift_into_a_failed_run(place: Place):
    assert place.lens('--strict', '--no-summary', 'python', 'train.py').code == 0
    replace(place.cwd / 'trainer.py', 'score(', 'evaluate(')

    done = place.lens('--strict', '--no-summary', 'python', 'train.py')

    assert done.code == 1
    assert 'rule score' in done.stderr and 'matched nothing' in done.stderr
