# SPDX-License-Identifier: Apache-2.0
"""`python -m lens_auto.record FILE...` prints journal segments, one record a line, for people."""

from __future__ import annotations

import os
import sys

from lens_auto.record import format as form
from lens_auto.record import reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.reader import Record

_KINDS = {
    form.HEADER: (
        'header',
        ('format', 'resource', 'wall', 'time', 'boot_id', 'pid', 'start_ticks', 'segment', 'flags'),
    ),
    form.OPENED: ('opened', ('span', 'trace', 'parent', 'time', 'name', 'rule', 'attributes', 'links')),
    form.ENDED: (
        'ended',
        ('span', 'trace', 'parent', 'time', 'ns', 'name', 'rule', 'status', 'attributes', 'links', 'events'),
    ),
    form.POINT: ('point', ('time', 'name', 'instrument', 'unit', 'value', 'attributes', 'rule', 'trace', 'span')),
    form.LOG: ('log', ('time', 'severity', 'body', 'attributes', 'trace', 'span')),
    form.ANCHOR: ('anchor', ('wall', 'time')),
    form.RESOURCE: ('resource', ('time', 'attributes')),
    form.REPORT: ('report', ('time', 'what', 'fields')),
    form.CALLED: ('called', ('time', 'task', 'trace', 'span', 'what')),
    form.TASK: ('task', ('time', 'span', 'task', 'attempt')),
}


def show(record: Record) -> str:
    """One record as a line: its kind, then field=value, ids in hex, what is empty left out.

    Args:
        record: A record of `format`.
    """
    kind, fields = _KINDS.get(record[0], ('unknown', ()))
    parts = [f'{kind:<8}']
    for field, value in zip(fields, record[1:], strict=False):
        if value is None or value == b'':
            continue
        if field == 'links':
            value = tuple((_hex(trace), _hex(span), items) for trace, span, items in value)
        plain = not isinstance(value, (str, dict, tuple))
        parts.append(f'{field}={_hex(value)}' if plain else f'{field}={value!r}')
    return ' '.join(parts)


def _hex(value: Any) -> Any:
    return value.hex() if type(value) is bytes else value


def main(arguments: list[str]) -> int:
    """Print the segments named; 1 when one could not be read.

    Args:
        arguments: Paths of segments, or of folders of them.
    """
    if not arguments or arguments[0] in ('-h', '--help'):
        print('usage: python -m lens_auto.record FILE|FOLDER...\n\nprints the records of journal segments, one a line')
        return 0 if arguments else 2
    failed = 0
    for argument in arguments:
        for path in reader.segments(argument) if os.path.isdir(argument) else [argument]:
            try:
                records = reader.read(path)
            except (OSError, reader.ForeignSegment) as problem:
                print(f'lens_auto.record: {_said(problem, path)}', file=sys.stderr)
                failed = 1
                continue
            if not records and not _begun(path):
                print(f'lens_auto.record: {path}: not a journal segment', file=sys.stderr)
                failed = 1
                continue
            print(f'# {path}')
            for record, _ in records:
                print(show(record))
    return failed


def _begun(path: str) -> bool:
    """True for a segment nothing has been stored in yet: zeros."""
    with open(path, 'rb') as file:
        return file.read(4) == bytes(4)


def _said(problem: Exception, path: str) -> str:
    return f'{path}: {problem.strerror}' if isinstance(problem, OSError) else str(problem)


if __name__ == '__main__':
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # `| head` has seen enough. What is still buffered goes nowhere, without a complaint at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
