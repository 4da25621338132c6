# SPDX-License-Identifier: Apache-2.0
"""Reads the metrics a program logs, as it logs them: a tee on `log_metrics(dict, step, prefix)`."""

from __future__ import annotations

from _thread import get_ident

from lens_auto.record.foreign import foreign
from lens_auto.wrap.expression import Scope, Unreadable, measure, reader, text
from lens_auto.wrap.figures import Figures
from lens_auto.wrap.glob import matches
from lens_auto.wrap.reading import reading
from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.wrap.code import Signature
    from lens_auto.wrap.expression import Reader

# Names such dicts go by, in the order they are looked for when the rule names none.
_METRICS = ('metrics', 'data', 'logs', 'values', 'stats', 'scalars')


class LoggerSite(Site):
    """A logging function whose dict argument holds metrics."""

    __slots__ = ('_entries', '_metrics', '_nonzero', '_prefix', '_prefixes', '_signature')

    def __init__(
        self,
        rule: dict[str, Any],
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
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
            owned_by: See `Site`.
            signature: The function's parameters.
            variables: The rule file's `vars`.

        Raises:
            ValueError: The function has no parameter of the name the rule gives.
        """
        super().__init__(rule, None, figures, recorder, faults, frozenset(), owned_by)
        self._signature = signature
        self._metrics = _index(signature, rule['metrics_arg'], _METRICS)
        self._prefix = _index(signature, rule['prefix_arg'], ('prefix',))
        self._prefixes: tuple[str, ...] | None = rule['prefixes']
        names, extra = signature.names, signature.extra
        self._nonzero = {pattern for pattern, entry in rule['metrics'].items() if entry['nonzero']}
        self._entries: list[tuple[str, bool, Reader, str, str, list[tuple[str, Reader]]]] = [
            (
                pattern,
                '*' in pattern or '?' in pattern,
                reader(entry['name'], names, variables, extra),
                entry['instrument'],
                entry['unit'] or '',
                [(name, reader(tree, names, variables, extra)) for name, tree in entry['attributes'].items()],
            )
            for pattern, entry in rule['metrics'].items()
        ]

    def returned(self, args: tuple[Any, ...], result: Any) -> None:
        """The program's own backends have the call's metrics: record those that the rule maps.

        Args:
            args: The call's arguments.
            result: What it returned.
        """
        self.figures.calls += 1
        if self._owned_by is not None and not self._owns(args):
            return
        metrics = args[self._metrics] if self._metrics is not None else _first_dict(args)
        if not isinstance(metrics, dict):
            return
        given: dict[Any, Any] = metrics  # pyright: ignore[reportUnknownVariableType]
        if self._prefixes is not None:
            prefix = args[self._prefix] if self._prefix is not None else ''
            if (prefix or '') not in self._prefixes:
                return
        scope = Scope(args)
        done: set[tuple[Any, ...]] = set()
        seen = self.figures.seen
        listed = False
        for pattern, glob, name_of, instrument, unit, attributes in self._entries:
            keys = [k for k in given if isinstance(k, str) and matches(pattern, k)] if glob else [pattern]
            for key in keys:
                if key in given and not (pattern in self._nonzero and _is_zero(given[key])):
                    listed = True
                    if pattern not in seen:
                        seen.add(pattern)
                    self._record(scope, key, given[key], name_of, instrument, unit, attributes, done)
        if not listed:
            self.figures.filtered += 1

    def _record(
        self,
        scope: Scope,
        key: str,
        value: Any,
        name_of: Reader,
        instrument: str,
        unit: str,
        attributes: list[tuple[str, Reader]],
        done: set[tuple[Any, ...]],
    ) -> None:
        scope.key = key
        ident = get_ident()
        nested = ident in reading
        try:
            reading.add(ident)
            found = measure(value)
            name = text(name_of(scope))
        except (Unreadable, AttributeError, KeyError, IndexError, TypeError) as error:
            if foreign(error):
                raise
            self.figures.unread += 1
            return
        finally:
            if not nested:
                reading.discard(ident)
        labels: dict[str, Any] = {}
        self.read(attributes, scope, labels)
        # Several keys may feed one series (its name changed between versions): the first that is there wins.
        series = (name, *labels.items())
        if series in done:
            return
        self._recorder.point(self, name, instrument, unit, found, labels or None)
        done.add(series)
        self.figures.spans += 1


def _index(signature: Signature, named: str | None, usual: tuple[str, ...]) -> int | None:
    if named is not None:
        if named not in signature.names:
            raise ValueError(f'no parameter named {named}')
        return signature.names.index(named)
    return next((signature.names.index(name) for name in usual if name in signature.names), None)


def _is_zero(value: Any) -> bool:
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    return (kind is float or kind is int) and value == 0


def _first_dict(args: tuple[Any, ...]) -> Any:
    for value in args:
        if isinstance(value, dict):
            return value  # pyright: ignore[reportUnknownVariableType]
        if type(value) is tuple:  # `*args`
            found = _first_dict(value)  # pyright: ignore[reportUnknownArgumentType]
            if found is not None:
                return found
    return None
