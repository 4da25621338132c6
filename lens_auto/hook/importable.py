# SPDX-License-Identifier: Apache-2.0
"""Whether this process would find a module, told without importing anything."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Importable:
    """Answers for a module's name, dotted or not.

    Attributes:
        beside: A folder that counts before those of `sys.path`, '' for none: CPython asks what runs a script before the
            script's folder is on the path.
    """

    __slots__ = ('_finder', 'beside')

    def __init__(self, finder: Any):
        """See the class.

        Args:
            finder: Stage 1's; its `beside`, if there is one, is that of the script which is about to run.
        """
        self._finder = finder
        self.beside: str = getattr(finder, 'beside', '')

    def __call__(self, name: str) -> bool:
        """True when the module is there.

        Args:
            name: The module.
        """
        if name in sys.modules:
            return True
        if self.beside and _lies_in([self.beside], name.split('.')):
            return True
        first, *parts = name.split('.')
        spec = self._finder.ask(first)
        if spec is None:
            return False
        # By hand from here: to find a module in a package, finders want that imported (namespace packages do).
        folders: list[str] = list(spec.submodule_search_locations or ())
        return not parts or _lies_in(folders, parts)


def _lies_in(folders: list[str], parts: list[str]) -> bool:
    for number, part in enumerate(parts, 1):
        if number == len(parts) and any(os.path.isfile(f'{folder}/{part}.py') for folder in folders):
            return True
        folders = [f'{folder}/{part}' for folder in folders if os.path.isdir(f'{folder}/{part}')]
        if not folders:
            return False
    return True
