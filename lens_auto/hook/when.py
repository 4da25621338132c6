# SPDX-License-Identifier: Apache-2.0
"""Whether a rule file applies in this process: is its framework importable here, in a version it was written for?"""

from __future__ import annotations

import os
import sys

from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def reason_off(when: Mapping[str, Any] | None, importable: Callable[[str], bool]) -> str | None:
    """Why a file does not apply, or None when it does.

    Args:
        when: The file's `when`: {'module', 'version'} or None.
        importable: Says whether a top-level module can be found, without importing it.
    """
    if when is None:
        return None
    module: str = when['module']
    if not importable(module):
        return f'{module} is not installed here'
    wanted: str | None = when.get('version')
    if not wanted:
        return None
    found = _installed(module)
    if found is None:
        return f'{module} has no version that could be compared with {wanted}'
    return None if satisfies(found, wanted) else f'{module} {found} is not {wanted}'


def _installed(module: str) -> str | None:
    """The version of the distribution named like a module: of the first folder on `sys.path` that holds its metadata.

    By hand: `importlib.metadata` imports a dozen modules by name (csv, email, json), any of which may be the program's
    own, and takes 60 ms where many packages are installed.
    """
    wanted = _normal(module)
    for folder in sys.path:
        try:
            names = os.listdir(folder or '.')
        except OSError as error:
            if foreign(error):
                raise
            continue
        for name in names:
            stem, dot, kind = name.rpartition('.')
            if dot and kind in ('dist-info', 'egg-info') and _normal(stem.partition('-')[0]) == wanted:
                found = _version(os.path.join(folder, name, 'METADATA' if kind == 'dist-info' else 'PKG-INFO'))
                if found is not None:
                    return found
    return None


def _normal(name: str) -> str:
    return '_'.join(part for part in name.lower().replace('-', '_').replace('.', '_').split('_') if part)


def _version(path: str) -> str | None:
    try:
        with open(path, 'rb') as metadata:
            for line in metadata:
                if line[:8].lower() == b'version:':
                    return line[8:].strip().decode('ascii', 'replace')
                if not line.strip():
                    break
    except OSError as error:
        if foreign(error):
            raise
    return None


def satisfies(found: str, wanted: str) -> bool:
    """True when a version meets all of a comma list of comparisons (numbers only; a pre-release counts as its release).

    Args:
        found: As installed: `0.4.1rc2`.
        wanted: `>=0.3,<1`.
    """
    have = _numbers(found)
    for part in wanted.split(','):
        part = part.strip()
        operator = part[:2] if part[:2] in ('>=', '<=', '==', '!=') else part[:1]
        if operator not in ('>=', '<=', '==', '!=', '<', '>'):
            return False
        other = _numbers(part[len(operator) :])
        width = max(len(have), len(other))
        a, b = have + (0,) * (width - len(have)), other + (0,) * (width - len(other))
        if not {'>=': a >= b, '<=': a <= b, '==': a == b, '!=': a != b, '<': a < b, '>': a > b}[operator]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in version.strip().split('.'):
        digits = part[: len(part) - len(part.lstrip('0123456789'))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)
