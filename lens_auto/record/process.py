# SPDX-License-Identifier: Apache-2.0
"""Who a process is: host, pid, start time and boot id tell it from every other process there ever was."""

from __future__ import annotations

import os

from lens_auto.record.foreign import foreign


def start_ticks(pid: int | None = None) -> int:
    """Start time of a process in clock ticks since boot, or 0 where /proc does not say.

    Args:
        pid: The process; this one by default.
    """
    try:
        with open(f'/proc/{pid or "self"}/stat', 'rb') as stat:
            # The command name may hold spaces and brackets; fields are counted from its closing bracket (field 3 on).
            return int(stat.read().rpartition(b')')[2].split()[19])
    except (OSError, ValueError, IndexError) as error:
        if foreign(error):
            raise
        return 0


def boot_id() -> str:
    """The kernel's random id of this boot, or '' where there is none: a monotonic time means nothing without it."""
    try:
        with open('/proc/sys/kernel/random/boot_id') as text:
            return text.read().strip()
    except OSError as error:
        if foreign(error):
            raise
        return ''


def namespace() -> int:
    """The PID namespace of this process, or 0 where /proc does not say: in another one its number is another's."""
    try:
        return os.stat('/proc/self/ns/pid').st_ino
    except OSError as error:
        if foreign(error):
            raise
        return 0


def file_size_limit() -> int | None:
    """How long a file of this process may be, in bytes; None without a limit, and where /proc does not say."""
    try:
        with open('/proc/self/limits', 'rb') as limits:
            for line in limits:
                if line.startswith(b'Max file size'):
                    soft = line.split()[3]
                    return None if soft == b'unlimited' else int(soft)
    except (OSError, ValueError, IndexError) as error:
        if foreign(error):
            raise
    return None


def hostname() -> str:
    """The node's name, safe in a file name."""
    name = os.uname().nodename or 'localhost'
    return ''.join(c if c.isalnum() or c in '._' else '_' for c in name)


def alive(pid: int, started: int) -> bool:
    """True while the process that had this pid and start time runs (a zombie counts as dead).

    Args:
        pid: Its process id.
        started: Its `start_ticks`; 0 is taken to match any process with that pid.
    """
    try:
        with open(f'/proc/{pid}/stat', 'rb') as stat:
            fields = stat.read().rpartition(b')')[2].split()
    except OSError:
        if os.path.isdir('/proc/self'):
            return False
        return _answers(pid)
    return fields[0] not in (b'Z', b'X') and (not started or int(fields[19]) == started)


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
