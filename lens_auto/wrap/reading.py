# SPDX-License-Identifier: Apache-2.0
"""Which threads are reading attributes: what the program runs for that (a property) is not its own doing.

A recorded function called from there passes through unrecorded. Recorded, it would have its own attributes read, which
call it again: a hang, where a rule on `__getattr__` reads `self.name`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Thread idents. Empty nearly always, so that to ask costs one truth test.
reading: set[int] = set()

DEEP = 50  # frames: reading that nests deeper has run into itself, not into the end of a stack the program used up


def recursed(error: RecursionError) -> bool:
    """True when it is the reading that calls itself; False when the program was at its limit before.

    Args:
        error: Raised while reading.
    """
    trace: Any = error.__traceback__
    for _ in range(DEEP):
        if trace is None:
            return False
        trace = trace.tb_next
    return True
