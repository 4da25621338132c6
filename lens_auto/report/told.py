# SPDX-License-Identifier: Apache-2.0
"""What `run.json` tells of a run, as far as it can be used: a file is input, and may hold anything.

A fact of a wrong type is left at what it is of a run that told nothing, and counted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lens_auto.collect import runfile
from lens_auto.collect.totals import ProcessRow, RuleRow, Totals, merge
from lens_auto.report.store import printable

if TYPE_CHECKING:
    from lens_auto.collect.totals import Row
    from lens_auto.report.store import Store

_LARGEST = 256 << 20
_MOST = 1 << 62
_COUNTS = ('counts', 'dropped', 'unsent', 'faults', 'missing')
_TEXTS = ('command', 'groups_off', 'spools', 'notes', 'named', 'targets', 'labels', 'seen')
_NOT_USED = ('spans', 'metrics', 'open')  # of a run's own totals: the tables come from the spans themselves


def parts(path: str, store: Store) -> list[Totals]:
    """What each launcher of a run has told, [] when there is nothing that can be read.

    Args:
        path: The run folder.
        store: Counts what is left out.
    """
    name = os.path.join(path, runfile.NAME)
    try:
        size = os.stat(name).st_size
    except OSError:
        return []
    found: list[Totals] = []
    if size <= _LARGEST:
        try:
            found = runfile.load(path)
        except (RecursionError, OverflowError):
            pass  # counted below, with what is no JSON
    if not found:
        store.skip('run.json that cannot be read')
    for one in found:
        for unused in _NOT_USED:
            setattr(one, unused, [])
        wrong = _sound(one, Totals())
        for rows, kind in ((one.processes, ProcessRow), (one.rules, RuleRow)):
            wrong += sum(_sound(row, kind()) for row in rows)
        if wrong:
            store.skip('facts of wrong types in run.json', wrong)
    return found


def together(found: list[Totals]) -> Totals | None:
    """The run as all its launchers saw it, None when none has told anything.

    Args:
        found: As `parts` gives them.
    """
    return merge(found) if found else None


def _sound(row: Row, usual: Row) -> int:
    """Put what is of a wrong type back to what it usually is; how many of them there were."""
    wrong = 0
    for name in row.__slots__:
        item, before = _shown(getattr(row, name)), getattr(usual, name)
        sound = _fits(name, item, before)
        setattr(row, name, item if sound else before)
        wrong += not sound
    return wrong


def _fits(name: str, item: Any, usual: Any) -> bool:
    if name in _COUNTS and item.__class__ is dict:
        return all(_is_count(count) for count in item.values())
    if name in _TEXTS and item.__class__ is list:
        return _are_texts(item)
    if name == 'keys':
        return item.__class__ is list and all(each.__class__ is list and _are_texts(each) for each in item)
    if name == 'roll_call':
        if item.__class__ is not dict:
            return False
        reach: Any = item.get('reach', {})
        return reach.__class__ is dict and _are_texts(list(reach.values()))
    if name == 'settings':
        return item.__class__ is dict and all(each.__class__ is list and each for each in item.values())
    if usual is None:
        return item is None or _is_count(item)
    if usual.__class__ is int:
        return _is_count(item)
    return item.__class__ is usual.__class__


def _is_count(item: Any) -> bool:
    return item.__class__ is int and -_MOST < item < _MOST


def _are_texts(items: list[Any]) -> bool:
    return all(item.__class__ is str for item in items)


def _shown(item: Any) -> Any:
    """The same with nothing in its texts that a terminal would obey."""
    if item.__class__ is str:
        return printable(item)
    if item.__class__ is list:
        return [_shown(one) for one in item]
    if item.__class__ is dict:
        return {printable(key): _shown(one) for key, one in item.items()}
    return item
