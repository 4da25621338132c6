# SPDX-License-Identifier: Apache-2.0
"""Runs a program that starts Ray, plainly and under `lens-instrument`, and hands back what both did.

Every place has a Ray folder of its own, short enough for socket names; whatever of Ray still runs out of it when the
test is over is ended, process by process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.run import LENS, Done, Place, Run, Span

PATIENCE = 300.0


def rules_text(targets: Mapping[str, str] | Iterable[tuple[str, str]], framework: str = 'on_ray') -> str:
    """A rule file with one `function` rule for each span name -> target; every rule announces."""
    pairs = targets.items() if isinstance(targets, Mapping) else targets
    rules = [f'- {{kind: function, target: "{target}", group: rollout, name: "{name}"}}\n' for name, target in pairs]
    return f'framework: {framework}\nrules:\n' + ''.join(rules)


@dataclass
class Traced:
    """A program under `lens-instrument`: how it ended, and its run folder."""

    done: Done
    run: Run

    @property
    def spans(self) -> list[Span]:
        return self.run.spans

    def above(self, span: Span) -> str:
        """The name of a span's parent; '' when it has none or its parent is not in the folder."""
        return next((other.name for other in self.spans if other.id == span.parent), '')


class RayPlace(Place):
    """A working directory whose programs start Ray.

    Args:
        folder: An empty folder of the test.
        python: The interpreter of a venv that has ray; it needs nothing of ours.
    """

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        super().__init__(folder, name='work')
        self.python = python
        self.ray_folder = Path(tempfile.mkdtemp(prefix='r', dir='/tmp'))  # a socket's path holds 107 bytes
        drop = ('RAY_',)
        self.env = {name: value for name, value in self.env.items() if not name.startswith(drop)}
        self.env |= {
            'RAY_TMPDIR': str(self.ray_folder),
            'RAY_USAGE_STATS_ENABLED': '0',
            'RAY_AUTH_MODE': 'disabled',
            'RAY_DEDUP_LOGS': '0',
        }

    def write(self, files: Mapping[str, str]) -> RayPlace:
        """See `Place.write`."""
        super().write(files)
        return self

    def end(self) -> None:
        """End what still runs out of the Ray folder."""
        for _ in range(20):
            left = list(self.processes())
            for pid in left:
                with _gone():
                    os.kill(pid, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.1)

    def close(self) -> None:
        """End what still runs out of the Ray folder, and remove it."""
        self.end()
        shutil.rmtree(self.ray_folder, ignore_errors=True)

    def processes(self, title: str = '') -> Iterator[int]:
        """The processes that carry this place's Ray folder, or the place's own, in their environment.

        Args:
            title: Only those whose command line holds this.
        """
        # The title of one of Ray's agents may be in the place of either.
        marks = (f'RAY_TMPDIR={self.ray_folder}\0'.encode(), f'{self.folder}/'.encode())
        for entry in Path('/proc').iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with _gone():
                    environ = (entry / 'environ').read_bytes()
                    if not any(mark in environ for mark in marks):
                        continue
                    if title.encode() in (entry / 'cmdline').read_bytes():
                        yield int(entry.name)

    def execute(self, *command: str, env: Mapping[str, str] | None = None, patience: float = PATIENCE) -> Done:
        """Run a command to its end. Its output goes to files: a daemon of Ray that outlives it holds no pipe."""
        out, err = self.folder / 'stdout', self.folder / 'stderr'
        with open(out, 'wb') as stdout, open(err, 'wb') as stderr:
            process = subprocess.Popen(
                command,
                cwd=self.cwd,
                env={**self.env, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            try:
                code = process.wait(patience)
            except BaseException:
                process.kill()
                process.wait()
                print(out.read_text(errors='replace')[-4000:], err.read_text(errors='replace')[-4000:])
                raise
        return Done(code, out.read_text(errors='replace'), err.read_text(errors='replace'))

    def without(self, *program: str, env: Mapping[str, str] | None = None) -> Done:
        """Run `python PROGRAM` without us."""
        return self.execute(self.python, *program, env=env)

    def command(
        self, run_dir: Path, *program: str, rules: Iterable[str] = ('rules.yaml',), groups: str = 'rollout'
    ) -> list[str]:
        """`lens-instrument ... python PROGRAM` with rule files of the working directory."""
        files = [part for name in rules for part in ('--rules', name)]
        options = ['--run-dir', str(run_dir), '--no-summary', '--span-groups', groups]
        return [LENS, *files, *options, self.python, *program]

    def traced(
        self,
        *program: str,
        rules: Iterable[str] = ('rules.yaml',),
        env: Mapping[str, str] | None = None,
        groups: str = 'rollout',
    ) -> Traced:
        """Run `python PROGRAM` under `lens-instrument`."""
        run_dir = Path(tempfile.mkdtemp(prefix='run-', dir=self.folder)) / 'run'
        return Traced(self.execute(*self.command(run_dir, *program, rules=rules, groups=groups), env=env), Run(run_dir))


def answers(stdout: str) -> list[dict[str, Any]]:
    """The JSON objects a program printed, one a line; lines of anything else are passed over."""
    return [json.loads(line) for line in stdout.splitlines() if line.startswith('{')]


def wait_until(true: Any, patience: float = 30.0) -> None:
    """Wait for a condition, and fail when it does not come true."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, 'it did not come true in time'
        time.sleep(0.02)


@contextmanager
def _gone() -> Iterator[None]:
    """A process that ends while it is looked at, or that is another user's, is passed over."""
    try:
        yield
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass
