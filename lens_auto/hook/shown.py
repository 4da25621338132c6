# SPDX-License-Identifier: Apache-2.0
"""The module that a namespace belongs to, as far as looking names up in it goes."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


BOUND = '_lens_bound'
"""What the code of a program calls with a name it has bound, among the builtins; see `lens_auto.rewrite.bound`."""


class _Shown:
    """Has what a module's globals have, where the module itself is in no table (what `runpy.run_path` runs)."""


def module_of(namespace: dict[str, Any]) -> ModuleType:
    """The module with these globals, or something that shows the same names.

    Args:
        namespace: The globals.
    """
    module: Any = sys.modules.get(namespace.get('__name__', ''))
    if getattr(module, '__dict__', None) is not namespace:
        module = _Shown()
        module.__dict__ = namespace
    return module
