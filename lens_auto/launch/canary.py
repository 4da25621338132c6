# SPDX-License-Identifier: Apache-2.0
"""Tells a signal to the launcher alone from one to everybody: was a process that only watches told as well?

A signal does not say whom else its sender sent it to. `kill -- -PGID`, a shell's `kill %1`, `timeout`, a batch system
or systemd tell launcher and command alike, and forwarding would tell the command twice: a second SIGINT interrupts the
clean-up that the first one began. `kill LAUNCHER`, `docker stop` or `subprocess.terminate()` tell the launcher alone,
and not forwarding would lose the signal.

The canary is a `cat` in the command's process group and session that blocks every signal. What was sent to the group
stays pending there, set by the sender's own system call, for the launcher to read in /proc: no clock is compared. It
ends by itself when the launcher does, however that ends, as it reads from a pipe of the launcher's.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_CAT = ('/bin/cat', '/usr/bin/cat')


class Canary:
    """One watching process; a new one takes its place when a signal has marked it."""

    __slots__ = ('_hold', '_pid')

    def __init__(self) -> None:
        self._pid = 0
        self._hold = -1

    def start(self) -> None:
        """Put a canary into this process's group; without one every signal counts as meant for the launcher alone."""
        read = devnull = -1
        try:
            read, self._hold = os.pipe()
            devnull = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            # Its own copies of what it needs, and none of the user's files: a reader waits for the last writer.
            actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable()]
            actions += [(os.POSIX_SPAWN_DUP2, fd, to) for fd, to in ((read, 0), (devnull, 1), (devnull, 2))]
            cat = next(path for path in _CAT if os.access(path, os.X_OK))
            self._pid = os.posix_spawn(cat, ['cat'], {}, file_actions=actions, setsigmask=signal.valid_signals())
        except (OSError, StopIteration):
            self.stop()
        finally:
            for fd in (read, devnull):
                if fd >= 0:
                    os.close(fd)

    def marked(self, number: int) -> bool:
        """Whether a signal with this number was sent to the canary since it was started."""
        return bool(self._pid) and bool(field(self._pid, b'ShdPnd') >> (number - 1) & 1)

    @property
    def watching(self) -> bool:
        """Whether there is one."""
        return self._pid != 0

    def buried(self, pid: int) -> None:
        """Take note that somebody waited for `pid`: the number may soon be another process's."""
        if pid == self._pid:
            self._pid = 0

    def renew(self) -> None:
        """Start over with an unmarked canary."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """End it and leave no zombie: whoever inherits ours may never reap."""
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1
        if self._pid:
            try:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            except OSError:  # somebody ended it first
                pass
            self._pid = 0


def field(pid: int, name: bytes) -> int:
    """One signal set in /proc/PID/status (`ShdPnd`, `SigCgt`, ...), 0 where it cannot be read."""
    try:
        with open(f'/proc/{pid}/status', 'rb') as file:
            text = file.read()
        at = text.index(b'\n' + name + b':') + len(name) + 2
        return int(text[at : text.index(b'\n', at)], 16)
    except (OSError, ValueError):
        return 0


def _inheritable() -> list[int]:
    fds: list[int] = []
    for name in os.listdir('/proc/self/fd'):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                fds.append(int(name))
        except OSError:  # the listing's own
            pass
    return fds
