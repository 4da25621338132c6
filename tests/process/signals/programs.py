# SPDX-License-Identifier: Apache-2.0
"""The programs of the signals matrix: each test here runs one twice, plain and under the launcher, and compares."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
ENTRY = 'import sys; sys.path.insert(0, sys.argv.pop(1)); from lens_auto.launch.main import main; main()'
LAUNCHER = [sys.executable, '-c', ENTRY, str(REPOSITORY), '--no-summary']
PLAIN: list[str] = []
PATIENCE = 20.0

COUNTER = """\
import os, signal, sys, time
seen = {}
last = [0.0]
def note(number, frame):
    seen[number] = seen.get(number, 0) + 1
    last[0] = time.monotonic()
    os.write(1, b'saw %d, time %d\\n' % (number, seen[number]))
for name in ('HUP', 'INT', 'QUIT', 'USR1', 'USR2', 'ALRM', 'TERM'):
    signal.signal(getattr(signal, 'SIG' + name), note)
signal.signal(signal.SIGRTMIN + 3, note)
if sys.argv[1:] == ['leave']:
    os.setsid()
os.write(1, b'ready %d\\n' % os.getpid())
start = time.monotonic()
while not last[0] or time.monotonic() - last[0] < 0.5:
    time.sleep(0.02)
    if time.monotonic() - start > 15:
        sys.exit('no signal came')
sys.exit(40 + sum(seen.values()))
"""
"""Counts the signals it gets; ends with 40 + their number when no more have come for a while."""


class Bench:
    """A folder with the programs, and the environment to run them in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.joinpath('counter.py').write_text(COUNTER)
        drop = ('LENS_', 'PYTHON', 'OTEL_')
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
        self.env |= {'LENS_SPOOL': f'{folder}/spool', 'XDG_CACHE_HOME': f'{folder}/cache'}

    def counter(self, prefix: Sequence[str], *arguments: str) -> list[str]:
        """The command that counts signals."""
        return [*prefix, sys.executable, 'counter.py', *arguments]

    def start(self, command: Sequence[str], own_session: bool = True) -> subprocess.Popen[str]:
        """Start a command in a session of its own, outside any terminal, as batch systems do.

        Or as a shell with job control does: in a group of its own, whose leader has its parent in the same session.
        Only there does SIGTSTP stop anything: the kernel drops it for a group that nobody could continue.
        """
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            cwd=self.folder,
            start_new_session=own_session,
            preexec_fn=None if own_session else os.setpgrp,
        )


def child_of(process: subprocess.Popen[str]) -> int:
    """The process id the program prints when it is ready; it has had time to settle then."""
    assert process.stdout is not None
    word, pid = process.stdout.readline().split()
    assert word == 'ready'
    time.sleep(0.15)
    return int(pid)


def outcome(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and the rest of the output."""
    output, errors = process.communicate(timeout=PATIENCE)
    assert 'Traceback' not in errors, errors
    return process.returncode, output


def processes_of_group(group: int) -> list[int]:
    """The living processes of a process group."""
    found: list[int] = []
    for name in os.listdir('/proc'):
        try:
            fields = Path(f'/proc/{name}/stat').read_text().rpartition(')')[2].split()
        except OSError:
            continue
        if name.isdigit() and int(fields[2]) == group and fields[0] not in 'ZX':
            found.append(int(name))
    return found


def without_our_lines(screen: str) -> str:
    """A terminal's text without what the launcher said on stderr."""
    lines = screen.splitlines(keepends=True)
    return ''.join(line for line in lines if not line.startswith(('lens-instrument:', '    ')) or 'File' in line)
