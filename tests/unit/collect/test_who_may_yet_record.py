# SPDX-License-Identifier: Apache-2.0
"""A run is whole when nobody is left who may begin to record; Ray's agents, which stay for minutes, never do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lens_auto.collect.liveness import carriers
from tests.helpers.ray_program import wait_until


@contextmanager
def carrying(spool: str, name: str) -> Iterator[None]:
    process = subprocess.Popen([name, '60'], executable='/bin/sleep', env={'LENS_SPOOL': spool, 'LAST': ''})
    try:
        # Until it is what it will be.
        wait_until(lambda: Path(f'/proc/{process.pid}/cmdline').read_bytes().startswith(name.encode()))
        yield
    finally:
        process.kill()
        process.wait()


def test_a_shell_counts_and_an_agent_of_ray_does_not(tmp_path: Path) -> None:
    spool = str(tmp_path / 'spool')
    with carrying(spool, 'ray::DashboardAgent'), carrying(spool, 'ray::RuntimeEnvAgent'):
        assert carriers(spool) == 0
        with carrying(spool, 'shell'):
            assert carriers(spool) == 1
