# SPDX-License-Identifier: Apache-2.0
"""How text is drawn: for a terminal, or plain."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Look:
    """How the summary is drawn.

    Attributes:
        width: Columns.
        color: ANSI bold and dim, for a terminal.
        unicode: Lines of the tree in box characters rather than ASCII.
    """

    __slots__ = ('color', 'unicode', 'width')

    def __init__(self, width: int = 100, color: bool = False, unicode: bool = True) -> None:
        self.width = width
        self.color = color
        self.unicode = unicode

    def bold(self, text: str) -> str:
        """Important, where that can be shown."""
        return f'\x1b[1m{text}\x1b[0m' if self.color and text else text

    def dim(self, text: str) -> str:
        """Less important, where that can be shown."""
        return f'\x1b[2m{text}\x1b[0m' if self.color and text else text


def look_of(fd: int, environ: Mapping[str, str], encoding: str | None) -> Look:
    """The look that suits a descriptor.

    Args:
        fd: Where the summary goes.
        environ: NO_COLOR and TERM are honoured.
        encoding: Of the stream.
    """
    unicode = (encoding or '').lower().replace('-', '') == 'utf8'
    if not os.isatty(fd):
        return Look(unicode=unicode)
    try:
        width = max(60, min(120, os.get_terminal_size(fd).columns))
    except OSError:
        width = 100
    color = not environ.get('NO_COLOR') and environ.get('TERM', '') not in ('', 'dumb')
    return Look(width, color, unicode)
