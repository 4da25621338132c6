# SPDX-License-Identifier: Apache-2.0
"""One figure, as a metric point."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Measurement(NamedTuple):
    """A figure under its OpenTelemetry name.

    Attributes:
        name: The metric.
        instrument: 'gauge'; 'updowncounter', a level that adds up over processes; 'counter', what came since the last.
        unit: UCUM unit.
        value: The figure.
        labels: Its labels.
    """

    name: str
    instrument: str
    unit: str
    value: float
    labels: Mapping[str, str] | None = None
