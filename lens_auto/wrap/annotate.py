# SPDX-License-Identifier: Apache-2.0
"""Adds to the span that is current what a function inside it knows: how an operation ended, which way was taken."""

from __future__ import annotations

from sys import _getframe  # pyright: ignore[reportPrivateUsage]

from lens_auto.record.span import current
from lens_auto.wrap.expression import Scope, reader
from lens_auto.wrap.frame import caller
from lens_auto.wrap.glob import matches
from lens_auto.wrap.site import CALLER, Site
from lens_auto.wrap.trees import reads_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.wrap.code import Signature
    from lens_auto.wrap.figures import Figures


class AnnotateSite(Site):
    """A function whose arguments or result belong to a span around it."""

    __slots__ = ('_frame', '_readers_of', '_span')

    def __init__(
        self,
        rule: dict[str, Any],
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
        passing: frozenset[tuple[str, str]],
        owned_by: type | None,
        signature: Signature,
        variables: dict[str, Any],
    ):
        """See the class.

        Args:
            rule: See `Site`; its `span` is a pattern of the names of spans that get the attributes.
            figures: See `Site`.
            recorder: See `Site`.
            faults: See `Site`.
            passing: See `Site`.
            owned_by: See `Site`.
            signature: The function's parameters.
            variables: The rule file's `vars`.

        Raises:
            Unreadable: A parameter that an expression names is not there.
        """
        super().__init__(rule, None, figures, recorder, faults, passing, owned_by)
        names, extra = signature.names, signature.extra
        self._readers_of = [(n, reader(tree, names, variables, extra)) for n, tree in rule['attributes'].items()]
        trees = rule['attributes'].values()
        self._frame = any(reads_from(tree, root, variables) for tree in trees for root in ('frame', 'caller'))
        self._span: str = rule['span']

    def returned(self, args: tuple[Any, ...], result: Any) -> None:
        """The function returned.

        Args:
            args: The call's arguments.
            result: What it returned.
        """
        self.figures.calls += 1
        span = current.get()
        if span is None or span.epoch != self._recorder.epoch or not matches(self._span, span.name):
            self.figures.filtered += 1
            return
        frame = None
        if self._only_from is not None or self._frame:
            frame = caller(_getframe(CALLER), self._passing)
            if self._only_from is not None and not self.allows(frame):
                self.figures.filtered += 1
                return
        if self._owned_by is not None and not self._owns(args):
            return
        scope = Scope(args, frame)
        scope.result = result
        # Replaced, not changed: a fixed set of attributes is shared by all spans of its rule.
        found: dict[str, Any] = dict(span.attributes or {})
        self.read(self._readers_of, scope, found)
        scope.frame = None
        span.attributes = found
        self.figures.spans += 1
