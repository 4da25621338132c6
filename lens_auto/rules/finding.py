# SPDX-License-Identifier: Apache-2.0
"""Which rule files a run uses.

In order of weight: `--rules`, `LENS_RULES`, `lens.yaml` in the working directory and beside the script, entry points of
installed packages, the built-in files. Every launch asks, so this imports as little as the launcher's warm path may.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOCAL_NAME = 'lens.yaml'
ENTRY_POINT_GROUP = 'lens_auto.rules'
BUILT_IN = 'the built-in rules'


class Sources:
    """Where the rules of a run come from.

    Attributes:
        first: Path and origin of each file that outweighs the entry points.
        scan: Folders whose installed packages may name rule files by an entry point.
        last: Path and origin of each built-in file.
    """

    __slots__ = ('first', 'last', 'scan')

    def __init__(
        self, first: tuple[tuple[str, str], ...], scan: tuple[str, ...], last: tuple[tuple[str, str], ...]
    ) -> None:
        self.first = first
        self.scan = scan
        self.last = last


def sources(
    rules: Sequence[str], environ: Mapping[str, str], command: Sequence[str], path: Sequence[str] | None = None
) -> Sources:
    """The sources for one launch.

    Args:
        rules: The values of `--rules`.
        environ: For `LENS_RULES`: paths, separated as in PATH.
        command: The child's command and arguments; a `lens.yaml` beside its script counts.
        path: Folders that packages are installed in; this interpreter's own unless given.
    """
    found = [(_absolute(name), '--rules') for name in rules]
    found += [(_absolute(name), 'LENS_RULES') for name in environ.get('LENS_RULES', '').split(os.pathsep) if name]
    found += [(name, LOCAL_NAME) for name in _local(command) if os.path.isfile(name)]
    first: list[tuple[str, str]] = []
    seen: set[object] = set()
    for name, origin in found:
        # By identity of the file: the same one named twice, or through a link, is one.
        identity = _identity(name)
        if identity not in seen:
            seen.add(identity)
            first.append((name, origin))
    last = tuple((name, BUILT_IN) for name in built_in() if _identity(name) not in seen)
    return Sources(tuple(first), _scanned(sys.path if path is None else path), last)


def only(files: Sequence[str], origin: str = '') -> Sources:
    """The sources when exactly these files count."""
    return Sources(tuple((os.path.abspath(name), origin) for name in files), (), ())


def script(command: Sequence[str]) -> str | None:
    """The script that a command runs: its first argument that names an existing `.py` file."""
    return next((word for word in command[1:] if word.endswith('.py') and os.path.isfile(word)), None)


def built_in_folder() -> str | None:
    """The folder of the built-in rule files: inside an installed package, beside the package in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, '_data', 'rules')
    if os.path.isdir(installed):
        return installed
    checkout = os.path.join(os.path.dirname(package), 'rules')
    # Some other package's `rules` folder may lie beside ours; only this one holds the schema.
    return checkout if os.path.isfile(os.path.join(checkout, 'schema.json')) else None


def built_in() -> list[str]:
    """The built-in rule files."""
    folder = built_in_folder()
    names = sorted(os.listdir(folder)) if folder else []
    return [os.path.join(folder or '', name) for name in names if name.endswith('.yaml')]


def _local(command: Sequence[str]) -> list[str]:
    named = script(command)
    folders = ['', os.path.dirname(named)] if named else ['']
    return [_absolute(os.path.join(folder, LOCAL_NAME)) for folder in folders]


def _absolute(name: str) -> str:
    try:
        return os.path.abspath(name)
    except OSError:  # the working directory is gone: a relative name leads nowhere
        return name


def _identity(name: str) -> object:
    try:
        found = os.stat(name)
    except OSError:
        return name
    return found.st_dev, found.st_ino


def _scanned(path: Sequence[str]) -> tuple[str, ...]:
    # Nothing is installed into the standard library, beside a console script, or into the working directory.
    library = os.path.dirname(os.__file__)
    skipped = {library, os.path.join(library, 'lib-dynload'), os.path.dirname(_absolute(sys.argv[0] or '.'))}
    try:
        skipped.add(os.getcwd())
    except OSError:
        pass
    return tuple(dict.fromkeys(name for name in path if name and name not in skipped and os.path.isdir(name)))
