# SPDX-License-Identifier: Apache-2.0
"""Spans that `lens-codemod` wrote in the words of OpenTelemetry: where a rule records the same, there is one span."""

from __future__ import annotations

from opentelemetry.trace import INVALID_SPAN

from lens_auto.bridge import provider
from lens_auto.bridge.started import SCOPE
from lens_auto.record.span import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lens_auto.bridge.started import Started
    from lens_auto.record.span import Span

GROUP = 'lens.group'
"""The attribute by which what the codemod wrote is known."""


class Said:
    """`NoOpTracer.start_span(...)`, before it is recorded: a rule may have this very span, or be about to."""

    __slots__ = ('_begun', '_ruled', '_started')

    def __init__(
        self, started: Started, ruled: Callable[[str, str, Any], bool], begun: Callable[[str, Span | None], bool]
    ):
        """See the class.

        Args:
            started: What records it otherwise.
            ruled: Says whether a rule on a function of a module, with a span of this name and group, is in place: the
                decorator is around what that records.
            begun: Says whether the span of a timer's start and stop is open, of this name and below this span.
        """
        self._started = started
        self._ruled = ruled
        self._begun = begun

    def after(self, args: tuple[Any, ...], result: Any) -> Any:
        """See `Started.after`.

        Args:
            args: Tracer, name, context, kind, attributes, and the rest.
            result: The span that does nothing.
        """
        attributes = args[4]
        if type(attributes) is dict and GROUP in attributes and self._started.on and not provider.is_set():
            name, group = args[1], attributes[GROUP]  # pyright: ignore[reportUnknownVariableType]
            here = current.get()
            if here is not None and here.site.key and here.name == name:
                return INVALID_SPAN
            if self._begun(name, here) or self._ruled(getattr(args[0], SCOPE, ''), name, group):
                return INVALID_SPAN
            # Written of a rule with `root`: `context=Context()`, which is empty.
            return self._started.after(args, result, root=args[2] is not None and not args[2])
        return self._started.after(args, result)
