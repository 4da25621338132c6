# SPDX-License-Identifier: Apache-2.0
"""Metric points from the calls of a function: what it returned, what it was given, how long it took."""

from __future__ import annotations

from _thread import get_ident
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from time import monotonic_ns

from lens_auto.record.foreign import foreign
from lens_auto.wrap.expression import Scope, Unreadable, measure, reader, text
from lens_auto.wrap.frame import caller
from lens_auto.wrap.reading import reading
from lens_auto.wrap.site import CALLER, UNREADABLE, Site
from lens_auto.wrap.trees import names_argument, reads_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.wrap.code import Signature
    from lens_auto.wrap.expression import Reader
    from lens_auto.wrap.figures import Figures


class Call:
    """A call in flight: to the code around the function what a span is, but nothing is current in it or stored.

    Attributes:
        site: The site that saw it begin.
        scope: What the expressions see.
        start: CLOCK_MONOTONIC nanoseconds.
        epoch: As a span's; -1 once the call has ended.
    """

    __slots__ = ('epoch', 'scope', 'site', 'start')

    def __init__(self, site: MetricSite, scope: Scope):
        """See the class.

        Args:
            site: See the class.
            scope: See the class.
        """
        self.site = site
        self.scope = scope
        self.epoch = 0
        self.start = monotonic_ns()


class _Measure:
    """One metric of the rule, compiled for the function."""

    __slots__ = ('attributes', 'instrument', 'name_of', 'unit', 'value_of')

    def __init__(self, entry: dict[str, Any], signature: Signature, variables: dict[str, Any]):
        names, extra = signature.names, signature.extra
        self.name_of: Reader = reader(entry['name'], names, variables, extra)
        self.value_of: Reader = reader(entry['value'], names, variables, extra)
        self.instrument: str = entry['instrument']
        self.unit: str = entry['unit']
        self.attributes = [(n, reader(tree, names, variables, extra)) for n, tree in entry['attributes'].items()]


class MetricSite(Site):
    """A function whose calls are measured."""

    __slots__ = ('_kept', '_measures')

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
            rule: See `Site`.
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
        self._measures = [_Measure(entry, signature, variables) for entry in rule['measures']]
        trees = [
            tree
            for entry in rule['measures']
            for tree in (entry['name'], entry['value'], *entry['attributes'].values())
        ]
        # Which arguments live until the call has returned: those that an expression looks at.
        names = signature.names
        self._kept = {
            index
            for index, name in enumerate(names)
            if any(
                (index == 0 and reads_from(tree, 'self', variables))
                or (name == signature.extra or names_argument(tree, name, variables))
                for tree in trees
            )
        }

    def open(self, args: tuple[Any, ...], attach: bool) -> Any:
        """A call begins. See `Site.open`."""
        self.figures.calls += 1
        if self._only_from is not None and not self.allows(caller(_getframe(CALLER), self._passing)):
            self.figures.filtered += 1
            return None
        if self._owned_by is not None and not self._owns(args):
            return None
        kept = self._kept
        return Call(self, Scope(tuple([a if i in kept else None for i, a in enumerate(args)]) if kept else ()))

    def leave(self, span: Any, result: Any) -> None:
        """The call returned: record the points.

        Args:
            span: From `open`.
            result: What it returned.
        """
        elapsed = monotonic_ns() - span.start
        self.figures.nanoseconds += elapsed
        span.epoch = -1
        scope = span.scope
        scope.result, scope.elapsed = result, elapsed / 1e9
        for each in self._measures:
            self._point(each, scope)

    def fail(self, span: Any, error: BaseException) -> None:
        """The call raised: there is nothing to measure.

        Args:
            span: From `open`.
            error: What it raised.
        """
        span.epoch = -1
        span.scope.args = ()
        self.figures.errors += 1

    def cut(self, span: Any) -> None:
        """An exception on its way to the program has cut our part of the call short.

        Args:
            span: From `open`.
        """
        span.epoch = -1
        span.scope.args = ()

    def _point(self, each: _Measure, scope: Scope) -> None:
        ident = get_ident()
        nested = ident in reading
        try:
            reading.add(ident)
            value, name = measure(each.value_of(scope)), text(each.name_of(scope))
        except (*UNREADABLE, Unreadable) as error:
            if foreign(error):
                raise
            self.figures.unread += 1
            return
        except Exception as error:
            if foreign(error) or isinstance(error, RecursionError):
                raise
            self.figures.unread += 1
            self._faults.take('attribute', self.key, error)
            return
        finally:
            if not nested:
                reading.discard(ident)
        labels: dict[str, Any] = {}
        self.read(each.attributes, scope, labels)
        self._recorder.point(self, name, each.instrument, each.unit, value, labels or None)
        self.figures.spans += 1
