# SPDX-License-Identifier: Apache-2.0
"""Spans, metrics and steps as CSV or Parquet files."""

from __future__ import annotations

import csv
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lens_auto.report.steps import steps
from lens_auto.report.store import BUCKETS, ERROR, OPEN, TRUNCATED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lens_auto.report.folder import Run

SPANS = (
    *('span_id', 'parent_id', 'name', 'process', 'rank', 'host', 'group', 'bucket', 'iteration'),
    *('start_unix_nano', 'duration_ns', 'own_ns', 'status'),
)
METRICS = ('name', 'part', 'process', 'rank', 'unit', 'kind', 'time_unix_nano', 'value')
STEPS = ('step', 'start_unix_nano', 'duration_ns', 'kind', 'kind_ns')


def _spans(run: Run) -> Iterator[tuple[Any, ...]]:
    rows, store = run.tree.rows, run.store
    names = ('id', 'parent', 'name', 'process', 'group', 'bucket', 'iteration', 'start', 'end', 'flags')
    columns = [rows[name].tolist() for name in names]
    for span, parent, name, process, group, bucket, iteration, start, end, flags, own in zip(
        *columns, run.tree.own.tolist(), strict=True
    ):
        who = store.processes[int(process)]
        status = 'truncated' if flags & TRUNCATED else 'open' if flags & OPEN else 'error' if flags & ERROR else ''
        yield (
            *(f'{span:016x}', f'{parent:016x}' if parent else None, store.names[name], who.label, who.rank, who.host),
            *(store.groups[group], BUCKETS[bucket], iteration if iteration >= 0 else None),
            *(start, end - start, own, status),
        )


def _metrics(run: Run) -> Iterator[tuple[Any, ...]]:
    for series in run.store.series.values():
        who = run.store.processes[series.process]
        for at, value in zip(series.times, series.values, strict=True):
            yield series.name, series.part, who.label, who.rank, series.unit, series.kind, at, value


def _steps(run: Run) -> Iterator[tuple[Any, ...]]:
    for one in steps(run.store, run.tree):
        for kind, spent in one.kinds.items():
            yield one.number, one.start, one.duration, kind, spent


_TABLES = (('spans', SPANS, _spans), ('metrics', METRICS, _metrics), ('steps', STEPS, _steps))


def write_csv(run: Run, folder: str) -> list[str]:
    """Write spans.csv, metrics.csv and steps.csv.

    Args:
        run: The run.
        folder: Made where it is not there.

    Returns:
        What was written, for a person.

    Raises:
        OSError: They cannot be written.
    """
    os.makedirs(folder, exist_ok=True)
    said: list[str] = []
    for name, heads, read in _TABLES:
        count = 0
        with open(os.path.join(folder, name + '.csv'), 'w', encoding='utf-8', newline='') as file:
            writer = csv.writer(file)
            writer.writerow(heads)
            for row in read(run):
                writer.writerow(['' if item is None else _inert(item) for item in row])
                count += 1
        said.append(f'{name}.csv ({count:,} rows)')
    return said


def _inert(item: Any) -> Any:
    """A text that a spreadsheet takes for a text, not for a formula."""
    return "'" + item if item.__class__ is str and item[:1] in ('=', '+', '-', '@') else item


def write_parquet(run: Run, folder: str) -> list[str]:
    """Write the same as Parquet.

    Args:
        run: The run.
        folder: Made where it is not there.

    Returns:
        What was written, for a person.

    Raises:
        OSError: They cannot be written.
        NoRun: pyarrow is not installed.
    """
    from lens_auto.report.folder import NoRun

    try:
        arrow: Any = import_module('pyarrow')
        parquet: Any = import_module('pyarrow.parquet')
    except ImportError:
        raise NoRun('Parquet needs pyarrow: pip install pyarrow; --csv needs nothing') from None
    os.makedirs(folder, exist_ok=True)
    said: list[str] = []
    for name, heads, read in _TABLES:
        columns: list[list[Any]] = [[] for _ in heads]
        for row in read(run):
            for column, item in zip(columns, row, strict=True):
                column.append(item)
        table = arrow.table(dict(zip(heads, columns, strict=True)))
        parquet.write_table(table, os.path.join(folder, name + '.parquet'))
        said.append(f'{name}.parquet ({table.num_rows:,} rows)')
    return said
