# SPDX-License-Identifier: Apache-2.0
"""`--exec`: the launcher becomes the command, and a process of its own collects beside it.

The sibling is nobody's child by the time the command runs, so the command waits for none it does not know. It has its
own session and no terminal, survives SIGHUP, and ends when the last process of the run has.
"""

from __future__ import annotations

import os
import time

from lens_auto.record import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from lens_auto.launch.prepare import Prepared
else:
    import _signal as signal

_LOOK = 0.2


def detach(prepared: Prepared) -> None:
    """Start the sibling. Called before any thread exists, so a plain fork will do.

    Args:
        prepared: The run.
    """
    command = os.getpid(), process.start_ticks()
    between = os.fork()
    if not between:
        try:
            os.setsid()
            if not os.fork():
                _collect(prepared, *command)
        finally:
            os._exit(0)
    try:
        os.waitpid(between, 0)
    except ChildProcessError:  # SIGCHLD is ignored: the kernel has waited
        pass
    # Where it was blocked at our start, the command would find it pending.
    signal.sigtimedwait({signal.SIGCHLD}, 0)


def _collect(prepared: Prepared, pid: int, started: int) -> NoReturn:
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _let_go_of_files(prepared.receiver.fileno() if prepared.receiver is not None else -1)
        prepared.take_over(pid, started)
        from lens_auto.launch.collecting import collector, finish

        collecting = collector(prepared)
        while process.alive(pid, started) or _any_alive(prepared.spool.path):
            time.sleep(_LOOK)
        finish(collecting, prepared, None, 60, summary=False)
    finally:
        os._exit(0)


def _let_go_of_files(kept: int) -> None:
    """Hold nothing open that somebody may be reading or waiting for.

    Args:
        kept: A descriptor of ours that stays open.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for name in os.listdir('/proc/self/fd'):
        if int(name) > 2 and int(name) != kept:
            try:
                os.close(int(name))
            except OSError:  # the listing's own
                pass


def _any_alive(spool: str) -> bool:
    """Whether a process that reported in still runs."""
    try:
        with open(f'{spool}/processes.tsv', encoding='utf-8', errors='replace') as lines:
            reports = [line.split('\t') for line in lines]
    except OSError:
        return False
    return any(
        len(fields) > 1
        and fields[0].isdigit()
        and fields[1].isdigit()
        and process.alive(int(fields[0]), int(fields[1]))
        for fields in reports
    )
