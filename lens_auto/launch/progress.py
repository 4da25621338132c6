# SPDX-License-Identifier: Apache-2.0
"""`--progress`: the last line of the terminal says how the run gets along; the program has all others.

The terminal is told to scroll without its last line (DECSTBM), as package managers do, so that whatever the program
prints, with carriage returns and all, appears as it would. Nothing of that is sent to a file, a pipe, or a terminal
whose foreground belongs to somebody else.
"""

from __future__ import annotations

import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_EVERY = 1.0
_LOWEST = 5  # lines of a terminal that can spare one
_PATIENCE = 0.5  # seconds the end waits for the terminal to take its line back
_SAVE, _RESTORE = '\x1b7', '\x1b8'
_DOWN = '\x1bD'  # in the same column, as a line feed through a terminal is not
_DIM, _PLAIN = '\x1b[7m', '\x1b[0m'


class Progress:
    """The last line of a terminal.

    Attributes:
        text: What it shall say; may be set by any thread.
    """

    def __init__(self, fd: int) -> None:
        """Nothing is drawn yet.

        Args:
            fd: The terminal.
        """
        self.text = ''
        self._fd = fd
        self._size = (0, 0)
        self._over = _thread.allocate_lock()
        self._gone = _thread.allocate_lock()

    def start(self) -> None:
        """Draw every second, in a thread: a terminal that is held (Ctrl-S) holds up nobody."""
        self._over.acquire()
        self._gone.acquire()
        _thread.start_new_thread(self._work, ())

    def stop(self) -> None:
        """Give the line back."""
        if self._over.locked():
            self._over.release()
            self._gone.acquire(timeout=_PATIENCE)

    def _work(self) -> None:
        try:
            while not self._over.acquire(timeout=_EVERY):
                self._draw()
            self._release()
        except OSError:
            pass  # the terminal is gone
        finally:
            self._gone.release()

    def _draw(self) -> None:
        if not self.text or os.tcgetpgrp(self._fd) != os.getpgrp():
            return
        size = os.get_terminal_size(self._fd)
        if size.lines < _LOWEST:
            return
        # Names come from the program: none of them gets to move a cursor.
        text = ''.join(c if c.isprintable() else '?' for c in self.text[: size.columns - 1])
        drawn = ''
        if (size.columns, size.lines) != self._size:
            # Room below what is there; then scrolling ends above it. Setting that moves the cursor, so it is saved.
            drawn = f'{_DOWN}{_SAVE}\x1b[1;{size.lines - 1}r{_RESTORE}\x1b[1A'
            self._size = size.columns, size.lines
        self._write(f'{drawn}{_SAVE}\x1b[{size.lines};1H\x1b[2K{_DIM}{text}{_PLAIN}{_RESTORE}')

    def _release(self) -> None:
        if self._size[1] and os.tcgetpgrp(self._fd) == os.getpgrp():
            self._write(f'{_SAVE}\x1b[{self._size[1]};1H\x1b[2K\x1b[r{_RESTORE}')

    def _write(self, text: str) -> None:
        # In one piece, so that nothing of the program's comes in between.
        data = text.encode('utf-8', 'replace')
        while data:
            data = data[os.write(self._fd, data) :]


def unable(fd: int, environ: Mapping[str, str]) -> str:
    """Why there can be no such line, '' if there can.

    Args:
        fd: Where it would be.
        environ: The environment.
    """
    if not os.isatty(fd):
        return 'stderr is no terminal'
    if environ.get('TERM', 'dumb') == 'dumb':
        return 'the terminal is `dumb`'
    try:
        os.tcgetpgrp(fd)
    except OSError:
        return 'stderr is another terminal than that of this session'
    return ''
