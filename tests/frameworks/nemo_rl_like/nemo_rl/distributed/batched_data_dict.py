# SPDX-License-Identifier: Apache-2.0
"""A batch: lists of the same length, by name."""

from __future__ import annotations

from typing import Any


class BatchedDataDict(dict[str, Any]):
    @property
    def size(self) -> int:
        """How many samples it holds."""
        return len(next(iter(self.values())))

    def repeat_interleave(self, times: int) -> BatchedDataDict:
        """Each sample `times` times."""
        return BatchedDataDict({name: [x for x in values for _ in range(times)] for name, values in self.items()})
