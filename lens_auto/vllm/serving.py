# SPDX-License-Identifier: Apache-2.0
"""Requests over HTTP to a server that has an engine: one span each, below the caller's if it sends W3C headers.

Around the application, not around a route's function: that returns at once where the answer is streamed, and the engine
gets its request only when the stream is read.
"""

from __future__ import annotations

from lens_auto.record.span import current
from lens_auto.wrap.site import DEEPEST, Site
from lens_auto.wrap.w3c import asked_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.span import Span


class HttpSite(Site):
    """`Starlette.__call__(self, scope, receive, send)`."""

    __slots__ = ('_fixed',)

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self.counts_all = True
        self._fixed: dict[str, Any] = {'lens.group': args[0]['group'], 'rl.backend': 'vllm'}

    def open(self, args: tuple[Any, ...], attach: bool) -> Any:
        """A request came in; only those that post something to an application of vLLM's count. See `Site.open`."""
        app, scope = args[0], args[1]
        if scope.get('type') != 'http' or scope.get('method') != 'POST' or not _has_engine(app):
            self.figures.filtered += 1
            return None
        figures = self.figures
        figures.calls += 1
        up = current.get()
        if up is not None and up.subject == id(scope):  # an `http` rule has a span of it
            return None
        if up is not None and up.nest >= DEEPEST:
            figures.over += 1
            return None
        attributes = {**self._fixed, 'http.request.method': 'POST'}
        span = self._recorder.open_under(up, self, 'POST', self.key, attributes, False, False, attach, id(scope))
        span.late = None
        found = asked_by(scope.get('headers') or ())
        if found is not None:
            span.trace_id, span.parent_id = found
        if figures.left > 0:
            figures.left -= 1
        # The route is known when the application has looked for it.
        span.late = ((), scope)
        return span

    def leave(self, span: Span, result: Any) -> None:
        """It has been answered. See `Site.leave`."""
        self._name_it(span)
        super().leave(span, result)

    def fail(self, span: Span, error: BaseException) -> None:
        """It failed. See `Site.fail`."""
        self._name_it(span)
        super().fail(span, error)

    def _name_it(self, span: Span) -> None:
        late: Any = span.late
        span.late = None
        if late is None:
            return
        route = getattr(late[1].get('route'), 'path', None)
        if isinstance(route, str) and span.attributes is not None:
            span.name = f'POST {route}'[:256]
            span.attributes['http.route'] = route[:256]


def _has_engine(app: Any) -> bool:
    return hasattr(getattr(app, 'state', None), 'engine_client')
