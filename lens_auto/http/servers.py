# SPDX-License-Identifier: Apache-2.0
"""Requests that a server answers: one SERVER span each, below the caller's span if it sends W3C headers.

Around the application, not around a route's function: that returns at once where the answer is streamed.
"""

from __future__ import annotations

import sys

from lens_auto.http.spans import HttpSite
from lens_auto.record.span import current
from lens_auto.wrap import w3c
from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.span import Span

_INSTRUMENTED = '_is_instrumented_by_opentelemetry'


class Served:
    """A request that is being answered.

    Attributes:
        scope: ASGI's.
        headers: The list of its headers: sub-applications see another dict with the same list.
        status: Its status code once that is sent.
    """

    __slots__ = ('headers', 'scope', 'status')

    def __init__(self, scope: Any) -> None:
        self.scope = scope
        self.headers = scope.get('headers')
        self.status: int | None = None


class AsgiSite(HttpSite):
    """`Starlette.__call__(self, scope, receive, send)`, FastAPI's as well."""

    __slots__ = ('_excluded',)

    KIND = 'server'

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._excluded: frozenset[str] = frozenset(args[0]['exclude'])

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """A request came in. See `Site.open`."""
        app, scope = args[0], args[1]
        if scope.get('type') != 'http' or _path(scope) in self._excluded or _has_its_own(app):
            self.figures.filtered += 1
            return None
        served, up = _served(), current.get()
        # A part of an application that has the span, or one that another rule has a span of.
        part = served is not None and served.headers is scope.get('headers')
        if part or (up is not None and up.subject == id(scope)):
            self.figures.filtered += 1
            return None
        span = self.begin(scope.get('method'), attach, scope)
        if span is not None:
            span.late = Served(scope)
            found = w3c.asked_by(scope.get('headers') or ())
            if found is not None:
                span.trace_id, span.parent_id = found
            self.announce(span)
        return span

    def leave(self, span: Span, result: Any) -> None:
        """It has been answered, to the end of its body. See `Site.leave`."""
        self.answered(span, self._named(span))

    def fail(self, span: Span, error: BaseException) -> None:
        """An error was not handled, or the client is gone. See `Site.fail`."""
        status = self._named(span)
        if status is not None and span.attributes is not None:
            span.attributes['http.response.status_code'] = status
        super().fail(span, error)

    def cut(self, span: Span) -> None:
        """See `Site.cut`."""
        self._named(span)
        super().cut(span)

    def _named(self, span: Span) -> int | None:
        served: Served | None = span.late
        span.late = None
        if served is None:
            return None
        scope = served.scope
        # Known now that the application has looked for it; that of a mounted one does not say where it is mounted.
        route = getattr(scope.get('route'), 'path', None)
        if isinstance(route, str) and span.attributes is not None:
            mounted = str(scope.get('root_path') or '').removeprefix(str(scope.get('app_root_path') or ''))
            route = (mounted + route)[:256] if 'app_root_path' in scope else route[:256]
            span.name = f'{span.name} {route}'
            span.attributes['http.route'] = route
        return served.status


class StatusSite(Site):
    """`RequestResponseCycle.send(self, message)` of uvicorn: what the application answers."""

    __slots__ = ()

    def told(self, args: tuple[Any, ...]) -> None:
        """A message is about to be sent.

        Args:
            args: The cycle, and the message.
        """
        message = args[1]
        if message.get('type') == 'http.response.start':
            served = _served()
            if served is not None:
                served.status = message.get('status')


class FlaskSite(HttpSite):
    """`Flask.full_dispatch_request(self, ...)`: in the request's context, errors that the program handles included."""

    __slots__ = ('_excluded',)

    KIND = 'server'

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._excluded: frozenset[str] = frozenset(args[0]['exclude'])

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """A request came in. See `Site.open`."""
        request: Any = getattr(sys.modules.get('flask'), 'request', None)
        if request is None or request.path in self._excluded or getattr(args[0], _INSTRUMENTED, False):
            self.figures.filtered += 1
            return None
        span = self.begin(request.method, attach, request)
        if span is None:
            return None
        environ = request.environ
        found = w3c.context(environ.get('HTTP_TRACEPARENT') or '', environ.get('HTTP_TRACESTATE') or '')
        if found is not None:
            span.trace_id, span.parent_id = found
        self.announce(span)
        route = getattr(request.url_rule, 'rule', None)
        if isinstance(route, str) and span.attributes is not None:
            span.name = f'{span.name} {route[:256]}'
            span.attributes['http.route'] = route[:256]
        return span

    def leave(self, span: Span, result: Any) -> None:
        """It has been answered. See `Site.leave`."""
        self.answered(span, getattr(result, 'status_code', None))


def _has_its_own(app: Any) -> bool:
    """Whether OpenTelemetry of the program's, or of the framework's, makes the span of a request: then it is the one.

    Around us it has begun already; inside of us it will, as a middleware.
    """
    trace = sys.modules.get('opentelemetry.trace')
    if trace is None:
        return False
    if getattr(app, _INSTRUMENTED, False):
        return True
    for each in getattr(app, 'user_middleware', ()):
        if 'opentelemetry' in str(getattr(getattr(each, 'cls', None), '__module__', '')):
            return True
    around = getattr(trace, 'get_current_span', None)
    span = None if around is None else around()
    return span is not None and getattr(getattr(span, 'kind', None), 'name', '') == 'SERVER' and span.is_recording()


def _served() -> Served | None:
    """The request that the current code answers, or None."""
    span = current.get()
    while span is not None and not isinstance(span.site, AsgiSite):
        span = span.up
    return None if span is None else span.late


def _path(scope: Any) -> str:
    path: str = scope.get('path') or ''
    root: str = scope.get('root_path') or ''
    return path.removeprefix(root) if root else path
