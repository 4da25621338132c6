# SPDX-License-Identifier: Apache-2.0
"""Where vLLM's own spans are to go: to where the run's spans go."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = 'LENS_NATIVE_ENDPOINT'  # set by the launcher in a run without an OTLP endpoint
PROTOCOL = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'  # the only one that vLLM reads; without it, it speaks gRPC
_ENDPOINT, _ENDPOINTS = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'
_PROTOCOLS = 'OTEL_EXPORTER_OTLP_PROTOCOL'
_GRPC, _HTTP = 'grpc', 'http/protobuf'
_PATH = '/v1/traces'
_LOOPBACK = '127.0.0.1'
_SECONDS = 2.0


class Nowhere(Exception):
    """There is no place for them; the text says why."""


def destination(environ: Mapping[str, str]) -> tuple[str, str]:
    """The endpoint, as vLLM takes it, and the protocol.

    The order is NeMo-RL's: the endpoint for traces, else the one for all signals. Unlike there, a protocol for all
    signals counts too, and an endpoint for all signals gets the path that HTTP wants and vLLM does not add.

    Args:
        environ: The process's environment.

    Raises:
        Nowhere: None is set, or vLLM cannot send there.
    """
    ours = environ.get(VARIABLE)
    if ours:
        _reachable(ours, environ)
        return ours + _PATH, _HTTP
    protocol = (environ.get(PROTOCOL) or environ.get(_PROTOCOLS) or _GRPC).strip().lower()
    if protocol not in (_GRPC, _HTTP):
        raise Nowhere(f'vLLM does not speak {protocol}')
    endpoint = environ.get(_ENDPOINT, '').strip()
    if endpoint:
        return endpoint, protocol
    endpoint = environ.get(_ENDPOINTS, '').strip()
    if not endpoint:
        raise Nowhere('no OTLP endpoint is set here, and the launcher was not asked for these spans at its start')
    return (endpoint.rstrip('/') + _PATH if protocol == _HTTP else endpoint), protocol


def _reachable(endpoint: str, environ: Mapping[str, str]) -> None:
    """Make sure of the launcher's collector: on another node, its address is another's."""
    for name in ('http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY'):
        if environ.get(name) and _LOOPBACK not in environ.get('no_proxy', environ.get('NO_PROXY', '')):
            raise Nowhere(f'{name} is set, and {_LOOPBACK} is not in no_proxy')
    import socket

    host, _, port = endpoint.partition('//')[2].partition('/')[0].partition(':')
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS).close()
    except OSError:
        raise Nowhere("the launcher's collector is not on this node") from None
