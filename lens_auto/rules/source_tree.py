# SPDX-License-Identifier: Apache-2.0
"""Modules of an environment as syntax trees, found as Python would find them and without importing any."""

from __future__ import annotations

import ast
import os
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from typing import Any

from .target import is_script

_DEFINED = re.compile(r'^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Module:
    """One module.

    Attributes:
        name: Its full name.
        package: The package that its relative imports start from.
        tree: Its syntax tree; None where there is none to look into.
        opaque: Why there is none.
        source: Its text, where there is a tree.
    """

    name: str
    package: str
    tree: ast.Module | None
    opaque: str = ''
    source: str = ''


class SourceTree:
    """What can be imported from a list of folders."""

    def __init__(self, path: Sequence[str], scripts: Sequence[str] = ()) -> None:
        """See the class.

        Args:
            path: The folders, in order.
            scripts: Folders that the paths of scripts are relative to, in order.
        """
        self.scripts = [os.path.abspath(entry) for entry in scripts]
        self.path = [os.path.abspath(entry) for entry in path]
        self._specs: dict[str, ModuleSpec | None] = {}
        self._modules: dict[str, Module | None] = {}
        self._defined: dict[str, dict[str, frozenset[str]]] = {}
        self._editable: dict[str, str] | None = None

    def installed(self, name: str) -> bool:
        """Whether the module exists."""
        if is_script(name):
            return self._script(name) is not None
        return name in sys.builtin_module_names or self._spec(name) is not None

    def module(self, name: str) -> Module | None:
        """The module, or None if it does not exist."""
        if name not in self._modules:
            self._modules[name] = self._load(name)
        return self._modules[name]

    def file(self, name: str) -> str | None:
        """The source file of a module, or None."""
        spec = self._spec(name)
        origin = spec.origin if spec is not None and spec.has_location else None
        return origin if origin is not None and origin.endswith('.py') else None

    def defining(self, package: str, names: Sequence[str]) -> Iterator[str]:
        """The modules below a top-level package whose source defines functions or classes of all these names."""
        if package not in self._defined:
            self._defined[package] = dict(self._index(package))
        for module, defined in self._defined[package].items():
            if defined.issuperset(names):
                yield module

    def version(self, package: str) -> str | None:
        """The version of the distribution named like a package, as a traced process looks it up."""
        from importlib.metadata import distributions

        wanted = _normal(package)
        for distribution in distributions(path=self.path):
            # The stubs promise a name; a broken installation has none.
            name: Any = distribution.metadata['Name']
            if _normal(name or '') == wanted:
                return distribution.version
        return None

    def _script(self, name: str) -> str | None:
        parts = name.split('/')
        for folder in self.scripts:
            for split in range(len(parts)):
                # `examples/train.py` names a script of a folder `examples`, from inside it too.
                path = os.path.join(folder, *parts[split:]) if split or parts[0] else name
                if folder.endswith(os.sep.join(['', *parts[:split]]) if split else '') and os.path.isfile(path):
                    return path
        return None

    def _load(self, name: str) -> Module | None:
        if is_script(name):
            path = self._script(name)
            if path is None:
                return None
            try:
                with tokenize.open(path) as file:
                    source = file.read()
            except (OSError, SyntaxError, UnicodeDecodeError):
                return Module(name, '', None, 'it cannot be read')
            return self._parsed(name, '', source)
        if name in sys.builtin_module_names:
            return Module(name, '', None, 'it is built into the interpreter')
        spec = self._spec(name)
        if spec is None:
            return None
        package = name if spec.submodule_search_locations is not None else name.rpartition('.')[0]
        if spec.loader is None:
            return Module(name, package, ast.Module([], []))
        get_source = getattr(spec.loader, 'get_source', None)
        try:
            source = get_source(spec.name) if get_source else None
        except (ImportError, OSError, SyntaxError):
            source = None
        if source is None:
            return Module(name, package, None, 'its source is not there (a C extension or bytecode only)')
        return self._parsed(name, package, source)

    def _parsed(self, name: str, package: str, source: str) -> Module:
        try:
            return Module(name, package, ast.parse(source), source=source)
        except (SyntaxError, ValueError, RecursionError):
            version = '.'.join(map(str, sys.version_info[:2]))
            return Module(name, package, None, f'its source does not parse with Python {version}')

    def _spec(self, name: str) -> ModuleSpec | None:
        if name not in self._specs:
            self._specs[name] = self._find(name)
        return self._specs[name]

    def _find(self, name: str) -> ModuleSpec | None:
        parent, _, last = name.rpartition('.')
        if not parent:
            return PathFinder.find_spec(name, self.path) or self._find_editable(name)
        above = self._spec(parent)
        if above is None or above.submodule_search_locations is None:
            return None
        # By its last part alone: for a full name Python looks up the parent of a namespace package in sys.modules.
        return PathFinder.find_spec(last, list(above.submodule_search_locations))

    def _find_editable(self, name: str) -> ModuleSpec | None:
        """A package installed in editable mode by setuptools' import hook, whose file says where the source is."""
        if self._editable is None:
            self._editable = dict(_editable(self.path))
        folder = self._editable.get(name)
        if folder is None:
            return None
        if os.path.isdir(folder):
            file = os.path.join(folder, '__init__.py')
            return spec_from_file_location(name, file, submodule_search_locations=[folder])
        return spec_from_file_location(name, f'{folder}.py')

    def _index(self, package: str) -> Iterator[tuple[str, frozenset[str]]]:
        spec = self._spec(package)
        for root in list(spec.submodule_search_locations or ()) if spec else ():
            for folder, _, files in os.walk(root):
                inner = os.path.relpath(folder, root).split(os.sep)
                for file in sorted(files):
                    if not file.endswith('.py'):
                        continue
                    parts = [package, *(part for part in inner if part != '.'), file[:-3]]
                    module = '.'.join(parts[:-1] if file == '__init__.py' else parts)
                    try:
                        with open(os.path.join(folder, file), encoding='utf-8', errors='replace') as source:
                            yield module, frozenset(_DEFINED.findall(source.read()))
                    except OSError:
                        continue


def _normal(name: str) -> str:
    return re.sub(r'[-_.]+', '-', name).lower()


def _editable(path: Sequence[str]) -> Iterator[tuple[str, str]]:
    for folder in path:
        try:
            names = [
                name for name in os.listdir(folder) if name.startswith('__editable__') and name.endswith('_finder.py')
            ]
        except OSError:
            continue
        for name in names:
            try:
                with open(os.path.join(folder, name), encoding='utf-8') as file:
                    tree = ast.parse(file.read())
            except (OSError, SyntaxError, ValueError):
                continue
            for node in tree.body:
                value = node.value if isinstance(node, ast.AnnAssign) else None
                if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == 'MAPPING' and value is not None:
                    mapping: dict[str, str] = ast.literal_eval(value)
                    yield from mapping.items()
