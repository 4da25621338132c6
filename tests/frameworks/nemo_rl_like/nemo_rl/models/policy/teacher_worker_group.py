# SPDX-License-Identifier: Apache-2.0
"""The teachers of a distillation."""

from __future__ import annotations

from typing import Any


class TeacherWorkerGroup:
    def __init__(self, teacher_cfg: Any, cluster: Any, policy_config: Any, tokenizer: Any) -> None:
        self.cfg = teacher_cfg
