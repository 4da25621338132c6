# SPDX-License-Identifier: Apache-2.0
"""Ends the launcher the way its command ended, so that whoever waits for it cannot tell the difference."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal


def leave(status: int) -> NoReturn:
    """Exit with the command's code, or die of the signal it died of.

    Args:
        status: Its wait status.
    """
    if not os.WIFSIGNALED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    # The kernel spares PID 1 its own deadly signals; a shell's way to say the same is left.
    if os.getpid() != 1:
        _without_core_dump()
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(128 + number)


def _without_core_dump() -> None:
    """One crash, one core dump: the command's."""
    try:
        import resource

        # Dumps that go to a program (systemd-coredump) ignore a limit of 0 and are stopped by a limit of 1 (core(5)).
        with open('/proc/sys/kernel/core_pattern', 'rb') as file:
            limit = 1 if file.read(1) == b'|' else 0
        resource.setrlimit(resource.RLIMIT_CORE, (limit, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except (ImportError, OSError, ValueError):
        pass
