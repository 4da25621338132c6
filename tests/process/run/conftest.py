# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.run import Place
from tests.helpers.small_trainer import FILES


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A working directory with the small trainer in it."""
    return Place(tmp_path).write(FILES)
