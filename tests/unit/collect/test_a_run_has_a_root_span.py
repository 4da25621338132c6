# SPDX-License-Identifier: Apache-2.0
"""`lens.run` is the launcher's own span: how the command ended, and in which context it was started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.collect.journals import Lab, plain, spans

TRACE, SPAN = '4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'


def root(lab: Lab, **end: int) -> dict[str, Any]:
    reader = lab.collector()
    reader.start()
    assert reader.finish(5.0, **end).complete
    [span] = [span for span in spans(lab.folder) if span['name'] == 'lens.run']
    return span


@pytest.mark.parametrize('code', [0, 1, 143])
def test_it_has_the_commands_exit_code(lab: Lab, code: int) -> None:
    span = root(lab, exit_code=code)
    assert plain(span['attributes']) == {'lens.run.attempt': 0, 'process.exit.code': code}
    assert span['status'] == ({'code': 2} if code else {})


def test_it_has_the_signal_that_ended_the_command(lab: Lab) -> None:
    span = root(lab, signal=9)
    assert plain(span['attributes']) == {'lens.run.attempt': 0, 'lens.signal': 9}
    assert span['status'] == {'code': 2}


def test_it_links_to_the_context_the_launcher_was_started_in(tmp_path: Path) -> None:
    span = root(Lab(tmp_path, {'TRACEPARENT': f'00-{TRACE}-{SPAN}-01'}), exit_code=0)
    [link] = span['links']
    assert (link['traceId'], link['spanId']) == (TRACE, SPAN)
    assert plain(link['attributes']) == {'lens.link': 'inbound'}
    assert span['traceId'] != TRACE and 'parentSpanId' not in span


@pytest.mark.parametrize(
    'context',
    [
        '',
        'nonsense',
        f'00-{TRACE}',
        f'00-{"0" * 32}-{SPAN}-01',
        f'00-{TRACE}-{"0" * 16}-01',
        f'00-{"x" * 32}-{SPAN}-01',
    ],
)
def test_a_context_that_is_none_is_left_out(tmp_path: Path, context: str) -> None:
    assert 'links' not in root(Lab(tmp_path, {'TRACEPARENT': context}), exit_code=0)
