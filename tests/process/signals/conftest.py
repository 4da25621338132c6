# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.signals.programs import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(autouse=True)
def _as_from_a_terminal() -> Iterator[None]:
    """A shell starts what is in the background with some signals ignored, which its children inherit."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGQUIT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
