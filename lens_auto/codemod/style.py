# SPDX-License-Identifier: Apache-2.0
"""The styles that a rule can be written in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lens_auto.codemod import style_lens, style_nemo_lens, style_otel
from lens_auto.codemod.piece import Piece
from lens_auto.codemod.wish import Wish


class Style(NamedTuple):
    """A way to say it.

    Attributes:
        name: Its name.
        write: What it puts at a place; raises `Refused` where it cannot, and says what it leaves out.
        imports: The lines that bring in the names used, and what stands for them where the library is absent.
    """

    name: str
    write: Callable[[Wish, Callable[[str], None]], list[Piece]]
    imports: Callable[[set[str]], list[str]]


STYLES = {
    'lens': Style('lens', style_lens.write, style_lens.imports),
    'otel': Style('otel', style_otel.write, style_otel.imports),
    'nemo-lens': Style('nemo-lens', style_nemo_lens.write, style_nemo_lens.imports),
}
