# SPDX-License-Identifier: Apache-2.0
"""Attributes as the API takes them -> plain values that a journal can hold."""

from __future__ import annotations

from lens_auto.wrap.expression import Unreadable, scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 128


def plain(attributes: Any) -> dict[str, Any] | None:
    """Scalars, short texts and short rows of them; what is none of these is left out.

    Args:
        attributes: A mapping, or None.
    """
    if not attributes or not hasattr(attributes, 'items'):
        return None  # the program's mistake, which the API lets pass
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        try:
            if isinstance(value, (list, tuple)):
                row: tuple[Any, ...] = tuple(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                found[str(name)[:256]] = tuple(scalar(each) for each in row[:_MOST])
            else:
                found[str(name)[:256]] = scalar(value)
        except Unreadable:
            continue
        if len(found) == _MOST:
            break
    return found or None
