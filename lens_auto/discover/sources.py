# SPDX-License-Identifier: Apache-2.0
"""The Python files of a code base, each with the name a rule's target has for it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MOST_BYTES = 2_000_000
# Tests call the same functions as a trainer does, and no run of a trainer executes them.
_SKIPPED = frozenset(
    ('tests', 'test', 'docs', 'doc', 'build', 'dist', 'node_modules', 'site-packages', 'third_party', 'vendor')
    + ('__pycache__',)
)
_TELLING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Call, ast.arg, ast.FunctionDef)
_MAIN = "__name__ == '__main__'"


class Source(NamedTuple):
    """One file.

    Attributes:
        path: Where it is, absolute.
        shown: The path as comments name it, from the folder it was found through.
        module: What targets call it: `package.module`, or the end of the path for a script.
        root: The folder that has to be on the path for that name to lead here.
        script: Whether it is run by path.
        tree: Its syntax tree.
        telling: The nodes of it that are looked through again and again, so that the tree is walked once.
    """

    path: str
    shown: str
    module: str
    root: str
    script: bool
    tree: ast.Module
    telling: tuple[ast.AST, ...]


class CodeBase(NamedTuple):
    """What was read.

    Attributes:
        sources: The files, ordered by path.
        unread: Files that could not be read, each with the reason.
    """

    sources: tuple[Source, ...]
    unread: tuple[tuple[str, str], ...]


class MissingPath(Exception):
    """A path that was given does not exist, or is no Python file."""


def read(paths: Sequence[str]) -> CodeBase:
    """Read files and folders.

    Args:
        paths: Python files, and folders that are searched.

    Raises:
        MissingPath: One of them is neither.
    """
    files: dict[str, str] = {}
    for given in paths:
        path = os.path.abspath(given)
        if os.path.isdir(path):
            base = _package_root(path) or path
            for file in sorted(_python_files(path)):
                files.setdefault(file, base)
        elif os.path.isfile(path) and path.endswith('.py'):
            files.setdefault(path, os.path.dirname(path))
        else:
            raise MissingPath(given)
    trees: dict[str, ast.Module] = {}
    unread: list[tuple[str, str]] = []
    for path in sorted(files):
        try:
            if os.path.getsize(path) > _MOST_BYTES:
                unread.append((path, 'too long to have been written by hand'))
                continue
            with open(path, 'rb') as file:
                trees[path] = ast.parse(file.read(), path)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            unread.append((path, type(error).__name__))
    telling = {
        path: tuple(node for node in ast.walk(tree) if isinstance(node, _TELLING)) for path, tree in trees.items()
    }
    imported = {path: _imported(nodes) for path, nodes in telling.items()}
    beside: dict[str, set[str]] = {}
    for path, names in imported.items():
        beside.setdefault(os.path.dirname(path), set()).update(names)
    everywhere = {name for names in imported.values() for name in names}
    sources = [_source(path, files[path], tree, telling[path], beside, everywhere) for path, tree in trees.items()]
    return CodeBase(tuple(sources), tuple(unread))


def _python_files(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith('.')
            and name not in _SKIPPED
            and not os.path.exists(os.path.join(parent, name, 'pyvenv.cfg'))
        )
        for name in names:
            # conftest.py and test_*.py are tests wherever they lie.
            if name.endswith('.py') and not name.startswith(('test_', 'conftest.')) and not name.endswith('_test.py'):
                yield os.path.join(parent, name)


def _package_root(folder: str) -> str | None:
    """The folder that holds the outermost package around a folder; None if it is in no package."""
    found = None
    while os.path.isfile(os.path.join(folder, '__init__.py')):
        folder = os.path.dirname(folder)
        found = folder
    return found


def _source(
    path: str,
    base: str,
    tree: ast.Module,
    telling: tuple[ast.AST, ...],
    beside: dict[str, set[str]],
    everywhere: set[str],
) -> Source:
    shown = os.path.relpath(path, base)
    root = _shorter(_outermost(path, base), _imported_root(path, base, everywhere))
    if root is not None:
        return Source(path, shown, _dotted(os.path.relpath(path, root)), root, False, tree, telling)
    folder, name = os.path.split(path)
    stem = name[:-3]
    if not _runs(tree) and stem.isidentifier():
        # What a neighbour imports by its bare name lies on the path by itself, as next to a script.
        if stem in beside[folder]:
            return Source(path, shown, stem, folder, False, tree, telling)
        dotted = _dotted(shown)
        if all(part.isidentifier() for part in dotted.split('.')):
            return Source(path, shown, dotted, base, False, tree, telling)
    return Source(path, shown, shown.replace(os.sep, '/'), base, True, tree, telling)


def _outermost(path: str, base: str) -> str | None:
    """The folder above the outermost package of a file; folders without `__init__.py` inside a package belong to it."""
    found = None
    folder = os.path.dirname(path)
    while True:
        if os.path.isfile(os.path.join(folder, '__init__.py')):
            found = os.path.dirname(folder)
        elif len(folder) <= len(base):
            return found
        if folder == os.path.dirname(folder):
            return found
        folder = os.path.dirname(folder)


def _imported_root(path: str, base: str, imported: set[str]) -> str | None:
    """The folder above the outermost one that the code imports from by name: packages need no `__init__.py`."""
    folders = os.path.relpath(os.path.dirname(path), base).split(os.sep)
    at, name = os.path.dirname(base), os.path.basename(base)
    # A checkout is often called like the package in it.
    inside = os.path.isdir(os.path.join(base, name)) or os.path.isfile(os.path.join(base, f'{name}.py'))
    if name in imported and not inside:
        return at
    at = base
    for folder in folders:
        if folder in imported and folder.isidentifier():
            return at
        at = os.path.join(at, folder)
    return None


def _shorter(first: str | None, second: str | None) -> str | None:
    return min((one for one in (first, second) if one is not None), key=len, default=None)


def _dotted(path: str) -> str:
    return path[:-3].replace(os.sep, '.').removesuffix('.__init__')


def _runs(tree: ast.Module) -> bool:
    """Whether a module does something when it is run: a main guard, or a loop of its own."""
    for node in tree.body:
        if isinstance(node, ast.If) and _MAIN in ast.unparse(node.test):
            return True
        if isinstance(node, (ast.For, ast.While)):
            return True
    return False


def _imported(nodes: tuple[ast.AST, ...]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition('.')[0])
        elif isinstance(node, ast.Import):
            names.update(alias.name.partition('.')[0] for alias in node.names)
    return names
