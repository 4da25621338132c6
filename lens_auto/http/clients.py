# SPDX-License-Identifier: Apache-2.0
"""Requests that a program makes: one CLIENT span each, whose context goes along in W3C headers.

Each try of a request that is tried again is a call of its own here, and so a span. Headers that the program, or its own
OpenTelemetry, has put there already are left as they are.
"""

from __future__ import annotations

from lens_auto.http.spans import HttpSite
from lens_auto.record.span import current
from lens_auto.wrap import w3c
from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.span import Span

_PORTS = {'http': 80, 'https': 443}


class ClientSite(HttpSite):
    """A method that sends one request: how to read it, its subclasses say."""

    __slots__ = ()

    KIND = 'client'
    FAILED = 400

    def leave(self, span: Span, result: Any) -> None:
        """Its answer has begun. See `Site.leave`."""
        status = getattr(result, 'status_code', None)
        self.answered(span, getattr(result, 'status', None) if status is None else status)


class HttpxSite(ClientSite):
    """`Client.send(self, request, ...)` and `AsyncClient.send`."""

    __slots__ = ()

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """A request is to be sent. See `Site.open`."""
        request = args[1]
        span = self.begin(request.method, attach)
        if span is not None:
            url = request.url
            whither(span, url.scheme, url.host, url.port)
            carry(request.headers, span)
        return span


class RequestsSite(ClientSite):
    """`Session.send(self, request, ...)`."""

    __slots__ = ()

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """A request is to be sent. See `Site.open`."""
        request = args[1]
        span = self.begin(request.method, attach)
        if span is not None:
            from urllib.parse import urlsplit  # the library has imported it

            url = urlsplit(request.url or '')
            whither(span, url.scheme, url.hostname or '', url.port)
            carry(request.headers, span)
        return span


class AiohttpSite(ClientSite):
    """`ClientSession._request(self, method, ...)`; redirects are followed inside."""

    __slots__ = ()

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """A request is to be sent. See `Site.open`."""
        return self.begin(args[1], attach)


class AiohttpRequestSite(Site):
    """`ClientRequest.__init__(self, ...)`: what that sends, once it knows where to."""

    __slots__ = ()

    def returned(self, args: tuple[Any, ...], result: Any) -> None:
        """A request has been made ready.

        Args:
            args: The request, and the rest.
            result: None.
        """
        span = current.get()
        if span is None or not isinstance(span.site, AiohttpSite):
            return
        request = args[0]
        url = request.url
        whither(span, url.scheme, url.host or '', url.port)
        carry(request.headers, span)


def whither(span: Span, scheme: str, host: str, port: int | None) -> None:
    """Note where a request goes; nothing of its path or query, which may hold what is secret.

    Args:
        span: Its span.
        scheme: 'http' or 'https'.
        host: The server.
        port: Its port, or None for the scheme's own.
    """
    attributes = span.attributes
    if attributes is not None and host:
        attributes['server.address'] = host[:256]
        number = port or _PORTS.get(scheme)
        if number:
            attributes['server.port'] = number


def carry(headers: Any, span: Span) -> None:
    """Put a span's context into headers that have none.

    Args:
        headers: A mapping that knows names whatever their case.
        span: The span.
    """
    if w3c.PARENT in headers:
        return
    for name, value in w3c.headers(span).items():
        if name not in headers:
            headers[name] = value
