# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lens_auto.vllm.serving import parsed
from lens_auto.vllm.tracing import headers

TRACE, SPAN, TASK = bytes(range(16)), bytes(range(8)), b'first sp'


def test_a_span_becomes_the_parent_that_a_header_names() -> None:
    span: Any = SimpleNamespace(trace_id=TRACE, span_id=SPAN)
    assert headers(span) == {'traceparent': f'00-{TRACE.hex()}-{SPAN.hex()}-01'}
    assert parsed(headers(span)['traceparent'].encode()) == (TRACE, SPAN)


def test_below_a_ray_task_the_header_says_which() -> None:
    span: Any = SimpleNamespace(trace_id=TRACE + TASK, span_id=SPAN)
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
    assert parsed(value) is None
