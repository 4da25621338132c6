# SPDX-License-Identifier: Apache-2.0
"""Whether a rule file applies in this process: is its framework importable here, in a version it was written for?"""

from __future__ import annotations

from lens_auto.record.format import NOT_INSTALLED
from lens_auto.record.installed import version

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
        return f'{module} {NOT_INSTALLED}'
    wanted: str | None = when.get('version')
    if not wanted:
        return None
    found = version(module)
    if found is None:
        return f'{module} has no version that could be compared with {wanted}'
    return None if satisfies(found, wanted) else f'{module} {found} is not {wanted}'


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
