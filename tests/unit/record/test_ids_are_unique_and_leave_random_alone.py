# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import random

import pytest

from lens_auto.record.ids import Spans, mix, root_trace


def test_a_hundred_thousand_ids_are_distinct_and_of_eight_bytes() -> None:
    ids = Spans()
    found = {ids.next() for _ in range(100_000)}
    assert len(found) == 100_000 and {len(each) for each in found} == {8}


def test_two_processes_start_at_different_places() -> None:
    assert Spans().next() != Spans().next()


@pytest.mark.parametrize('drawn', [bytes(8), b'\xff' * 8])
def test_no_id_is_zero_and_none_leaves_the_64_bits(drawn: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, 'urandom', lambda size: drawn[:size])
    ids = Spans()
    assert all(any(ids.next()) for _ in range(1000))


def test_the_id_given_last_is_known_without_taking_the_next() -> None:
    ids = Spans()
    first = ids.next()
    assert ids.last() == ids.last() == first
    assert ids.next() != first


def test_the_users_random_stream_is_not_drawn_from() -> None:
    random.seed(1)
    before = random.getstate()
    root_trace(bytes(16), Spans().next())
    assert random.getstate() == before


def test_mixing_is_a_bijection_as_far_as_we_look() -> None:
    assert len({mix(n) for n in range(50_000)}) == 50_000


def test_a_root_gets_a_trace_of_its_own_that_depends_on_the_run() -> None:
    runs = (b'\0' * 15 + b'\1', b'\x80' + b'\0' * 14 + b'\1')
    traces = {root_trace(run, span.to_bytes(8, 'little')) for run in runs for span in range(1, 1000)}
    assert len(traces) == 2 * 999 and bytes(16) not in traces and {len(trace) for trace in traces} == {16}
