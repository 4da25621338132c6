# SPDX-License-Identifier: Apache-2.0
"""The run as one HTML page that needs no network: its script, its style and its data are all in it.

The drawing is small code of our own (`page.js`): timeline libraries draw a DOM node a span and stop at some thousand,
or bring a framework along; a canvas and a binary search draw a hundred thousand. What comes from a run is data in a
JSON block and reaches the document as text alone; a content security policy lets nothing but that one script run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from typing import TYPE_CHECKING, Any

from lens_auto.collect.figures import time
from lens_auto.report.arrays import np
from lens_auto.report.commands import plain
from lens_auto.report.critical import critical_path
from lens_auto.report.facts import facts
from lens_auto.report.kinds import KINDS, is_wait
from lens_auto.report.lanes import lanes
from lens_auto.report.metrics import metrics
from lens_auto.report.phases import phases
from lens_auto.report.requests import requests
from lens_auto.report.system import system
from lens_auto.report.verdicts import verdicts
from lens_auto.report.warnings import warnings
from lens_auto.report.workers import workers

if TYPE_CHECKING:
    from lens_auto.report.arrays import Floats, Ints
    from lens_auto.report.folder import Run
    from lens_auto.report.steps import Step

MOST_SPANS = 200_000
"""In the timeline: of more the longest, and all steps. The tables count every span."""
_MOST_STEPS = 400  # bars that a screen can show apart
_MOST_PATHS = 200
_MOST_POINTS = 500
_MOST_METRICS = 40
_MOST_LANES = 64  # of a process; more would be a page to scroll through
_MOST_PROCESSES = 1024


def render(run: Run) -> str:
    """The page.

    Args:
        run: The run.
    """
    script, style = _asset('page.js'), _asset('page.css')
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'"
    # In a script block only `</` and `<!--` mean anything to HTML; no `<` is left.
    data = json.dumps(plain(_data(run)), separators=(',', ':'), allow_nan=False)
    data = data.replace('<', '\\u003c').replace('>', '\\u003e').replace('&', '\\u0026')
    text = _asset('page.html')
    for mark, part in (
        ('@TITLE@', html.escape(run.name)),
        ('@POLICY@', html.escape(policy)),
        ('@STYLE@', style),
        ('@SCRIPT@', script),
        ('@DATA@', data),  # last: nothing is looked for in it
    ):
        text = text.replace(mark, part, 1)
    return text


def _asset(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding='utf-8') as file:
        return file.read()


def _data(run: Run) -> dict[str, Any]:
    known = facts(run.store, run.tree)
    tree, store = run.tree, run.store
    rows = tree.rows
    kept = _kept(run, [one.row for one in known.listed])
    place = np.full(len(rows) + 1, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    zero = int(rows['start'].min()) if len(rows) else 0
    said = warnings(run)
    if len(kept) < len(rows):
        said.append(f'the timeline shows the {len(kept):,} longest of {len(rows):,} spans')
    account = known.goodput
    return {
        'name': run.name,
        'zero': str(zero),
        'took': time(float(rows['end'].max() - zero)) if len(rows) else '',
        'spans_total': len(rows),
        'live': run.live,
        'verdicts': verdicts(known),
        'goodput': {name: spent / account.total for name, spent in account.seconds.items()}
        if account is not None and account.total
        else {},
        'kinds': ['other' if kind in ('', 'step') else kind for kind in KINDS],
        'names': store.names,
        'processes': [
            {'label': one.label, 'host': one.host, 'launcher': one.role == 'launcher'} for one in store.processes
        ],
        'steps': _steps(run, known.listed, place, zero),
        'phases': [
            {
                **{'path': one.path, 'count': one.count, 'total': one.total, 'own': one.own, 'mean': one.mean},
                **{'p50': one.p50, 'p95': one.p95, 'share': one.share, 'bucket': one.bucket},
            }
            for one in phases(store, tree)
            if len(one.path) <= 6 and one.name != 'lens.run'
        ][:200],
        'stragglers': [
            {
                **{'process': store.processes[one.process].label, 'name': one.name, 'mean': one.mean},
                **{'median': one.median, 'share': one.share},
            }
            for one in known.slow[:20]
        ],
        'requests': [
            {
                **{'of': 'all' if one.process is None else store.processes[one.process].label, 'count': one.count},
                **{'mean': one.mean, 'shares': one.shares, 'first': one.first, 'first_p95': one.first_p95},
                **{'token': one.token, 'token_p95': one.token_p95},
            }
            for one in requests(store)[: _MOST_PROCESSES + 1]
        ],
        'system': _system(run),
        'heat': _heat(run),
        'metrics': _metrics(run, zero),
        'warnings': said,
        'spans': _spans(run, kept, place, zero),
    }


def _system(run: Run) -> dict[str, Any]:
    processes = run.store.processes
    found = system(run.store, run.tree)
    return {
        'phases': [vars(one) for one in found.phases],
        'processes': [
            {**vars(one), 'process': processes[one.process].label} for one in found.processes[:_MOST_PROCESSES]
        ],
        'gpus': [
            {**vars(one), 'gpu': f'{processes[one.process].host} {one.gpu}'} for one in found.gpus[:_MOST_PROCESSES]
        ],
    }


def _kept(run: Run, steps: list[int]) -> Ints:
    """Rows that the timeline shows, in their order; what encloses one of them is longer and so is there too."""
    rows = run.tree.rows
    if len(rows) <= MOST_SPANS:
        return np.arange(len(rows))
    longest = np.argsort(-run.tree.duration, kind='stable')[:MOST_SPANS]
    return np.unique(np.concatenate([longest, np.array(steps, dtype=np.int64)]))


def _spans(run: Run, kept: Ints, place: Ints, zero: int) -> dict[str, Any]:
    """Columns of the timeline, base64 of little-endian arrays."""
    tree = run.tree
    rows = tree.rows[kept]
    lane, depth = lanes(tree, _MOST_LANES)
    lane, depth = lane[kept], np.minimum(depth[kept], 30)
    process = rows['process'].astype(np.int64)
    # Lines of a process: those of its first lane, below them those of the second.
    size = int(lane.max()) + 1 if len(lane) else 1
    deepest = np.zeros((len(run.store.processes), size), dtype=np.int64)
    if len(rows):
        np.maximum.at(deepest, (process, lane), depth + 1)
    above = np.cumsum(deepest, axis=1) - deepest
    line = above[process, lane] + depth if len(rows) else depth
    parent = place[tree.parent[kept]]

    def packed(values: Any, kind: str) -> str:
        return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()

    return {
        'count': len(rows),
        'start': packed((rows['start'] - zero) / 1000.0, '<f8'),  # microseconds
        'length': packed(tree.duration[kept] / 1000.0, '<f8'),
        'name': packed(rows['name'], '<u4'),
        'process': packed(process, '<u2'),
        'line': packed(line, '<u2'),
        'kind': packed(tree.kind[kept], 'u1'),
        'flags': packed(rows['flags'] | np.where(tree.waits[kept], 128, 0), 'u1'),
        'parent': packed(parent, '<i4'),
        'id': packed(rows['id'], '<u8'),
        'lines': [int(n) for n in deepest.sum(axis=1)],
    }


def _steps(run: Run, listed: list[Step], place: Ints, zero: int) -> list[dict[str, Any]]:
    shown = listed
    if len(shown) > _MOST_STEPS:
        # The slowest ones in any case, the others evenly.
        slow = sorted(listed, key=lambda one: -one.duration)[: _MOST_STEPS // 8]
        even = listed[:: len(listed) // (_MOST_STEPS - len(slow)) + 1]
        shown = sorted({one.row: one for one in (*slow, *even)}.values(), key=lambda one: one.start)
    with_path = {one.row for one in sorted(shown, key=lambda one: -one.duration)[:_MOST_PATHS]}
    found: list[dict[str, Any]] = []
    for one in shown:
        path: list[list[float]] = []
        if one.row in with_path:
            for piece in critical_path(run.store, run.tree, one.row)[:2000]:
                at = int(place[piece.row])
                if at >= 0:
                    path.append([at, (piece.start - zero) / 1000, (piece.end - zero) / 1000])
        found.append(
            {
                **{'number': one.number, 'row': int(place[one.row]), 'start': (one.start - zero) / 1000},
                **{'length': one.duration / 1000, 'kinds': one.kinds, 'path': path, 'open': one.cut_short},
            }
        )
    return found


def _heat(run: Run) -> dict[str, Any]:
    """Mean milliseconds of each phase that several processes have, in each of them."""
    by_name: dict[str, dict[int, float]] = {}
    totals: dict[str, int] = {}
    for cell in workers(run.store, run.tree):
        if cell.name != 'lens.run' and not is_wait(cell.name):
            by_name.setdefault(cell.name, {})[cell.process] = cell.mean / 1e6
            totals[cell.name] = totals.get(cell.name, 0) + cell.total
    columns = sorted(by_name, key=lambda name: (len(by_name[name]) < 2, -totals[name]))[:16]
    rows = [
        {'label': one.label, 'cells': [by_name[name].get(number) for name in columns]}
        for number, one in enumerate(run.store.processes)
        if one.role != 'launcher' and any(number in by_name[name] for name in columns)
    ]
    return {'columns': columns, 'rows': rows[:_MOST_PROCESSES]}


def _metrics(run: Run, zero: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for one in metrics(run.store)[:_MOST_METRICS]:
        shown = _points(one.values)
        found.append(
            {
                **{'name': one.name, 'unit': one.unit, 'first': one.first, 'last': one.last, 'best': one.best},
                't': (one.times[shown] - zero) / 1e9,
                'v': one.values[shown],
            }
        )
    return found


def _points(values: Floats) -> Ints:
    """Places of the points of a curve: evenly, with the last, the lowest and the highest."""
    places = np.arange(0, len(values), max(1, len(values) // _MOST_POINTS))
    finite = np.flatnonzero(np.isfinite(values))
    ends = [finite[np.argmin(values[finite])], finite[np.argmax(values[finite])]] if len(finite) else []
    return np.unique(np.concatenate([places, np.array([len(values) - 1, *ends], dtype=np.int64)]))
