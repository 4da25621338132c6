# SPDX-License-Identifier: Apache-2.0
"""Exporter `console`, the launcher's half: lines of `record.line` for every process that does not print for itself.

One write a line, so that lines of several processes never mix.
"""

from __future__ import annotations

import os


class Console:
    """Prints lines to a descriptor; stops for good when nobody reads it any more.

    Attributes:
        lost: Lines that could not be printed.
    """

    def __init__(self, fd: int) -> None:
        """Print to a descriptor.

        Args:
            fd: The launcher's standard output.
        """
        self._fd = fd
        self._broken = False
        self.lost = 0

    def print(self, lines: list[str]) -> None:
        """Print lines, each with one write.

        Args:
            lines: Whole lines.
        """
        for line in lines:
            if self._broken or not self._print(line.encode()):
                self.lost += 1

    def _print(self, data: bytes) -> bool:
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                import select

                # Somebody made the descriptor non-blocking; it is shared, so it is not ours to change back.
                waiting = select.poll()
                waiting.register(self._fd, select.POLLOUT)
                if not waiting.poll(1000):
                    return False
            except OSError:
                self._broken = True
                return False
        return True
