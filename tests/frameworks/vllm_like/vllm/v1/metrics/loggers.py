# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any


class StatLoggerManager:
    def record(
        self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int | None = None
    ) -> None: ...
