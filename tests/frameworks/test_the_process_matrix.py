# SPDX-License-Identifier: Apache-2.0
"""The process matrix, column by column; `make matrix` prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.process_matrix import LAST, LAUNCHERS, STARTS, Absent, column, columns

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(('launcher', 'version'), list(columns()))
def test_a_column(tmp_path: Path, launcher: str, version: str) -> None:
    try:
        found = column(launcher, version, tmp_path)
    except Absent as reason:
        pytest.skip(str(reason))
    expected = {start: 'run' if start.startswith('ProcessPool') else 'span' for start in STARTS}
    assert found == {**expected, LAST: 'same'}


def test_every_launcher_has_a_column() -> None:
    assert {name for name, _ in columns()} == set(LAUNCHERS)
