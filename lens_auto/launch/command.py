# SPDX-License-Identifier: Apache-2.0
"""Finds the command the way a shell does, and says why it cannot be run in the shell's words."""

from __future__ import annotations

import os
from errno import E2BIG, ENOENT, ENOEXEC
from stat import S_ISDIR, S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_FOUND = 127
NOT_EXECUTABLE = 126


class CommandError(Exception):
    """The command cannot be run.

    Attributes:
        code: The exit code a shell gives: 127 not there, 126 there but not to be run.
        too_long: Whether the kernel takes no arguments and environment of this length.
    """

    def __init__(self, command: str, reason: str, code: int, too_long: bool = False) -> None:
        super().__init__(f'{command}: {reason}')
        self.code = code
        self.too_long = too_long


def find(command: str, environ: Mapping[str, str]) -> str:
    """The file a shell would execute for `command`.

    A name without a slash is looked up in PATH and nowhere else: the working directory counts only where PATH names it.

    Raises:
        CommandError: There is no such file, or it is not to be executed.
    """
    if '/' in command:
        _check(command, command)
        return command
    denied = None
    # An unset PATH is the system's own; an empty entry in it is the user's way to name the working directory (POSIX).
    for folder in environ.get('PATH', os.defpath).split(':') if command else ():
        path = f'{folder or "."}/{command}'
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if S_ISREG(mode):
            if os.access(path, os.X_OK):
                return path
            denied = denied or path
    if denied is not None:
        raise CommandError(command, 'Permission denied', NOT_EXECUTABLE)
    raise CommandError(command, 'command not found', NOT_FOUND)


def _check(command: str, path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise refused(command, path, error) from None
    if S_ISDIR(mode):
        raise CommandError(command, 'Is a directory', NOT_EXECUTABLE)
    if not S_ISREG(mode) or not os.access(path, os.X_OK):
        raise CommandError(command, 'Permission denied', NOT_EXECUTABLE)


def refused(command: str, path: str, error: OSError) -> CommandError:
    """What a shell says when the kernel would not execute `command`.

    Args:
        command: The command as the user wrote it.
        path: Its file.
        error: What the kernel answered.
    """
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno == ENOENT and os.path.exists(path):
        reason = 'cannot execute: required file not found'  # its interpreter or loader
    code = NOT_FOUND if error.errno == ENOENT else NOT_EXECUTABLE
    return CommandError(command, reason, code, error.errno == E2BIG)


def as_script(command: str, path: str, arguments: list[str]) -> list[str]:
    """The argument list with which a shell runs a file that is executable, is no binary and has no `#!` line.

    Args:
        command: The command as the user wrote it.
        path: Its file.
        arguments: The command's arguments, without itself.

    Raises:
        CommandError: It is a binary of another machine, or damaged.
    """
    try:
        with open(path, 'rb') as file:
            head = file.read(128).partition(b'\n')[0]
    except OSError as error:
        raise refused(command, path, error) from None
    if b'\0' in head:
        raise CommandError(command, 'cannot execute binary file: ' + os.strerror(ENOEXEC), NOT_EXECUTABLE)
    return ['/bin/sh', f'./{path}' if path.startswith('-') else path, *arguments]
