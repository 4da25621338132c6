# SPDX-License-Identifier: Apache-2.0
"""Whether a framework's own telemetry will record in this process: then our rules for the same spans stand down."""

from __future__ import annotations

import os

from lens_auto.record.foreign import foreign
from lens_auto.settings.fields import TRUE
from lens_auto.wrap.expression import Scope, reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Native:
    """The `native` sections of the plan's files, as they hold in this process.

    Attributes:
        enabled: Whether the run's own config, which a framework's telemetry reads too, says that telemetry is on; None
            while no config object has been seen.
    """

    __slots__ = ('_files', '_importable', '_there', 'enabled')

    def __init__(self, files: list[dict[str, Any]], importable: Callable[[str], bool]):
        """See the class.

        Args:
            files: The plan's.
            importable: Says whether a module can be found, without importing it.
        """
        self._files = files
        self._importable = importable
        self._there: dict[int, bool] = {}
        self.enabled: bool | None = None

    def records(self, file: int) -> bool:
        """Whether the framework of a rule file records by itself here.

        Code that would be a no-op does not count: its library must be importable as well, and it must be switched on.

        Args:
            file: Index of the file in the plan.
        """
        native = self._files[file]['native']
        if not native:
            return False
        there = self._there.get(file)
        if there is None:
            needs = (native['module'], *native['library'])
            there = self._there[file] = all(self._finds(name) for name in needs)
        return there and self._enabled(native['enabled'])

    def _enabled(self, tree: Any) -> bool:
        if tree is None:
            return True
        if tree[0] == 'or':  # variables of which the first that is set counts, whatever it says
            first: Any = tree[1]
            return self._enabled(first if self._is_set(first) else tree[2])
        try:
            return str(reader(tree, (), {})(Scope(()))).strip().lower() in TRUE
        except KeyError as error:
            if foreign(error):
                raise
            return bool(self.enabled)  # the variable, which wins, is not set: the config says
        except Exception as error:
            if foreign(error):
                raise
            return False

    @staticmethod
    def _is_set(tree: Any) -> bool:
        return tree[0] != 'env' or tree[1] in os.environ

    def _finds(self, name: str) -> bool:
        try:
            return self._importable(name)
        except Exception as error:  # a finder of the program's own
            if foreign(error):
                raise
            return False
