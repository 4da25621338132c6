# SPDX-License-Identifier: Apache-2.0
"""Functions of a library patched for our own ends: put in, taken out, and missed with one report."""

from types import ModuleType
from typing import Any

from lens_auto.record.fault import Faults
from lens_auto.record.format import FAULT, MISSING
from lens_auto.wrap.direct import AFTER
from lens_auto.wrap.seams import Seams


class Told:
    """Adds one to every result, or fails."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.fails = False

    def after(self, args: Any, result: Any) -> Any:
        if self.fails:
            raise ValueError('ours')
        self.results.append(result)
        return result


class Journal:
    def __init__(self) -> None:
        self.reports: list[tuple[str, dict[str, Any]]] = []

    def report(self, kind: str, data: dict[str, Any]) -> None:
        self.reports.append((kind, data))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [data for found, data in self.reports if found == kind]


def made() -> tuple[Seams, ModuleType, Told, Journal]:
    lib = ModuleType('lib')
    exec('def call(a): return a + 1', lib.__dict__)
    journal: Any = Journal()
    told = Told()
    table = {'lib': (('call', AFTER, 'told'), ('gone', AFTER, 'told'))}
    return Seams('lib', table, {'told': told}, journal, Faults(journal.report)), lib, told, journal


def test_a_seam_is_told_while_on_and_off_restores_the_code() -> None:
    seams, lib, told, _ = made()
    code = lib.call.__code__
    seams.executed('lib', lib)
    assert lib.call.__code__ is code
    seams.select(True)
    assert (lib.call(1), told.results) == (2, [2])
    seams.select(False)
    assert lib.call.__code__ is code
    assert (lib.call(2), told.results) == (3, [2])


def test_a_seam_that_failed_once_stays_out() -> None:
    seams, lib, told, journal = made()
    code = lib.call.__code__
    seams.select(True)
    seams.executed('lib', lib)
    told.fails = True
    assert lib.call(1) == 2
    assert lib.call.__code__ is code
    seams.select(True)
    assert lib.call.__code__ is code
    assert len(journal.of(FAULT)) == 1


def test_a_function_that_is_not_there_is_reported_once() -> None:
    seams, lib, _, journal = made()
    seams.executed('lib', lib)
    for on in (True, True, False, True):
        seams.select(on)
    assert [data['target'] for data in journal.of(MISSING)] == ['lib:gone']
