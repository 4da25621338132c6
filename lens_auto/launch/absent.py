# SPDX-License-Identifier: Apache-2.0
"""Whether a module that no process imported is there at all: if not, a rule on it is out of date, or mistyped."""

from __future__ import annotations

import os

from lens_auto.launch import own_path
from lens_auto.launch.environment import working_directory
from lens_auto.rules import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def folders(command: Sequence[str]) -> list[str]:
    """Where this Python, or the command's script, would find a module.

    Args:
        command: The command and its arguments.
    """
    here = working_directory()
    script = finding.script(command)
    beside = os.path.join(here, os.path.dirname(script)) if script else here
    return [folder for folder in (beside, here, *own_path.of_the_command()) if folder]


def absent(module: str, places: Sequence[str]) -> str:
    """What a package lacks, '' where the module is there or its package is nowhere to be seen.

    A package that is not installed is for another mode of the program, or in another Python's folders.

    Args:
        module: The module's full name.
        places: Where to look.
    """
    parts = module.split('.')
    for depth, part in enumerate(parts):
        listed = {place: _names(place) for place in places}
        inside = [f'{place}/{part}' for place, names in listed.items() if part in names]
        file = any(name.startswith(f'{part}.') and name.endswith(_KINDS) for names in listed.values() for name in names)
        if not inside or file:
            return '' if file or not depth else f'{".".join(parts[:depth])} has no module {part}'
        places = [place for place in inside if os.path.isdir(place)]
    return ''


_KINDS = ('.py', '.pyc', '.so')


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
