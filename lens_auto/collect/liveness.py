# SPDX-License-Identifier: Apache-2.0
"""Which processes are alive: by pid and start time, watched through a pidfd where the kernel has them."""

from __future__ import annotations

import os
import select

from lens_auto.collect.rollcall import is_helper
from lens_auto.record import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.record.reader import Identity

# Descriptors for watching; above it a process is asked for in /proc at each poll.
_MOST_WATCHED = 256


def carriers(spool: str) -> int:
    """How many processes of this user carry a spool in their environment: each may yet start a Python that records.

    A shell left in the background has no journal and no line in the roll-call; this is all that can be seen of it.
    Helpers are passed over: what they start is no part of the run, and Ray's agents outlive a killed driver by minutes.

    Args:
        spool: The spool.
    """
    word = b'LENS_SPOOL=' + os.fsencode(spool) + b'\0'
    count = 0
    for name in os.listdir('/proc'):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f'/proc/{name}/environ', 'rb') as environ, open(f'/proc/{name}/cmdline', 'rb') as command:
                count += word in environ.read() and not is_helper(command.read())
        except OSError:
            continue  # another user's, or gone
    return count


class Watch:
    """Tells living from dead processes, and sleeps until one dies.

    Attributes:
        boot: Boot id of this node.
    """

    def __init__(self) -> None:
        self._poll = select.poll()
        self._fds: dict[Identity, int] = {}
        self.boot = process.boot_id()
        self._namespace = process.namespace()
        # Written to by `wake`, from any thread.
        self._inner, self._outer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll.register(self._inner, select.POLLIN)

    def shows(self, boot: str, namespace: int) -> bool:
        """True when a process's number means here what it means to the process.

        Args:
            boot: Boot id of its node, from its header.
            namespace: Its PID namespace, from its header; 0 when that was not told.
        """
        return boot == self.boot and namespace in (0, self._namespace)

    def alive(self, who: Identity) -> bool:
        """True while the process runs.

        Args:
            who: The process; one that `shows`.
        """
        _, pid, started = who
        fd = self._fds.get(who)
        if fd is None:
            # The descriptor first, the identity after it: what passes is watched without a gap.
            fd = self._watch(who)
            if not process.alive(pid, started):
                self.forget(who)
                return False
            if fd is None:
                return True
        # Readable once the whole process has ended.
        readable = select.poll()
        readable.register(fd, select.POLLIN)
        return not readable.poll(0)

    def _watch(self, who: Identity) -> int | None:
        if len(self._fds) >= _MOST_WATCHED:
            return None
        try:
            fd = os.pidfd_open(who[1])
        except (OSError, AttributeError):
            return None
        self._fds[who] = fd
        self._poll.register(fd, select.POLLIN)
        return fd

    def forget(self, who: Identity) -> None:
        """Stop watching a process.

        Args:
            who: The process.
        """
        fd = self._fds.pop(who, None)
        if fd is not None:
            self._poll.unregister(fd)
            os.close(fd)

    def sleep(self, seconds: float) -> None:
        """Wait; shorter when a watched process dies or somebody calls `wake`.

        Args:
            seconds: At most this long.
        """
        for fd, _ in self._poll.poll(max(0, int(seconds * 1000))):
            if fd == self._inner:
                try:
                    os.read(self._inner, 4096)
                except OSError:
                    pass

    def wake(self) -> None:
        """End the current or the next `sleep`."""
        try:
            os.write(self._outer, b'.')
        except OSError:
            pass  # full: it is awake already

    def close(self) -> None:
        """Give all descriptors back."""
        for who in list(self._fds):
            self.forget(who)
        os.close(self._inner)
        os.close(self._outer)
