# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lens_auto.record.journal import Journal


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / 'spool'
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def open_journal(spool: Path) -> Callable[..., Journal]:
    def make(**options: int) -> Journal:
        return Journal(str(spool), lambda: {'process.command': 'test'}, **options)

    return make
