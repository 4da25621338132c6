# SPDX-License-Identifier: Apache-2.0
"""The functions of OpenTelemetry that are patched, and what is told of their calls."""

from __future__ import annotations

from lens_auto.bridge.beside import Beside
from lens_auto.bridge.measured import Measured
from lens_auto.bridge.parents import Parents
from lens_auto.bridge.said import Said
from lens_auto.bridge.started import Named, Started
from lens_auto.wrap.code import AFTER, BEFORE, REPLACE
from lens_auto.wrap.direct import GIVEN
from lens_auto.wrap.seams import Seams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span

_METRICS = 'opentelemetry.metrics._internal.instrument'
_SEAMS = {
    'opentelemetry.trace': (
        ('ProxyTracer.__init__', AFTER, 'named'),
        ('NoOpTracer.start_span', REPLACE, 'started'),
    ),
    'opentelemetry.sdk.trace': (('Tracer.start_span', GIVEN, 'parents'),),
    _METRICS: (
        ('_ProxyCounter.add', BEFORE, 'counter'),
        ('_ProxyUpDownCounter.add', BEFORE, 'updown'),
        ('_ProxyHistogram.record', BEFORE, 'histogram'),
        ('_ProxyGauge.set', BEFORE, 'gauge'),
    ),
}
_YOUNGER = '_ProxyGauge'  # than the API we work with


class Bridge:
    """The program's OpenTelemetry, as we take part in it."""

    def __init__(
        self,
        recorder: Recorder,
        faults: Faults,
        ruled: Callable[[str, str, Any], bool],
        begun: Callable[[str, Span | None], bool],
    ):
        """See the class.

        Args:
            recorder: The process's recorder.
            faults: Its fault count.
            ruled: See `Said`.
            begun: See `Said`.
        """
        self._recorder = recorder
        self._faults = faults
        self._started = Started(recorder, faults)
        self._parents = Parents()
        self._beside = Beside(recorder, faults)
        measured = {
            'counter': Measured(recorder, 'counter'),
            'updown': Measured(recorder, 'gauge', summed=True),
            'histogram': Measured(recorder, 'histogram'),
            'gauge': Measured(recorder, 'gauge'),
        }
        self._measured = measured
        said = Said(self._started, ruled, begun)
        told = {'named': Named(), 'started': said, 'parents': self._parents, **measured}
        self._seams = Seams('opentelemetry', dict(_SEAMS), told, recorder, faults)

    def select(self, traces: bool, metrics: bool, joins: bool) -> None:
        """Take part, or leave OpenTelemetry as it is.

        Args:
            traces: This process records spans.
            metrics: It records metric points.
            joins: Its spans go where those of the program's SDK go: to a backend.
        """
        self._started.on = traces
        self._parents.on = traces and joins
        for each in self._measured.values():
            each.on = metrics
        self._beside.joins = joins
        self._recorder.beside = self._beside if traces else None
        self._seams.select(traces or metrics)

    def executed(self, name: str, module: ModuleType) -> None:
        """A module of OpenTelemetry has executed.

        Args:
            name: Its name.
            module: The module.
        """
        if name == _METRICS and not hasattr(module, _YOUNGER):
            self._seams.without(name, _YOUNGER)
        self._seams.executed(name, module)
