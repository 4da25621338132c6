# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lens_auto.wrap.w3c import asked_by, context, headers

TRACE, SPAN, TASK = bytes(range(16)), bytes(range(8)), b'first sp'


def test_a_span_becomes_the_parent_that_a_header_names() -> None:
    span: Any = SimpleNamespace(trace_id=TRACE, span_id=SPAN)
    assert headers(span) == {'traceparent': f'00-{TRACE.hex()}-{SPAN.hex()}-01'}
    assert context(headers(span)['traceparent']) == (TRACE, SPAN)


def test_below_a_ray_task_the_header_says_which() -> None:
    span: Any = SimpleNamespace(trace_id=TRACE + TASK, span_id=SPAN)
    listed = [(name.encode(), value.encode()) for name, value in headers(span).items()]
    assert asked_by([(b'host', b'x'), *listed]) == (TRACE + TASK, SPAN)
    assert headers(span) == {
        'traceparent': f'00-{TRACE.hex()}-{SPAN.hex()}-01',
        'tracestate': f'lens={TASK.hex()}',
    }


@pytest.mark.parametrize(
    'value',
    [
        b'',
        b'00-abc-def-01',
        b'00-' + b'0' * 32 + b'-' + b'1' * 16 + b'-01',
        b'00-' + b'1' * 32 + b'-' + b'0' * 16 + b'-01',
        b'ff-' + b'1' * 32 + b'-' + b'1' * 16 + b'-01',
        b'00-' + b'g' * 32 + b'-' + b'1' * 16 + b'-01',
        b'00-' + b'1' * 31 + b'\xff-' + b'1' * 16 + b'-01',
    ],
)
def test_what_is_no_header_is_none(value: bytes) -> None:
    assert context(value) is None


@pytest.mark.parametrize('state', ['', 'lens=zz', 'lens=00', 'other=1', 'lens', ','])
def test_a_state_that_is_not_ours_says_nothing(state: str) -> None:
    assert context(f'00-{TRACE.hex()}-{SPAN.hex()}-01', state) == (TRACE, SPAN)


def test_ours_is_found_among_others() -> None:
    assert context(f'00-{TRACE.hex()}-{SPAN.hex()}-01', f'a=1, lens={TASK.hex()},b=2') == (TRACE + TASK, SPAN)


def test_without_a_header_nobody_asked() -> None:
    assert asked_by([(b'tracestate', b'lens=' + TASK.hex().encode())]) is None
