# SPDX-License-Identifier: Apache-2.0
"""numpy, and what the arrays of a run hold.

To a strict type checker half of numpy's results are partly unknown; here they are Any, on purpose and in one place.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy

np: Any = numpy
Ints: TypeAlias = Any
"""An array of 64-bit integers: rows, nanoseconds, counts."""
Floats: TypeAlias = Any
"""An array of doubles."""
Flags: TypeAlias = Any
"""An array of truth values, one for each span."""
Rows: TypeAlias = Any
"""Spans: a structured array of `store.ROW`."""
