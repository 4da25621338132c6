# SPDX-License-Identifier: Apache-2.0
"""Functions of a library that we patch for our own ends, whatever the rules say: where, how, and for which site."""

from __future__ import annotations

from lens_auto.record.foreign import foreign
from lens_auto.record.format import MISSING
from lens_auto.record.standard import FunctionType
from lens_auto.wrap.builtin import IN_PLACE, Placed
from lens_auto.wrap.code import Unwrappable
from lens_auto.wrap.direct import Direct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder

    # Module -> (qualified name, how (see `Direct`; or IN_PLACE), name of what is told) of each function.
    Table = Mapping[str, tuple[tuple[str, str, str], ...]]


class Seams:
    """Puts our code around the functions of a table as their modules execute, and takes it out again."""

    def __init__(self, name: str, table: Table, told: dict[str, Any], recorder: Recorder, faults: Faults):
        """See the class.

        Args:
            name: Whose functions they are, for keys and reports.
            table: Where they are.
            told: What is told of their calls, by the table's names: objects with `before`, `after` or both, and
                perhaps a `condition` (see `Direct`).
            recorder: The process's recorder.
            faults: Its fault count.
        """
        self._name = name
        self._table = dict(table)
        self._told = told
        self._recorder = recorder
        self._faults = faults
        self._on = False
        self._disabled: set[str] = set()
        self._executed: dict[str, ModuleType] = {}
        self._placed: dict[str, Direct | Placed] = {}

    def without(self, module: str, owner: str) -> None:
        """Leave out what a version of the library does not have.

        Args:
            module: The module.
            owner: The class that it lacks.
        """
        self._table[module] = tuple(each for each in self._table[module] if not each[0].startswith(f'{owner}.'))

    def select(self, on: bool) -> None:
        """Patch the library, or leave it (again) as it is.

        Args:
            on: This process records spans.
        """
        self._on = on
        if on:
            for name, module in self._executed.items():
                self._put(name, module)
            return
        for placed in self._placed.values():
            placed.shut()
        self._placed.clear()

    def executed(self, name: str, module: ModuleType) -> None:
        """A module has executed.

        Args:
            name: Its name; in the table or not.
            module: The module.
        """
        if name in self._table:
            self._executed[name] = module
            if self._on:
                self._put(name, module)

    def _put(self, name: str, module: ModuleType) -> None:
        for qualname, how, what in self._table[name]:
            target = f'{name}:{qualname}'
            if target in self._placed or target in self._disabled:
                continue
            try:
                told = self._told[what]
                if how == IN_PLACE:
                    before, after = self._guarded(target, told.before), self._guarded_after(target, told.after)
                    self._placed[target] = Placed(module, qualname, before, after)
                    continue
                function = _innermost(module, qualname)
                if function is None:
                    raise Unwrappable(f'not in this version of {self._name}')
                before, after = getattr(told, 'before', None), getattr(told, 'after', None)
                self._placed[target] = Direct(
                    function,
                    how,
                    None if before is None else self._guarded(target, before),
                    None if after is None else self._guarded_after(target, after),
                    getattr(told, 'condition', 'True'),
                )
            except Unwrappable as problem:
                self._disabled.add(target)
                self._recorder.report(MISSING, {'key': '', 'target': target, 'reason': str(problem)})
            except Exception as error:
                if foreign(error):
                    raise
                self._failed(target, error)

    def _guarded(self, target: str, before: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def told(args: Any) -> Any:
            try:
                return before(args)
            except Exception as error:
                if foreign(error):
                    raise
                self._failed(target, error)
                return None

        return told

    def _guarded_after(self, target: str, after: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def told(args: Any, result: Any) -> Any:
            try:
                return after(args, result)
            except Exception as error:
                if foreign(error):
                    raise
                self._failed(target, error)
                return result

        return told

    def _failed(self, target: str, error: Exception) -> None:
        """A fault of ours: the function is left alone from here on."""
        placed = self._placed.pop(target, None)
        if placed is not None:
            placed.shut()
        self._disabled.add(target)
        self._faults.take(f'seam of {self._name}', '', error)


def _innermost(module: ModuleType, qualname: str) -> FunctionType | None:
    """The Python function behind a library's own decorators, or None."""
    found: Any = module
    for part in qualname.split('.'):
        found = getattr(found, '__dict__', {}).get(part)
    while getattr(found, '__wrapped__', None) is not None:
        found = found.__wrapped__
    return found if isinstance(found, FunctionType) else None
