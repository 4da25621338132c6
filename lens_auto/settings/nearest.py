# SPDX-License-Identifier: Apache-2.0
"""The name somebody meant.

`difflib` would cost `re` and `collections` on a path where a run's own config has an unknown key.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name fewest edits away from `name`, or None when all of them are other words."""
    wanted = name.lower().replace('-', '_')
    best, allowed = None, len(wanted) // 3
    for candidate in names:
        edits = _edits(wanted, candidate)
        if edits <= allowed:
            best, allowed = candidate, edits - 1
    return best


def _edits(one: str, other: str) -> int:
    # Levenshtein, one row at a time, with neighbouring letters swapped as a single edit.
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, row = row, [i]
        for j, wanted in enumerate(other, 1):
            edits = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                edits = min(edits, before[j - 2] + 1)
            row.append(edits)
        before = above
    return row[-1]
