# SPDX-License-Identifier: Apache-2.0
"""Metrics, one line a step. A larger program would send them to Weights & Biases or TensorBoard from here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TextIO


class Logger:
    """Prints what it is given, in the order it is given."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout

    def log_metrics(self, metrics: Mapping[str, float], step: int, prefix: str) -> None:
        """Report `metrics` of training step `step`; `prefix` says of what, as in `train` or `validation`."""
        columns = '  '.join(f'{name} {_format(value)}' for name, value in metrics.items())
        # Flushed, or a run piped into a file would show nothing for its first minute.
        print(f'{prefix:<10}  step {step:>4}  {columns}', file=self._stream, flush=True)


def _format(value: float) -> str:
    return str(value) if isinstance(value, int) else f'{value:9.6f}'
