# SPDX-License-Identifier: Apache-2.0
"""Functions that count only where certain others have called them, or only where these have not."""

from __future__ import annotations

from sys import _getframe  # pyright: ignore[reportPrivateUsage]

from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span
    from lens_auto.wrap.figures import Figures
    from lens_auto.wrap.readers import Readers

# A coroutine's awaiting callers are on the stack as any caller is; what lies behind a thread or a task is not.
FARTHEST = 32


class WithinSite(Site):
    """A function of which the callers further up decide whether a call is recorded."""

    __slots__ = ('_among', '_expected')

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
            rule: See `Site`; its `within` or `outside` has the callers in question, as (module, qualified name).
            readers: See `Site`.
            figures: See `Site`.
            recorder: See `Site`.
            faults: See `Site`.
            passing: See `Site`.
            owned_by: See `Site`.
        """
        super().__init__(rule, readers, figures, recorder, faults, passing, owned_by)
        self._expected: bool = bool(rule['within'])
        # Frames have qualified names from Python 3.11 on only.
        self._among = {(module, name.rpartition('.')[2]) for module, name in rule['within'] or rule['outside']}

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
        if self._called(_getframe(1)) is not self._expected:
            self.figures.filtered += 1
            return None
        return super()._start(readers, args, frame, label, attach, up, root, announce)

    def _called(self, frame: FrameType | None) -> bool:
        for _ in range(FARTHEST):
            if frame is None:
                return False
            if (frame.f_globals.get('__name__'), frame.f_code.co_name) in self._among:
                return True
            frame = frame.f_back
        return False
