# SPDX-License-Identifier: Apache-2.0
"""A proposal is a valid rule file, the same each time, with its comments in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lens_auto.discover.rules import LIKELY, Proposal, Proposed
from lens_auto.discover.writing import scalar, text
from tests.helpers.discovered import Discovered

PROGRAM = {
    'tiny/__init__.py': '',
    'tiny/timing.py': """
    import time
    from contextlib import contextmanager

    class Timer:
        @contextmanager
        def time(self, name):
            start = time.time()
            yield
    """,
    'tiny/loop.py': """
    from tiny.timing import Timer

    def fit(steps, logger, timer: Timer):
        for step in range(steps):
            with timer.time('generation'):
                rollouts = engine.generate(step)
            with timer.time('weird: "label" {x}'):
                pass
            policy.train(compute_rewards(rollouts))
            metrics = {'reward': mean(rollouts), 'y': mean(rollouts), 'a/b c': mean(rollouts)}
            log_metrics(metrics, step)

    def log_metrics(metrics, step): store(metrics)
    def compute_rewards(rollouts): return judge(rollouts)
    """,
}

words = st.text(st.characters(exclude_categories=['Cs', 'Cc'], include_characters='\t'), max_size=40)


@given(words)
def test_every_text_is_written_so_that_yaml_reads_it_back(value: str) -> None:
    assert yaml.safe_load(f'- {scalar(value)}') == [value]
    assert yaml.safe_load(f'- {{{scalar(value)}: {scalar(value)}}}') == [{value: value}]


@given(
    st.lists(
        st.builds(
            Proposed,
            st.sampled_from(['step', 'phases']),
            st.just(LIKELY),
            st.lists(words, min_size=1, max_size=3),
            st.dictionaries(
                st.sampled_from(['target', 'match', 'labels', 'with']),
                st.one_of(words, st.booleans(), st.lists(words, min_size=1), st.dictionaries(words, words, min_size=1)),
                min_size=1,
            ),
            st.dictionaries(words, words),
            st.lists(words, max_size=2),
        ),
        max_size=4,
    ),
    st.lists(words, max_size=3),
)
def test_comments_of_any_text_change_nothing_of_the_rules(rules: list[Proposed], left_out: list[str]) -> None:
    written = text(Proposal('tiny', None, {}, rules, left_out, left_out, ['.'], 1))
    assert yaml.safe_load(written) == {'framework': 'tiny', 'rules': [rule.fields for rule in rules]}


def test_what_is_written_is_what_was_proposed(tmp_path: Path) -> None:
    found = Discovered(tmp_path, PROGRAM)
    read = yaml.safe_load(found.text)
    assert read['framework'] == 'tiny'
    assert read['when'] == 'tiny'
    assert read['rules'] == [rule.fields for rule in found.proposal.rules]
    assert '\n    "y": ' in found.text  # which YAML would read as a boolean


def test_each_rule_says_why_and_where(tmp_path: Path) -> None:
    found = Discovered(tmp_path, PROGRAM)
    lines = found.text.splitlines()
    starts = [index for index, line in enumerate(lines) if line.startswith('- ')]
    assert len(starts) == len(found.proposal.rules)
    for start in starts:
        above = next(line for line in reversed(lines[:start]) if not line.startswith('#   '))
        assert above.startswith(('# sure: ', '# likely: ', '# guess: ')), above
    # A path is not broken.
    assert max(len(line) for line in lines if line.startswith('#') and str(tmp_path) not in line) <= 120


@pytest.mark.parametrize('seed', ['1', '2'])
def test_it_is_the_same_for_every_hash_seed(tmp_path: Path, seed: str) -> None:
    found = Discovered(tmp_path, PROGRAM)
    command = [sys.executable, '-m', 'lens_auto.rules.cli', 'discover', str(tmp_path)]
    done = subprocess.run(
        command, env={**os.environ, 'PYTHONHASHSEED': seed}, capture_output=True, text=True, check=True
    )
    assert done.stdout == found.text
