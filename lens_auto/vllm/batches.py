# SPDX-License-Identifier: Apache-2.0
"""How long the batches take that a program asks of an `LLM`."""

from __future__ import annotations

from time import monotonic_ns

from lens_auto.vllm.finished import counted_elsewhere
from lens_auto.vllm.steps import Step
from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class BatchSite(Site):
    """`LLM.generate`, `LLM.chat`: a point for each that returned."""

    __slots__ = ()

    def open(self, args: tuple[Any, ...], attach: bool) -> Any:
        """A call begins. See `Site.open`."""
        self.figures.calls += 1
        return Step(self)

    def leave(self, span: Any, result: Any) -> None:
        """It returned.

        Args:
            span: From `open`.
            result: The outputs.
        """
        took = monotonic_ns() - span.start
        span.epoch = -1
        if counted_elsewhere():
            self.figures.filtered += 1
            return
        self._recorder.point(self, 'rl.vllm.batch.duration', 'histogram', 's', took / 1e9, None)
        self.figures.spans += 1

    def fail(self, span: Any, error: BaseException) -> None:
        """It raised.

        Args:
            span: From `open`.
            error: What it raised.
        """
        span.epoch = -1
        self.figures.errors += 1

    def cut(self, span: Any) -> None:
        """An exception on its way to the program has cut our part of the call short.

        Args:
            span: From `open`.
        """
        span.epoch = -1
