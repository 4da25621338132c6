# SPDX-License-Identifier: Apache-2.0
"""Rule files that installed packages bring along, by an entry point of the group `lens_auto.rules`.

`my_trainer = my_package` names the file `my_trainer.yaml` in that package; `my_trainer = my_package.lens:rule_files` a
function (or a list) that gives paths. Looked up on a cold cache only: importlib.metadata is most of what a
launch may cost.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .errors import RuleError, RuleErrors
from .finding import ENTRY_POINT_GROUP

_SUFFIXES = ('.dist-info', '.egg-info')


def listing(folder: str) -> tuple[str, ...]:
    """The metadata folders of the packages installed in a folder."""
    try:
        return tuple(sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIXES)))
    except OSError:
        return ()


def files(folders: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The rule files of installed packages.

    Args:
        folders: Where to look for installed packages.

    Yields:
        Path, origin, and the metadata file that named it.

    Raises:
        RuleErrors: An entry point does not lead to files.
    """
    seen: set[str] = set()
    for folder in folders:
        for name in listing(folder):
            metadata = os.path.join(folder, name, 'entry_points.txt')
            package = name.split('-')[0]
            if package in seen or not _mentions(metadata):
                continue
            # The first of two installed copies is the one that imports.
            seen.add(package)
            for point in _points(os.path.join(folder, name)):
                origin = f'entry point {point.name} of {package}'
                for path in _paths(point, origin, folder):
                    yield path, origin, metadata


def _mentions(metadata: str) -> bool:
    try:
        with open(metadata, 'rb') as file:
            # As the head of a section: our own console scripts have the name in their targets.
            return f'[{ENTRY_POINT_GROUP}]'.encode() in file.read()
    except OSError:
        return False


def _points(folder: str) -> Iterable[Any]:
    from importlib.metadata import PathDistribution
    from pathlib import Path

    points = PathDistribution(Path(folder)).entry_points
    return [point for point in points if point.group == ENTRY_POINT_GROUP]


def _paths(point: Any, origin: str, folder: str) -> list[str]:
    module, _, attribute = point.value.partition(':')
    # The launcher keeps the user's folders off its path; at the end of it they stand in for no module but their own.
    sys.path.append(folder)
    try:
        if not attribute:
            return [_resource(module.strip(), f'{point.name}.yaml')]
        found: Any = importlib.import_module(module.strip())
        for part in attribute.split('[')[0].strip().split('.'):
            found = getattr(found, part)
        given: Any = found() if callable(found) else found
        if isinstance(given, str) or hasattr(given, '__fspath__'):
            given = [given]
        return [os.path.abspath(str(path)) for path in given]
    except (Exception, SystemExit) as error:  # the package's own code runs here: anything can come out of it
        message = f'`{point.value}` does not give rule files: {type(error).__name__}: {error}'
        hint = 'repair or uninstall the package'
        raise RuleErrors([RuleError(origin, 0, 0, message, (hint,))]) from None
    finally:
        if folder in sys.path:
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(folder)]


def _resource(package: str, name: str) -> str:
    from importlib.util import find_spec

    spec = find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f'no package {package}')
    for folder in spec.submodule_search_locations or [os.path.dirname(spec.origin or '')]:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f'no {name} in the package {package}')
