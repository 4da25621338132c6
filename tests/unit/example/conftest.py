# SPDX-License-Identifier: Apache-2.0
"""The example as its user runs it: a script in a process of its own, and its package importable for the unit tests."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / 'examples'
SMALL = ('--prompts-per-step', '4', '--group-size', '4')


# As `python examples/run_grpo.py` has it.
sys.path.insert(0, str(EXAMPLES))


@pytest.fixture
def run_grpo(tmp_path: Path) -> Callable[..., list[str]]:
    """Runs the script with small batches unless told otherwise; returns the lines it printed."""

    def run(*flags: str) -> list[str]:
        command = [sys.executable, str(EXAMPLES / 'run_grpo.py'), '--out', str(tmp_path / 'out'), *SMALL, *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run
