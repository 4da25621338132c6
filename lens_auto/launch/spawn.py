# SPDX-License-Identifier: Apache-2.0
"""Starts the command as its shell would have: same process group, signal mask, dispositions and open files."""

from __future__ import annotations

import os
from errno import ENOEXEC

from lens_auto.launch.command import as_script, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from lens_auto.launch.command import CommandError
else:
    import _signal as signal  # without the enums on top, which cost as much as the rest of the launcher

# Parents that hand SIGPIPE on as they have it. Others that ignore it (Python, Rust, Node) restore it for children.
_FAITHFUL = (b'sh', b'bash', b'dash', b'zsh', b'ksh', b'fish', b'busybox', b'timeout', b'systemd')

# CPython ignores these at its start and keeps no record of what it found.
_TAKEN_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class Origin:
    """How signals stood when the launcher was started: what the command must find.

    Attributes:
        mask: The blocked signals.
        defaults: Signals CPython ignores in this process that are to have their default action in the command.
        ignores_children: Whether SIGCHLD was ignored: then the kernel would reap the command before we could.
    """

    __slots__ = ('defaults', 'ignores_children', 'mask')

    def __init__(self) -> None:
        self.mask: list[int] = [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, ())]
        ignored = _ignored_by_parent()
        self.defaults: list[int] = [int(s) for s in _TAKEN_BY_PYTHON if not ignored >> (s - 1) & 1]
        self.ignores_children = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN


def _ignored_by_parent() -> int:
    """The signals that our parent ignores and that we therefore inherited ignored, as a bit mask; 0 when unknown.

    `trap '' PIPE` in a script and systemd's IgnoreSIGPIPE reach every program below them; nothing else tells.
    """
    try:
        with open(f'/proc/{os.getppid()}/status', 'rb') as file:
            text = file.read()
        name = text[: text.index(b'\n')].split(None, 1)[1]
        if name not in _FAITHFUL:
            return 0
        at = text.index(b'\nSigIgn:') + 8
        return int(text[at : text.index(b'\n', at)], 16)
    except (OSError, ValueError, IndexError):
        return 0


def start(command: list[str], path: str, environ: dict[str, str], origin: Origin) -> int:
    """Start `command` as a child in our own process group.

    Args:
        command: The command as the user wrote it, with its arguments.
        path: Its file.
        environ: Its environment.
        origin: The signal state to give it.

    Returns:
        Its process id.

    Raises:
        CommandError: The kernel refuses to execute it.
    """
    try:
        return _fork(path, command, environ, origin)
    except OSError as error:
        if error.errno != ENOEXEC:
            raise refused(command[0], path, error) from None
    arguments = as_script(command[0], path, command[1:])
    try:
        return _fork(arguments[0], arguments, environ, origin)
    except OSError as error:
        raise refused(command[0], arguments[0], error) from None


def _fork(path: str, arguments: list[str], environ: dict[str, str], origin: Origin) -> int:
    # Not posix_spawn, which is no faster here: glibc's leaves signals 32 and 33 ignored in the child, and SIGCHLD could
    # not be ignored again in the child alone.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    answer, tell = os.pipe()  # closed by a successful exec
    child = os.fork()
    if not child:
        try:
            _execute(path, arguments, environ, origin)
        except OSError as error:
            os.write(tell, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(tell)
    with open(answer, 'rb') as file:
        number = file.read()
    if number:
        os.waitpid(child, 0)
        raise OSError(int(number), os.strerror(int(number)))
    return child


def replace(command: list[str], path: str, environ: dict[str, str], origin: Origin) -> CommandError:
    """Become `command`; returns only if the kernel refuses, with the reason.

    Args:
        command: The command as the user wrote it, with its arguments.
        path: Its file.
        environ: Its environment.
        origin: The signal state to give it.
    """
    try:
        try:
            _execute(path, command, environ, origin)
        except OSError as error:
            if error.errno != ENOEXEC:
                raise
        arguments = as_script(command[0], path, command[1:])
        _execute(arguments[0], arguments, environ, origin)
    except OSError as error:
        return refused(command[0], path, error)


def _execute(path: str, arguments: list[str], environ: dict[str, str], origin: Origin) -> NoReturn:
    for number in origin.defaults:
        signal.signal(number, signal.SIG_DFL)
    if origin.ignores_children:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, origin.mask)
    os.execve(path, arguments, environ)
