# SPDX-License-Identifier: Apache-2.0
"""A terminal with a job-control shell in it: what a person at a keyboard can do to a program, for tests.

`Terminal` opens a pseudo-terminal and starts this file in it as the session's leader. The leader runs one command as
its foreground job, says how the job's state changes, and continues it on request, as a shell does.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

CTRL_C, CTRL_Z, CTRL_BACKSLASH = b'\x03', b'\x1a', b'\x1c'
PATIENCE = 20.0


class Terminal:
    """A command as the foreground job of a terminal.

    Args:
        command: The command and its arguments.
        env: Its environment.
        cwd: Its working directory.
        leader: Whether the command leads the session itself (`ssh host COMMAND`, `docker run -t`), with no shell.
    """

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], cwd: str | os.PathLike[str], leader: bool = False
    ) -> None:
        self.master, slave = pty.openpty()
        self.output = b''
        self._seen = 0
        reports, report = os.pipe()
        orders, self._order = os.pipe()
        shell = [] if leader else [sys.executable, '-I', __file__, str(report), str(orders)]

        def sit_down() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [*shell, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=sit_down,
            pass_fds=() if leader else (report, orders),
        )
        for fd in (slave, report, orders):
            os.close(fd)
        self._reports = os.fdopen(reports, 'r')

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._reports.close()
        os.close(self._order)
        self.hang_up()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.master, keys)

    def hang_up(self) -> None:
        """Close the terminal."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def wait_for(self, text: str) -> None:
        """Read until the screen shows `text` once more than at the last call."""
        deadline = time.monotonic() + PATIENCE
        while text.encode() not in self.output[self._seen :]:
            if time.monotonic() > deadline:
                raise AssertionError(f'{text!r} did not appear in {self.output!r}')
            self._read()
        self._seen = self.output.index(text.encode(), self._seen) + len(text)

    def _read(self) -> bool:
        if not select.select([self.master], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:  # nobody has the other end open any more
            return False
        self.output += data
        return bool(data)

    def state(self) -> str:
        """The next change of the job: `stopped N`, `killed N` or `exited N`."""
        while not select.select([self._reports], [], [], 0)[0]:
            self._read()
        return self._reports.readline().strip()

    def foreground(self) -> None:
        """Continue the job, as `fg` does."""
        os.write(self._order, b'.')

    def screen(self) -> str:
        """All that was printed, once the job has ended."""
        while select.select([self.master], [], [], 0)[0] and self._read():
            pass
        return self.output.decode(errors='replace').replace('\r\n', '\n')


def shell(report: int, orders: int, command: list[str]) -> None:
    """The leader: one job in the foreground."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for fd in (report, orders):
            os.close(fd)
        for number in (signal.SIGTTOU, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        os.tcsetpgrp(0, os.getpgrp())
        if os.WIFSTOPPED(status):
            os.write(report, f'stopped {os.WSTOPSIG(status)}\n'.encode())
            if not os.read(orders, 1):
                os.killpg(job, signal.SIGKILL)
                return
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        else:
            what = f'killed {os.WTERMSIG(status)}' if os.WIFSIGNALED(status) else f'exited {os.WEXITSTATUS(status)}'
            os.write(report, f'{what}\n'.encode())
            os.read(orders, 1)  # keep the session until the test is done with it
            return


if __name__ == '__main__':
    shell(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
