# SPDX-License-Identifier: Apache-2.0
"""Whether a version lies in a range such as `>=0.3,<1`; the same answer as a traced process gives itself."""

from __future__ import annotations

import re

LIMIT = re.compile(r'(>=|<=|==|!=|<|>)\s*(\d+(?:\.\d+)*)')


def contains(limits: str, version: str) -> bool:
    """Whether a version keeps to all limits. Its numbers count: a pre-release is taken for its release.

    Args:
        limits: Comparisons, separated by commas.
        version: As installed.
    """
    have = _numbers(version)
    for limit in limits.split(','):
        found = LIMIT.fullmatch(limit.strip())
        if found is None:
            return False
        operator, text = found.groups()
        wanted = _numbers(text)
        width = max(len(have), len(wanted))
        left, right = have + (0,) * (width - len(have)), wanted + (0,) * (width - len(wanted))
        order = (left > right) - (left < right)
        if order not in {'>=': (0, 1), '<=': (0, -1), '==': (0,), '!=': (1, -1), '<': (-1,), '>': (1,)}[operator]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r'\d+(?:\.\d+)*', version.strip())
    return tuple(int(part) for part in found.group().split('.')) if found else ()
