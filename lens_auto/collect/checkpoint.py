# SPDX-License-Identifier: Apache-2.0
"""A collector's whole memory in one file of the spool, replaced in one step: what makes a restart exactly-once.

marshal, like the journals beside it: fast enough to be written every second, and read only from our own 0700 folder.
"""

from __future__ import annotations

import marshal
import os

from lens_auto.collect import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = 'checkpoint'
_FORMAT = 4


class Unreadable(Exception):
    """A checkpoint is there and cannot be used; the text says why."""


def save(spool: str, plain: dict[str, Any]) -> None:
    """Replace the spool's checkpoint.

    Args:
        spool: The spool.
        plain: Nothing but what marshal takes.

    Raises:
        OSError: It cannot be written; the old one is still there.
    """
    path = os.path.join(spool, NAME)
    store.replace(path, path + '.new', marshal.dumps((_FORMAT, plain), 2))


def load(spool: str) -> dict[str, Any] | None:
    """The spool's checkpoint, None when there is none.

    Args:
        spool: The spool.

    Raises:
        Unreadable: It is another user's, of another format or damaged.
    """
    path = os.path.join(spool, NAME)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unreadable(f'{path}: {error.strerror}') from None
    with os.fdopen(fd, 'rb') as file:
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            raise Unreadable(f'{path}: not ours')
        data = file.read()
    try:
        version, plain = marshal.loads(data)
    except (EOFError, ValueError, TypeError):
        raise Unreadable(f'{path}: damaged') from None
    if version != _FORMAT:
        raise Unreadable(f'{path}: format {version}, this version reads {_FORMAT}')
    return plain
