# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
from itertools import islice

from lens_auto.record.ids import MASK, mix, root_trace, spans


def test_a_hundred_thousand_ids_are_distinct_and_of_64_bits() -> None:
    ids = [number & MASK for number in islice(spans(), 100_000)]
    assert len(set(ids)) == len(ids)


def test_two_processes_start_at_different_places() -> None:
    assert next(spans()) != next(spans())


def test_the_users_random_stream_is_not_drawn_from() -> None:
    random.seed(1)
    before = random.getstate()
    next(spans())
    root_trace(5, 6)
    assert random.getstate() == before


def test_mixing_is_a_bijection_as_far_as_we_look() -> None:
    assert len({mix(n) for n in range(50_000)}) == 50_000


def test_a_root_gets_a_trace_of_its_own_that_depends_on_the_run() -> None:
    traces = {root_trace(run, span) for run in (1, 2**127 + 1) for span in range(1, 1000)}
    assert len(traces) == 2 * 999 and 0 not in traces
