# SPDX-License-Identifier: Apache-2.0
"""Which span of another process started this one: what stands in the environment of one child, and in no other."""

from __future__ import annotations

import os

from lens_auto.record.foreign import foreign
from lens_auto.record.ranks import in_ray_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = 'LENS_PARENT'


def spelled(trace_id: bytes, span_id: bytes) -> str:
    """A span, as a child is told of it.

    Args:
        trace_id: Its trace field.
        span_id: Its id.
    """
    return f'{trace_id.hex()}-{span_id.hex()}'


def parsed(text: Any) -> tuple[bytes, bytes] | None:
    """Trace field and id of the span that `spelled` spelled; None for anything else.

    Args:
        text: What a child was told.
    """
    trace, _, span = str(text).partition('-')
    try:
        ids = bytes.fromhex(trace), bytes.fromhex(span)
    except ValueError as error:
        if foreign(error):
            raise
        return None
    return ids if len(ids[0]) in (16, 24) and len(ids[1]) == 8 else None


def taken() -> tuple[bytes, bytes] | None:
    """The span that started this process, taken out of its environment: its own children have other starters.

    A worker of Ray has the environment of whoever started the cluster; its tasks have callers of their own.
    """
    text = os.environ.pop(VARIABLE, '')
    return parsed(text) if text and not in_ray_worker() else None
