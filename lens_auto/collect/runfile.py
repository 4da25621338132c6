# SPDX-License-Identifier: Apache-2.0
"""`run.json`: what is known of the run, for people and programs; each launcher of a run keeps its own part in it."""

from __future__ import annotations

import fcntl
import os

from lens_auto.collect import encoding, store
from lens_auto.collect.totals import ROWS, Totals, merge
from lens_auto.record.line import moment
from lens_auto.settings import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = 'run.json'
_LOCK = '.lock'
_FORMAT = 1


def load(folder: str) -> list[Totals]:
    """The parts of a run's launchers, [] when run.json is missing or unreadable.

    Args:
        folder: The run folder.
    """
    try:
        with open(os.path.join(folder, NAME), encoding='utf-8') as file:
            import json  # not before there is a file: the usual run never reads one

            plain: dict[str, Any] = json.load(file)
        return [Totals.from_json(part) for part in plain.get('launchers') or [plain]]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


def write(folder: str, part: Totals) -> Totals:
    """Put a launcher's part into run.json and return the whole run.

    Args:
        folder: The run folder.
        part: Replaces what the same launcher wrote before.

    Raises:
        OSError: It cannot be written; the old one is still there.
    """
    lock = _lock(folder)
    try:
        parts = [other for other in load(folder) if other.launcher != part.launcher]
        parts.append(part)
        parts.sort(key=lambda one: (not one.creator, one.launcher))
        whole = merge(parts)
        plain: dict[str, Any] = {
            'format': _FORMAT,
            'started': moment(whole.started_ns),
            'ended': moment(whole.ended_ns) if whole.ended_ns else None,
            **whole.to_json(),
        }
        if len(parts) > 1:
            plain['launchers'] = [one.to_json() for one in parts]
        path = os.path.join(folder, NAME)
        store.replace(path, f'{path}.{os.getpid()}.new', _text(plain).encode())
    finally:
        os.close(lock)
    return whole


def _text(plain: dict[str, Any]) -> str:
    """JSON with a line for each fact and each row: readable, and greppable."""
    facts: list[str] = []
    for name, item in plain.items():
        text = f'[\n    {_rows(item)}\n  ]' if name in (*ROWS, 'launchers') and item else _json(item)
        facts.append(f'  {_json(name)}: {text}')
    return '{\n' + ',\n'.join(facts) + '\n}\n'


def _rows(rows: list[dict[str, Any]]) -> str:
    return ',\n    '.join(map(_json, rows))


def _json(item: Any) -> str:
    """The item as json.dumps has it; that module compiles regular expressions, which outlast a short run."""
    kind: object = item.__class__
    if kind is str:
        return encoding.quote(item)
    if kind is int:
        return str(item) if item.bit_length() < 1024 else f'"{item:#x}"'  # Python refuses to print the longest
    if kind is dict:
        return '{' + ', '.join([f'{encoding.quote(str(name))}: {_json(one)}' for name, one in item.items()]) + '}'
    if kind is list or kind is tuple:
        return '[' + ', '.join([_json(one) for one in item]) + ']'
    if kind is float:
        return encoding.number(item)
    if kind is bool:
        return 'true' if item else 'false'
    return 'null' if item is None else encoding.quote(repr(item))


def _lock(folder: str) -> int:
    """A descriptor that holds the lock on run.json while it is open."""
    fd = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:
        pass  # no locks on this file system: two launchers that end in the same millisecond may lose one part
    return fd


def private_command(command: list[str]) -> list[str]:
    """A command line without its secrets.

    Args:
        command: The program and its arguments.
    """
    return redact.argv(command)


def private_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings (name -> value, or name -> [value, source]) without secrets.

    Args:
        settings: As the launcher resolved them.
    """
    return {name: _private(item) for name, item in settings.items()}


def _private(item: Any) -> Any:
    if isinstance(item, str):
        return redact.text(item)
    kind: object = item.__class__
    return [_private(one) for one in item] if kind is list or kind is tuple else item
