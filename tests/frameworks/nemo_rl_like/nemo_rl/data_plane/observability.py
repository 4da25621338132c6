# SPDX-License-Identifier: Apache-2.0
"""The store of rollouts, each operation of which goes by one method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class MetricsDataPlaneClient:
    def __init__(self) -> None:
        self._groups: list[Any] = []

    def put(self, partition_id: str, group: Any) -> None:
        self._run('put', partition_id, lambda: self._groups.append(group), n_keys=1, n_bytes=64)

    def get(self, partition_id: str) -> Any:
        return self._run('get', partition_id, lambda: self._groups.pop(0), n_keys=1)

    def claim(self, partition_id: str) -> None:
        def late() -> None:
            raise TimeoutError

        self._run('claim_meta', partition_id, late)

    def is_ready(self) -> bool:
        return bool(self._groups)

    def _run(self, op: str, partition_id: str, fn: Callable[[], Any], *, n_keys: int = 0, n_bytes: int = 0) -> Any:
        try:
            out = fn()
        except TimeoutError:
            self._emit(op, partition_id, n_keys, n_bytes, 'timeout')
            raise
        # What was read is known now only.
        self._emit(op, partition_id, n_keys, n_bytes or 32, 'ok')
        return out

    def _emit(self, op: str, partition_id: str, n_keys: int, n_bytes: int, status: str) -> None:
        pass
