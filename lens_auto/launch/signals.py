# SPDX-License-Identifier: Apache-2.0
"""Waits for the command and passes on what was meant for it, so that the launcher in between is not noticed.

Every signal is blocked and taken one by one with `sigwaitinfo`, which says who sent it:

* The kernel, for a terminal (Ctrl-C, Ctrl-Z, a resize): the whole foreground group got it. Not passed on.
* A process: passed on, unless the command was told as well (see `canary`).
* The kernel, about the command: it ended, or it stopped and the launcher stops with it, so that its shell sees a job
  stopped.

A command that neither catches nor blocks a signal is told at once: to be told twice makes no difference to it.
"""

from __future__ import annotations

import os
import sys
import time

from lens_auto.launch.canary import Canary, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

# Commands that end at once need no canary: while Python starts, it catches nothing.
_SETTLED = 0.05
# How long a sender may take from telling the launcher to telling the rest of the group, on a busy machine.
_GRACE = 0.05
# `timeout` tells its child and then its group: the second one is no news.
_SAME = 0.1

_JOB_CONTROL = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

_WAKER = """
import os, sys, time
child, parent = int(sys.argv[1]), int(sys.argv[2])
while os.getppid() == parent:
    time.sleep(0.1)
    try:
        stopped = open(f'/proc/{child}/stat', 'rb').read().rpartition(b')')[2].split()[0] in (b'T', b't')
    except OSError:
        stopped = False
    if not stopped:
        if os.getppid() == parent:
            os.kill(parent, 18)
        break
"""


def block() -> None:
    """Block every signal, in this thread and all it will start; the kernel excepts SIGKILL, SIGSTOP and real faults."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


class Vigil:
    """The wait for one command.

    Attributes:
        child: The command's process id.
    """

    __slots__ = ('_canary', '_everything', '_init', '_told', '_waker', 'child')

    def __init__(self, child: int) -> None:
        self.child = child
        self._canary = Canary()
        self._everything = signal.valid_signals()
        self._init = os.getpid() == 1
        self._told: dict[int, float] = {}
        self._waker = 0

    def wait(self) -> int:
        """Serve signals until the command has ended.

        Returns:
            Its wait status.
        """
        try:
            # A signal this early finds no canary and is passed on.
            info = signal.sigtimedwait(self._everything, _SETTLED)
            while True:
                if info is None:
                    self._canary.start()
                elif info.si_signo == signal.SIGCHLD:
                    status = self._reap()
                    if status is not None:
                        return status
                elif self._concerns_child(info):
                    self._tell(info.si_signo)
                info = signal.sigwaitinfo(self._everything)
        finally:
            self._canary.stop()

    def _reap(self) -> int | None:
        # As PID 1 the orphans of the whole namespace are ours to bury.
        whom = -1 if self._init else self.child
        while True:
            pid, status = os.waitpid(whom, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return None
            if pid != self.child:
                self._canary.buried(pid)
            elif os.WIFSTOPPED(status):
                self._stop(os.WSTOPSIG(status))
            else:
                return status

    def _concerns_child(self, info: signal.struct_siginfo) -> bool:
        number = info.si_signo
        if info.si_code > 0:
            if number == signal.SIGHUP:
                # A terminal that goes away tells the leader of its session alone; without us that was the command.
                return os.getsid(0) == os.getpid()
            # An alarm somebody set before executing us (`perl -e 'alarm 60; exec @ARGV'`) was set for the command.
            return number == signal.SIGALRM
        if info.si_pid and info.si_pid == self._waker:
            return False
        try:
            if os.getpgid(self.child) != os.getpgrp():
                return True
        except OSError:
            return False
        noticed = field(self.child, b'SigCgt') | field(self.child, b'SigBlk')
        return not noticed >> (number - 1) & 1 or not self._child_was_told(number)

    def _child_was_told(self, number: int) -> bool:
        now = time.monotonic()
        if now < self._told.get(number, 0):
            return True
        while not self._canary.marked(number):
            if not self._canary.watching or time.monotonic() - now > _GRACE:
                return False
            time.sleep(0.002)
        self._told[number] = now + _SAME
        self._canary.renew()
        return True

    def _tell(self, number: int) -> None:
        try:
            os.kill(self.child, number)
        except OSError:  # it has taken another user's identity, or cannot be told for another reason
            pass

    def _stop(self, number: int) -> None:
        """Stop as the command did; comes back when something continues the launcher."""
        if self._init:
            return
        self._call_waker()
        how = number if number in _JOB_CONTROL else signal.SIGSTOP
        # Sent while blocked: it becomes one with what the terminal may have sent, and a SIGCONT in between undoes both.
        os.kill(os.getpid(), how)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {how})
        signal.pthread_sigmask(signal.SIG_BLOCK, {how})
        self._dismiss_waker()

    def _call_waker(self) -> None:
        """Leave a process that continues us when the command goes on or ends: somebody may continue it alone."""
        command = [sys.executable, '-I', '-S', '-c', _WAKER, str(self.child), str(os.getpid())]
        try:
            # A group of its own, or what stops the group would stop it too.
            self._waker = os.posix_spawn(sys.executable, command, {}, setpgroup=0, setsigmask=())
        except OSError:
            self._waker = 0

    def _dismiss_waker(self) -> None:
        if self._waker:
            try:
                os.kill(self._waker, signal.SIGKILL)
                os.waitpid(self._waker, 0)
            except OSError:
                pass
            # Its pid stays noted: the SIGCONT it sent may still wait to be taken.
