# SPDX-License-Identifier: Apache-2.0
"""A place in rewritten source as a site: opens its spans where they stand, with what the pattern captured there."""

from __future__ import annotations

from sys import _getframe  # pyright: ignore[reportPrivateUsage]

from lens_auto.record.span import current
from lens_auto.wrap.code import Signature
from lens_auto.wrap.frame import locals_of
from lens_auto.wrap.readers import Readers
from lens_auto.wrap.site import CALLER, DEEPEST, Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span
    from lens_auto.rewrite.key import Key
    from lens_auto.wrap.figures import Figures


class PlaceSite(Site):
    """One place of one rule; `frame` in an expression is the code that the place is in."""

    __slots__ = ('_made', '_names')

    def __init__(
        self,
        rule: dict[str, Any],
        key: Key,
        variables: dict[str, Any],
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
    ):
        """See the class.

        Args:
            rule: The compiled rule.
            key: The place.
            variables: The rule file's `vars`.
            figures: See `Site`.
            recorder: See `Site`.
            faults: See `Site`.
        """
        # A function's parameters are known once its code runs; until then nothing of the readers is needed.
        readers = None
        if key.kind != 'function':
            readers = Readers(rule, rule['group'], rule['bucket'], None, variables, key.captures)
        super().__init__({**rule, 'only_from': None}, readers, figures, recorder, faults)
        self._readers: Readers | None = readers
        self.counts_all = True
        self._names: tuple[str, ...] = ()
        self._made = (rule, variables)

    def passes(self) -> bool:
        """True when a call shall go unrecorded, and without a frame of ours: the budget is spent, or it is too deep."""
        figures = self.figures
        if not figures.left:
            figures.spent += 1
            return True
        up = current.get()
        if up is None or up.nest < DEEPEST:
            return False
        figures.calls += 1
        figures.over += 1
        return True

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """See `Site.open`.

        Args:
            args: None of them: what the place needs it reads from the frame.
            attach: See `Site.open`.
        """
        figures = self.figures
        figures.calls += 1
        up = current.get()
        if up is not None and up.nest >= DEEPEST:
            figures.over += 1
            return None
        readers = self._readers
        frame = None
        if readers is None:
            frame = _getframe(CALLER)
            rule, variables = self._made
            signature = Signature(frame.f_code)
            readers = self._readers = Readers(rule, rule['group'], rule['bucket'], signature, variables)
            # Of a method its object is read in any case: an override and what it overrides are one call.
            if readers.plain != () or signature.names[:1] in (('self',), ('cls',)):
                self._names = signature.names
        if self._names:
            args = locals_of(frame or _getframe(CALLER), self._names)
        elif readers.frame:
            frame = _getframe(CALLER)
        # No two places are taken for one call; a function is known by its first argument, as if it were wrapped.
        return self._start(readers, args or (self,), frame, None, attach, up, self._root, self._announce)
