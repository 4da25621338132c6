# SPDX-License-Identifier: Apache-2.0
"""Keeps the user's modules out of the launcher: PYTHONPATH is meant for the command.

A `yaml.py` or a `json.py` of the user's there would be executed in the launcher, in place of the one it needs.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_seen: list[str] = []


def keep(environ: Mapping[str, str]) -> None:
    """Leave on this process's own `sys.path` what belongs to its Python, and the entry that lens_auto came from.

    Args:
        environ: The launcher's environment.
    """
    _seen[:] = sys.path
    given = {_absolute(entry) for entry in environ.get('PYTHONPATH', '').split(':')}
    # Python puts the script's folder in front, or the working directory.
    script = _absolute(sys.argv[0])
    given |= {
        os.path.dirname(script),
        os.path.dirname(os.path.realpath(script)) if script[:1] == '/' else '',
        _absolute(''),
    }
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path[:] = [entry for entry in _seen if _absolute(entry) not in given or entry == home or _installed(entry)]


def of_the_command() -> list[str]:
    """Where a command run by the same Python finds its modules: `sys.path` as Python made it."""
    return _seen or sys.path


def _absolute(entry: str) -> str:
    try:
        return os.path.abspath(entry)
    except OSError:  # the working directory is gone
        return entry


def _installed(entry: str) -> bool:
    """Whether it is a folder of this Python's: some users name their site-packages in PYTHONPATH."""
    own = (os.path.dirname(os.__file__), f'{sys.prefix}/lib', f'{sys.base_prefix}/lib')
    return entry.startswith(own) or entry == getattr(sys.modules.get('site'), 'USER_SITE', None)
