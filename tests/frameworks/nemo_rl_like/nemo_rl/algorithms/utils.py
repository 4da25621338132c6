# SPDX-License-Identifier: Apache-2.0
"""What the algorithms share."""

from __future__ import annotations

from typing import Any


def get_tokenizer(tokenizer_config: Any, get_processor: bool = False) -> object:
    return object()


def print_efficiency_summary(
    efficiency_metrics: dict[str, float], total_wall_time_s: float, step: int
) -> dict[str, float]:
    """What is logged of where the time went."""
    names = ('init/total', 'idle/buffer_starvation', 'idle/refit_bubble', 'idle/validation')
    collector = (
        'idle/buffer_full_backoff',
        'idle/generation_limit_pause',
        'idle/refit_event_wait',
        'wasted/failed_trajectory',
    )
    loggable = {f'efficiency/{name}_s': efficiency_metrics.get(name, 0.0) for name in (*names, *collector)}
    loggable |= {f'efficiency/{name}_pct': 1.0 for name in names}
    return {**loggable, 'efficiency/efficiency_pct': 90.0, 'efficiency/total_wall_time_s': total_wall_time_s}


def performance(tokens: int) -> dict[str, float]:
    return {'tokens_per_sec': float(tokens), 'samples_per_sec': 2.0}
