# SPDX-License-Identifier: Apache-2.0
"""Runs the launcher as a process, out of the checkout, with a cache and a working directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
# Options of the launcher come after the code that runs before it, so that a test can plant something.
CODE = 'import sys; sys.path.insert(0, {repository!r}); {planted}; from lens_auto.launch.main import main; main()'


class Bench:
    """A working directory, a cache folder, and an environment without anything of ours."""

    def __init__(self, folder: Path) -> None:
        self.cwd = folder / 'work here'
        self.cwd.mkdir()
        drop = ('LENS_', 'PYTHON', 'OTEL_', 'NEMO_', 'SLURM_')
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
        self.env |= {
            'XDG_CACHE_HOME': str(folder / 'cache'),
            'TMPDIR': str(folder),
            'LENS_SPOOL': str(folder / 'spool'),
        }

    def launcher(self, *arguments: str, planted: str = 'pass') -> list[str]:
        """The launcher's command line."""
        return [sys.executable, '-c', CODE.format(repository=str(REPOSITORY), planted=planted), *arguments]

    def run(
        self, *arguments: str, planted: str = 'pass', env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Launch and wait."""
        return self.plain(*self.launcher(*arguments, planted=planted), env=env)

    def plain(self, *command: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """The command without the launcher."""
        return subprocess.run(
            command,
            cwd=self.cwd,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def runs(self) -> list[Path]:
        """The run folders there are."""
        folder = self.cwd / 'lens-runs'
        return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
