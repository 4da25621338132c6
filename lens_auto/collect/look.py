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
        environ: NO_COLOR, TERM and the locale's variables are honoured.
        encoding: Of the stream.
    """
    unicode = _is_utf8(encoding or '') and _is_utf8(_charset(environ))
    if not os.isatty(fd):
        return Look(unicode=unicode)
    try:
        width = max(60, min(120, os.get_terminal_size(fd).columns))
    except OSError:
        width = 100
    color = not environ.get('NO_COLOR') and environ.get('TERM', '') not in ('', 'dumb')
    return Look(width, color, unicode)


def _is_utf8(charset: str) -> bool:
    return charset.lower().replace('-', '') == 'utf8'


def _charset(environ: Mapping[str, str]) -> str:
    """The character set of the user's locale, '' in C and POSIX. Python itself takes those for UTF-8."""
    names = ('LC_ALL', 'LC_CTYPE', 'LANG')
    if not environ.get('LC_ALL') and environ.get('LANG', '') in ('', 'C', 'POSIX'):
        if environ.get('LC_CTYPE') in ('C.UTF-8', 'C.utf8', 'UTF-8'):
            return ''  # Python's own word (PEP 538), not the user's
    named = next((environ[name] for name in names if environ.get(name)), '')
    return named.partition('@')[0].rpartition('.')[2]
