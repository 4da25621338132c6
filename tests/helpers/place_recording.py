# SPDX-License-Identifier: Apache-2.0
"""A runtime that records the places of rewritten source in memory. Imports nothing that a program would notice."""

from __future__ import annotations

from lens_auto.record import format as form
from lens_auto.record.fault import Faults
from lens_auto.record.recorder import Recorder
from lens_auto.wrap.figures import Figures
from lens_auto.wrap.place_site import PlaceSite
from lens_auto.wrap.runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Kept:
    """A journal in memory."""

    def __init__(self) -> None:
        self.records: list[tuple[Any, ...]] = []

    def put(self, record: tuple[Any, ...], span: Any = None) -> None:
        self.records.append(record)
        if span is not None:
            span.epoch = -1

    def hold(self) -> None: ...
    def go_on(self) -> None: ...
    def forget(self) -> None: ...


class Recording:
    """A runtime that records every place in memory."""

    def __init__(self) -> None:
        self.journal = Kept()
        self.recorder = Recorder(self.journal, b'', b'')  # type: ignore[arg-type]
        self.faults: list[str] = []
        faults = Faults(lambda what, fields: self.faults.append(f'{fields}'))
        self.figures = Figures(None)
        self.runtime = Runtime(faults, lambda key: None)
        self.runtime.places.make = lambda key: PlaceSite(
            rule(key.rule, key.kind), key, {}, self.figures, self.recorder, faults
        )
        self.runtime.install()
        self.runtime.places.install()

    def spans(self) -> tuple[int, int]:
        """How many spans have begun, and how many have ended."""
        kinds = [record[0] for record in self.journal.records]
        return kinds.count(form.OPENED), kinds.count(form.ENDED)


def rule(key: str, kind: str, **fields: Any) -> dict[str, Any]:
    """A compiled rule."""
    usual = {'key': key, 'kind': kind, 'group': None, 'bucket': None, 'own_bucket': False, 'name': ('c', kind)}
    usual |= {'attributes': {}, 'announce': True, 'root': False, 'only_from': None, 'budget': None}
    return {**usual, **fields}
