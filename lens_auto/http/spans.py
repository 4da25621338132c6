# SPDX-License-Identifier: Apache-2.0
"""What spans of both sides of a request have in common."""

from __future__ import annotations

import sys
from time import monotonic_ns

from lens_auto.http.suppressed import suppressed
from lens_auto.record.format import STATUS_ERROR, STATUS_UNSET
from lens_auto.record.span import current
from lens_auto.wrap.site import DEEPEST, Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.span import Span

METHODS = frozenset({'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'})
OTHER = '_OTHER'  # of OpenTelemetry's conventions: a method may be any text, and a name must not be


class HttpSite(Site):
    """A function that takes or makes one request a call."""

    __slots__ = ('_fixed',)

    KIND = ''
    FAILED = 500
    """The lowest status that is an error of this side: a server is not to blame for a request that is wrong."""

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self.counts_all = True
        self._fixed: dict[str, Any] = {'lens.group': args[0]['group'], 'span.kind': self.KIND}

    def begin(self, method: object, attach: bool, request: object = None) -> Span | None:
        """Open the span of a request, named by its method.

        Args:
            method: What the request says.
            attach: See `Site.open`.
            request: By which the same request is known where it passes again.
        """
        figures = self.figures
        figures.calls += 1
        if suppressed(sys.modules, self.key, self._faults):
            figures.filtered += 1
            return None
        up = current.get()
        if up is not None and up.nest >= DEEPEST:
            figures.over += 1
            return None
        known = str(method).upper()
        name = known if known in METHODS else OTHER
        attributes = {**self._fixed, 'http.request.method': name}
        shown = 'HTTP' if name == OTHER else name
        span = self._recorder.open_under(up, self, shown, self.key, attributes, False, False, attach, id(request))
        span.late = None
        if figures.left > 0:
            figures.left -= 1
        return span

    def announce(self, span: Span) -> None:
        """Have a span shown that its process does not live to end.

        Args:
            span: From `begin`, its parent known.
        """
        self._recorder.announce(span, self.key)
        span.attributes = {}

    def answered(self, span: Span, status: object) -> None:
        """End a span whose request was answered.

        Args:
            span: From `begin`.
            status: The status code, or None where nobody saw it.
        """
        failed = False
        if isinstance(status, int) and span.attributes is not None:
            span.attributes['http.response.status_code'] = status
            failed = status >= self.FAILED
            if failed:
                span.attributes['error.type'] = str(status)
        end = monotonic_ns()
        figures = self.figures
        figures.spans += 1
        figures.errors += failed
        figures.nanoseconds += end - span.start
        span.late = None
        self._recorder.detach(span)
        self._recorder.close(span, end, self.key, STATUS_ERROR if failed else STATUS_UNSET)
