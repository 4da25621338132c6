# SPDX-License-Identifier: Apache-2.0
"""Functions inside which time counts otherwise: what generates during a validation is overhead of the training."""

from __future__ import annotations

from lens_auto.wrap.site import Site, inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span
    from lens_auto.wrap.figures import Figures
    from lens_auto.wrap.readers import Readers


class InsideSite(Site):
    """A function whose span gives the spans inside it, which have their bucket from their group, another one."""

    __slots__ = ('_bucket',)

    def __init__(
        self,
        rule: dict[str, Any],
        readers: Readers,
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
        passing: frozenset[tuple[str, str]],
        owned_by: type | None,
    ):
        """See the class.

        Args:
            rule: See `Site`; its `inside_bucket` is the bucket.
            readers: See `Site`.
            figures: See `Site`.
            recorder: See `Site`.
            faults: See `Site`.
            passing: See `Site`.
            owned_by: See `Site`.
        """
        super().__init__(rule, readers, figures, recorder, faults, passing, owned_by)
        self._bucket: str = rule['inside_bucket']

    def _start(
        self,
        readers: Readers,
        args: tuple[Any, ...],
        frame: FrameType | None,
        label: str | None,
        attach: bool,
        up: Span | None,
        root: bool,
        announce: bool,
    ) -> Span | None:
        span = super()._start(readers, args, frame, label, attach, up, root, announce)
        if span is not None:
            inside[span.span_id] = self._bucket
        return span

    def leave(self, span: Span, result: Any) -> None:
        """See `Site.leave`."""
        inside.pop(span.span_id, None)
        super().leave(span, result)

    def fail(self, span: Span, error: BaseException) -> None:
        """See `Site.fail`."""
        inside.pop(span.span_id, None)
        super().fail(span, error)

    def cut(self, span: Span) -> None:
        """See `Site.cut`."""
        inside.pop(span.span_id, None)
        super().cut(span)
