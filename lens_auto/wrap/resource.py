# SPDX-License-Identifier: Apache-2.0
"""Reads what a run's configuration says of it, when the configuration object has been built."""

from __future__ import annotations

from _thread import get_ident

from lens_auto.record.foreign import foreign
from lens_auto.wrap.expression import Scope, Unreadable, reader
from lens_auto.wrap.figures import Figures
from lens_auto.wrap.reading import reading
from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.wrap.code import Signature
    from lens_auto.wrap.expression import Reader


class ResourceSite(Site):
    """A function that builds or receives a configuration: `Config.__init__`, `load_config`."""

    __slots__ = ('_attributes', '_resettle', '_settings')

    def __init__(
        self,
        rule: dict[str, Any],
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
        owned_by: type | None,
        signature: Signature,
        variables: dict[str, Any],
        resettle: Callable[[Any], None],
    ):
        """See the class.

        Args:
            rule: See `Site`.
            figures: See `Site`.
            recorder: See `Site`.
            faults: See `Site`.
            owned_by: See `Site`.
            signature: The function's parameters.
            variables: The rule file's `vars`.
            resettle: Given the run's own `telemetry:` block (dict or object), re-resolves this process's settings.
        """
        super().__init__(rule, None, figures, recorder, faults, frozenset(), owned_by)
        names, extra = signature.names, signature.extra
        self._attributes = [(n, reader(tree, names, variables, extra)) for n, tree in rule['attributes'].items()]
        settings = rule['settings']
        self._settings: Reader | None = None if settings is None else reader(settings, names, variables, extra)
        self._resettle = resettle

    def returned(self, args: tuple[Any, ...], result: Any) -> None:
        """The function returned.

        Args:
            args: The call's arguments.
            result: What it returned.
        """
        self.figures.calls += 1
        if self._owned_by is not None and not self._owns(args):
            return
        scope = Scope(args)
        scope.result = result
        found: dict[str, Any] = {}
        self.read(self._attributes, scope, found)
        if found:
            self._recorder.resource(found)
            self.figures.spans += 1
        if self._settings is None:
            return
        ident = get_ident()
        nested = ident in reading
        try:
            reading.add(ident)
            block = self._settings(scope)
        except (Unreadable, AttributeError, KeyError, IndexError, TypeError) as error:
            if foreign(error):
                raise
            return  # this configuration has no such block: nothing to change
        finally:
            if not nested:
                reading.discard(ident)
        if block is not None:
            self._resettle(block)
