# SPDX-License-Identifier: Apache-2.0
"""`processes.tsv`: one line a process, written by stage 1; a second one when the journal itself cannot be written."""

from __future__ import annotations

import os
import sys

from lens_auto.record import process

FILE = 'processes.tsv'


def note(spool: str, outcome: str, reason: str) -> None:
    """Append a line about this process, in the form of stage 1's.

    Args:
        spool: The run's folder for journals.
        outcome: 'armed', or 'stood_down'.
        reason: What the launcher shall say of it.

    Raises:
        OSError: It cannot be written.
    """
    version = '{}.{}.{}'.format(*sys.version_info[:3])
    program = os.path.basename((getattr(sys, 'argv', None) or [''])[0]) or 'python'
    _append(spool, (str(os.getpid()), str(process.start_ticks()), version, 'python', outcome, reason, program))


def note_child(spool: str, pid: int, reason: str, program: str) -> None:
    """Append a line about a child that cannot do so itself.

    Args:
        spool: The run's folder for journals.
        pid: The child.
        reason: Why it takes no part in the run.
        program: What it runs.

    Raises:
        OSError: It cannot be written.
    """
    _append(spool, (str(pid), str(process.start_ticks(pid)), '', 'python', 'stood_down', reason, program))


def _append(spool: str, fields: tuple[str, ...]) -> None:
    line = '\t'.join(field.replace('\t', ' ').replace('\n', ' ')[:200] for field in fields) + '\n'
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(os.path.join(spool, FILE), flags, 0o600)
    try:
        os.write(fd, line.encode('utf-8', 'replace'))  # an append this short is atomic
    finally:
        os.close(fd)
