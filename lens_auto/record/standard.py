# SPDX-License-Identifier: Apache-2.0
"""The interpreter's compiled modules by their place, and its types, without an import by name.

The folder of the program's script comes first on `sys.path`, before all that is not built into the interpreter. A
`mmap.py` or `types.py` there is the program's own affair: imported by us it would run in a program that never asked
for it. So in a traced process nothing is imported by name but what is built in, or there before any script is, and
nothing is put under a name the program may mean its own module by.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
    from typing import Any
else:

    def _types():
        def function():
            return function

        return type(function), type(function.__code__), type(function.__closure__[0])

    FunctionType, CodeType, CellType = _types()
    BuiltinFunctionType, ModuleType = type(len), type(sys)
    MethodType = type(FunctionType.__get__(_types, 0))

__all__ = ['BuiltinFunctionType', 'CellType', 'CodeType', 'FunctionType', 'MethodType', 'ModuleType', 'compiled']

_FOLDER = os.path.dirname(os.path.abspath(os.__file__))
_PLACES = (os.path.join(_FOLDER, 'lib-dynload'), _FOLDER)
_loaded: dict[str, Any] = {}


def compiled(name: str) -> Any:
    """A compiled module of the standard library.

    Args:
        name: Its name.

    Raises:
        ImportError: This Python has none.
    """
    if name in sys.builtin_module_names:
        return __import__(name)
    module = _loaded.get(name) or sys.modules.get(name)
    if module is None or not _standard(module):
        module = _loaded[name] = _load(name)
    return module


def _standard(module: Any) -> bool:
    origin = getattr(getattr(module, '__spec__', None), 'origin', None)
    return isinstance(origin, str) and os.path.dirname(origin) in _PLACES


def _load(name: str) -> Any:
    machinery: Any = sys.modules['_frozen_importlib_external']
    for place in _PLACES:
        for suffix in sys.modules['_imp'].extension_suffixes():
            path = os.path.join(place, name + suffix)
            if os.path.isfile(path):
                loader = machinery.ExtensionFileLoader(name, path)
                spec = machinery.spec_from_file_location(name, path, loader=loader)
                there = sys.modules.get(name)
                module = loader.create_module(spec)
                module.__spec__ = spec
                loader.exec_module(module)
                # A module of the old kind enters itself.
                if there is not None:
                    sys.modules[name] = there
                elif sys.modules.get(name) is module:
                    del sys.modules[name]
                return module
    raise ImportError(f'{name} is not in {_FOLDER}')
