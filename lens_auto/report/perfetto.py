# SPDX-License-Identifier: Apache-2.0
"""The run as a Chrome trace, which ui.perfetto.dev and chrome://tracing open: a process a rank, tracks that nest.

Viewers draw a track as a stack: two slices of it that overlap, and neither of which lies in the other, would be drawn
wrong or left out. A journal does not tell the thread of a span, so tracks are lanes (`lanes`), as many as it takes.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING

from lens_auto.report.arrays import np
from lens_auto.report.lanes import lanes, order_of
from lens_auto.report.store import BUCKETS, ERROR, OPEN, TRUNCATED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lens_auto.report.arrays import Ints
    from lens_auto.report.folder import Run

_MOST_FLOWS = 100_000


def write(run: Run, path: str) -> int:
    """Write the trace.

    Times are microseconds since the first span; the file's `otherData` has that moment.

    Args:
        run: The run.
        path: Where to.

    Returns:
        How many events it has.

    Raises:
        OSError: It cannot be written.
    """
    rows = run.tree.rows
    zero = int(rows['start'].min()) if len(rows) else 0
    lane, _ = lanes(run.tree)
    count = 0
    with open(path, 'w', encoding='utf-8') as file:
        head = {'run': run.name, 'zero_unix_nano': str(zero), 'producer': 'lens-report'}
        file.write('{"displayTimeUnit":"ms","otherData":' + json.dumps(head) + ',"traceEvents":[')
        plain = (*_names(run, lane), *_flows(run, zero, lane.tolist()))
        for event in chain(map(json.dumps, plain), _slices(run, zero, lane), map(json.dumps, _points(run, zero))):
            file.write(',\n' + event if count else '\n' + event)
            count += 1
        file.write('\n]}\n')
    return count


def _names(run: Run, lane: Ints) -> Iterator[dict[str, object]]:
    """Names of processes and tracks, and their order."""
    for number, process in enumerate(run.store.processes):
        label = {'name': process.label + (f' ({process.host})' if process.host else '')}
        order = process.rank if process.rank is not None else number
        for name, args in (('process_name', label), ('process_sort_index', {'sort_index': order})):
            yield {'ph': 'M', 'pid': number + 1, 'tid': 0, 'name': name, 'args': args}
    for key in np.unique(run.tree.rows['process'].astype(np.int64) << 32 | lane).tolist():
        process, number = key >> 32, key & 0xFFFFFFFF
        label = {'name': f'spans beside them {number}' if number else 'spans'}
        for name, args in (('thread_name', label), ('thread_sort_index', {'sort_index': number})):
            yield {'ph': 'M', 'pid': process + 1, 'tid': number + 1, 'name': name, 'args': args}


def _slices(run: Run, zero: int, lane: Ints) -> Iterator[str]:
    """Every span. Of those that start at once a viewer takes the first for the outer one."""
    store, order = run.store, order_of(run.tree)
    rows = run.tree.rows[order]
    names = [json.dumps(name) for name in store.names]
    groups = [json.dumps(group) for group in store.groups]
    columns = ('start', 'end', 'process', 'name', 'group', 'bucket', 'iteration', 'flags')
    for start, end, process, name, group, bucket, iteration, flags, track in zip(
        *(rows[column].tolist() for column in columns), lane[order].tolist(), strict=True
    ):
        args = f'"group":{groups[group]}'
        if bucket:
            args += f',"bucket":"{BUCKETS[bucket]}"'
        if iteration >= 0:
            args += f',"iteration":{iteration}'
        for bit, word in ((ERROR, 'error'), (TRUNCATED, 'truncated'), (OPEN, 'open')):
            if flags & bit:
                args += f',"{word}":true'
        yield (
            f'{{"ph":"X","pid":{process + 1},"tid":{track + 1},"ts":{(start - zero) / 1000:.3f},'
            f'"dur":{(end - start) / 1000:.3f},"name":{names[name]},"cat":"span","args":{{{args}}}}}'
        )


def _points(run: Run, zero: int) -> Iterator[dict[str, object]]:
    """Every point of a metric that is a number."""
    for series in run.store.series.values():
        for at, value in zip(series.times, series.values, strict=True):
            if value - value == 0:
                yield {
                    **{'ph': 'C', 'pid': series.process + 1, 'tid': 0, 'ts': (at - zero) / 1000},
                    **{'name': f'{series.name} {series.part}'.rstrip(), 'args': {'value': value}},
                }


def _flows(run: Run, zero: int, lane: list[int]) -> list[dict[str, object]]:
    """Arrows from a span to one below it in another process."""
    rows, parent = run.tree.rows, run.tree.parent
    found: list[dict[str, object]] = []
    across = (parent >= 0) & (rows['process'] != rows['process'][parent])
    for row in across.nonzero()[0].tolist()[:_MOST_FLOWS]:
        above = int(parent[row])
        at = max(int(rows['start'][row]), int(rows['start'][above])) - zero
        for end, kind in ((above, 's'), (row, 'f')):
            event: dict[str, object] = {
                **{'ph': kind, 'id': row + 1, 'name': 'calls', 'cat': 'flow', 'ts': at / 1000},
                **{'pid': int(rows['process'][end]) + 1, 'tid': lane[end] + 1},
            }
            if kind == 'f':
                event['bp'] = 'e'
            found.append(event)
    return found
