# SPDX-License-Identifier: Apache-2.0
"""The run as a Chrome trace, which ui.perfetto.dev and chrome://tracing open: a process a rank, tracks that nest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lens_auto.report.lanes import lanes
from lens_auto.report.store import BUCKETS, ERROR, OPEN, TRUNCATED

if TYPE_CHECKING:
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
    tree, store = run.tree, run.store
    rows = tree.rows
    zero = int(rows['start'].min()) if len(rows) else 0
    lane, _ = lanes(tree)
    count = 0
    names = [json.dumps(name) for name in store.names]
    with open(path, 'w', encoding='utf-8') as file:
        head = {'run': run.name, 'zero_unix_nano': str(zero), 'producer': 'lens-report'}
        file.write('{"displayTimeUnit":"ms","otherData":' + json.dumps(head) + ',"traceEvents":[\n')
        separator = ''
        for number, process in enumerate(store.processes):
            label = {'name': process.label + (f' ({process.host})' if process.host else '')}
            order = process.rank if process.rank is not None else number
            for name, args in (('process_name', label), ('process_sort_index', {'sort_index': order})):
                event = {'ph': 'M', 'pid': number + 1, 'tid': 0, 'name': name, 'args': args}
                file.write(separator + json.dumps(event))
                separator = ',\n'
                count += 1
        columns = zip(
            *(rows[name].tolist() for name in ('start', 'end', 'process', 'name', 'group', 'bucket', 'iteration')),
            rows['flags'].tolist(),
            lane.tolist(),
            strict=True,
        )
        for start, end, process, name, group, bucket, iteration, flags, track in columns:
            args = f'"group":{json.dumps(store.groups[group])}'
            if bucket:
                args += f',"bucket":"{BUCKETS[bucket]}"'
            if iteration >= 0:
                args += f',"iteration":{iteration}'
            for bit, word in ((ERROR, 'error'), (TRUNCATED, 'truncated'), (OPEN, 'open')):
                if flags & bit:
                    args += f',"{word}":true'
            file.write(
                f'{separator}{{"ph":"X","pid":{process + 1},"tid":{track + 1},"ts":{(start - zero) / 1000:.3f},'
                f'"dur":{(end - start) / 1000:.3f},"name":{names[name]},"cat":"span","args":{{{args}}}}}'
            )
            separator = ',\n'
            count += 1
        for event in _flows(run, zero, lane.tolist()):
            file.write(separator + json.dumps(event))
            count += 1
        for series in store.series.values():
            for at, value in zip(series.times, series.values, strict=True):
                if value - value == 0:
                    event = {
                        **{'ph': 'C', 'pid': series.process + 1, 'tid': 0, 'ts': (at - zero) / 1000},
                        **{'name': f'{series.name} {series.part}'.rstrip(), 'args': {'value': value}},
                    }
                    file.write(separator + json.dumps(event))
                    separator = ',\n'
                    count += 1
        file.write('\n]}\n')
    return count


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
