# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin for the PPO tests of NeMo-RL, which replace the timer: keeps the real one, so phases are timed."""

from __future__ import annotations

from typing import Any

import pytest

_replace = pytest.MonkeyPatch.setattr


def _replace_all_but_the_timer(self: pytest.MonkeyPatch, target: Any, name: Any, *rest: Any, **options: Any) -> None:
    if name != 'Timer' or getattr(target, '__name__', '') != 'nemo_rl.algorithms.ppo':
        _replace(self, target, name, *rest, **options)


pytest.MonkeyPatch.setattr = _replace_all_but_the_timer
