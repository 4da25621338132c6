# SPDX-License-Identifier: Apache-2.0
"""The environment the command gets: one entry more in front of PYTHONPATH, and the LENS_* names every process reads."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def working_directory() -> str:
    """The working directory; empty where it has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return ''


def shown(path: str) -> str:
    """A path as a reader recognises it: relative where it lies below the working directory."""
    here = working_directory()
    return path.removeprefix(f'{here}/') if here else path


def with_entry(python_path: str | None, entry: str) -> str:
    """PYTHONPATH with `entry` in front, exactly once, and the user's own part as it was.

    Entries are compared whole, so a longer path with the same ending stays; empty ones of the user's, which mean the
    working directory, stay too, and none is added: an empty PYTHONPATH counts as unset, as it does for Python.

    Args:
        python_path: The user's PYTHONPATH, or None.
        entry: The folder of stage 1.
    """
    if not python_path:
        return entry
    kept = [path for path in python_path.split(':') if not _same(path, entry)]
    return ':'.join([entry, *kept])


def has_entry(python_path: str | None, entry: str) -> bool:
    """Whether `entry` is one of the entries of PYTHONPATH.

    Args:
        python_path: PYTHONPATH, or None.
        entry: The folder of stage 1.
    """
    return any(_same(path, entry) for path in (python_path or '').split(':'))


def _same(path: str, entry: str) -> bool:
    return path == entry or (path.startswith('/') and os.path.normpath(path) == entry)


def inherited(environ: Mapping[str, str]) -> bool:
    """Whether an outer launcher's run is under way here: its plan, its spool and its entry in PYTHONPATH are usable.

    What a finished run left in an environment does not count, or the next run would be recorded nowhere.
    """
    path, mark, digest = environ.get('LENS_PLAN_REF', '').rpartition('#')
    if not mark or len(digest) != 64:
        return False
    spool = environ.get('LENS_SPOOL', '')
    return os.access(path, os.R_OK) and os.path.isdir(spool) and environ.get('LENS_ENABLED') == '1'


def console_identity() -> str | None:
    """Device and inode of this process's stdout, by which a process tells whether it writes to the same file."""
    try:
        stat = os.fstat(1)
    except OSError:
        return None
    return f'{stat.st_dev}:{stat.st_ino}'


# What a launcher decides anew for every run.
_OF_ONE_RUN = (
    *('LENS_PLAN_REF', 'LENS_SPOOL', 'LENS_RUN_ROOT', 'LENS_LAUNCHER_PID', 'LENS_CONSOLE', 'LENS_MODULES'),
    *('LENS_PARENT', 'LENS_HOME', 'LENS_PROVISIONAL', 'LENS_NATIVE_ENDPOINT', 'LENS_SCRIPTS', 'LENS_CACHE'),
)


def forget(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what a finished run left in it, say in a shell that was started inside that run.

    Args:
        environ: The launcher's environment, known not to be of a run under way.
    """
    kept = dict(environ)
    if 'LENS_PLAN_REF' in environ:
        weak = environ.get('LENS_PROVISIONAL', '').split(',')
        # Those settings came from defaults and files, not from this environment.
        for name in [*_OF_ONE_RUN, *(f'LENS_{field.upper()}' for field in weak if field)]:
            kept.pop(name, None)
    return kept
