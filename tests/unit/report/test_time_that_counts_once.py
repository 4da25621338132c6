# SPDX-License-Identifier: Apache-2.0
"""Spans of several buckets at the same time, and waits inside of work: who is charged with what."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from lens_auto.report.goodput import goodput
from lens_auto.report.stragglers import local_time
from tests.unit.report.planted import BEGIN, Plant

SECOND = 1_000_000_000
STRONGEST_FIRST = ('idle', 'wasted', 'productive', 'overhead')


@pytest.mark.parametrize(('stronger', 'weaker'), list(combinations(STRONGEST_FIRST, 2)))
def test_where_two_buckets_overlap_the_stronger_one_counts(tmp_path: Path, stronger: str, weaker: str) -> None:
    plant = Plant()
    driver = plant.process(0, lens__role='driver')
    step = plant.span(driver, 'rl.grpo.step', BEGIN, BEGIN + 10 * SECOND, rl__iteration=1)
    plant.span(driver, 'one', BEGIN + 1 * SECOND, BEGIN + 5 * SECOND, step, rl__bucket=weaker)
    plant.span(driver, 'other', BEGIN + 3 * SECOND, BEGIN + 8 * SECOND, step, rl__bucket=stronger)
    found = goodput(plant.run(tmp_path).tree)
    assert {name: spent / SECOND for name, spent in found.seconds.items() if spent} == {
        weaker: 2,
        stronger: 5,
        'unaccounted': 3,
    }


def test_a_process_is_not_charged_with_its_waits_however_deep_they_are(tmp_path: Path) -> None:
    plant = Plant()
    one, other = plant.process(0, lens__role='driver'), plant.process(1, lens__role='worker')
    step = plant.span(one, 'rl.grpo.step', BEGIN, BEGIN + 20 * SECOND, rl__iteration=1)
    outer = plant.span(one, 'outer', BEGIN, BEGIN + 10 * SECOND, step)
    inner = plant.span(one, 'inner', BEGIN, BEGIN + 6 * SECOND, outer)
    plant.span(one, 'ray.get x', BEGIN + SECOND, BEGIN + 5 * SECOND, inner)
    # What another process waits is none of this one's, and two waits at once are no more than the time there is.
    theirs = plant.span(other, 'theirs', BEGIN + 6 * SECOND, BEGIN + 9 * SECOND, outer)
    plant.span(other, 'ray.get y', BEGIN + 6 * SECOND, BEGIN + 9 * SECOND, theirs)
    plant.span(other, 'ray.get z', BEGIN + 6 * SECOND, BEGIN + 9 * SECOND, theirs)
    run = plant.run(tmp_path)
    names = [run.store.names[number] for number in run.tree.rows['name'].tolist()]
    local = dict(zip(names, (local_time(run.store, run.tree) / SECOND).tolist(), strict=True))
    assert local == {
        'rl.grpo.step': 16,
        'outer': 6,
        'inner': 2,
        'ray.get x': 0,
        'theirs': 0,
        'ray.get y': 0,
        'ray.get z': 0,
    }
