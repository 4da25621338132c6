# SPDX-License-Identifier: Apache-2.0
"""The value model of PPO; its workers are the policy's here."""

from __future__ import annotations

from typing import Any

from nemo_rl.utils.timer import Timer


class Value:
    def __init__(self, config: Any) -> None:
        self.cfg = config

    def get_values(self, data: Any, timer: Timer | None = None) -> list[float]:
        return [0.0] * len(data['input_lengths'])

    def train(self, data: Any, loss_fn: Any, timer: Timer | None = None) -> dict[str, Any]:
        return {'critic/loss': 0.25}
