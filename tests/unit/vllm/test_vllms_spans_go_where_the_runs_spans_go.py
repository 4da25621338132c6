# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import socket

import pytest

from lens_auto.vllm.destination import Nowhere, destination

BOTH, TRACES = 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
PROTOCOL, OWN = 'OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'


@pytest.mark.parametrize(
    ('environ', 'expected'),
    [
        ({BOTH: 'http://c:4317'}, ('http://c:4317', 'grpc')),
        ({BOTH: 'http://c:4317', TRACES: 'http://t:4317'}, ('http://t:4317', 'grpc')),
        ({BOTH: 'http://c:4318/', PROTOCOL: 'http/protobuf'}, ('http://c:4318/v1/traces', 'http/protobuf')),
        ({TRACES: 'http://t/own/path', OWN: 'http/protobuf'}, ('http://t/own/path', 'http/protobuf')),
        ({BOTH: 'http://c:1', PROTOCOL: 'http/json', OWN: 'grpc'}, ('http://c:1', 'grpc')),
    ],
)
def test_the_endpoint_is_the_users_own_as_vllm_takes_it(environ: dict[str, str], expected: tuple[str, str]) -> None:
    assert destination(environ) == expected


def test_the_launchers_collector_wins_where_it_listens() -> None:
    with socket.create_server(('127.0.0.1', 0)) as listening:
        own = f'http://127.0.0.1:{listening.getsockname()[1]}/token'
        assert destination({'LENS_NATIVE_ENDPOINT': own, BOTH: 'http://c:4317'}) == (
            f'{own}/v1/traces',
            'http/protobuf',
        )
        through = {'LENS_NATIVE_ENDPOINT': own, 'http_proxy': 'http://p', 'no_proxy': 'localhost,127.0.0.1'}
        assert destination(through) == (f'{own}/v1/traces', 'http/protobuf')
        with pytest.raises(Nowhere, match='http_proxy is set'):
            destination({**through, 'no_proxy': 'localhost'})


@pytest.mark.parametrize(
    ('environ', 'why'),
    [
        ({}, 'no OTLP endpoint is set here'),
        ({BOTH: 'http://c', PROTOCOL: 'http/json'}, 'vLLM does not speak http/json'),
        ({'LENS_NATIVE_ENDPOINT': 'http://127.0.0.1:1/token'}, "the launcher's collector is not on this node"),
    ],
)
def test_nowhere_to_go_says_why(environ: dict[str, str], why: str) -> None:
    with pytest.raises(Nowhere, match=why):
        destination(environ)
