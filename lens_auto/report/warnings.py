# SPDX-License-Identifier: Apache-2.0
"""What a reader of the tables must know: what is missing in them, and what was put right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lens_auto.collect import reasons
from lens_auto.collect.figures import plural, time
from lens_auto.report.arrays import np
from lens_auto.report.store import OPEN, TRUNCATED, printable

if TYPE_CHECKING:
    from lens_auto.collect.totals import Totals
    from lens_auto.report.folder import Run

_MOST = 20


def warnings(run: Run) -> list[str]:
    """One sentence each, the most important first.

    Args:
        run: The run.
    """
    rows, totals = run.tree.rows, run.totals
    found: list[str] = []
    cut = int(np.count_nonzero(rows['flags'] & TRUNCATED))
    still = int(np.count_nonzero(rows['flags'] & OPEN))
    if cut:
        found.append(f'{plural(cut, "span")} cut short by the end of their process (lens-report why)')
    if still:
        hint = 'lens-report top' if run.live else 'lens-report why'
        found.append(f'{plural(still, "span")} still open ({hint})')
    if not run.finished and not run.live:
        found.append(f'journals are not merged: lens-instrument --replay {printable(run.path)} completes the folder')
    if totals is not None:
        found += _told(run, totals)
    moved = {run.store.processes[n].host: shift for n, shift in run.tree.skew.items()}
    for host, shift in moved.items():
        found.append(
            f'the clock of {host or "a host"} was {time(abs(shift))} {"behind" if shift > 0 else "ahead"}; put right'
        )
    if run.tree.duplicates:
        found.append(f'{plural(run.tree.duplicates, "span")} occurred twice and count once')
    if run.tree.orphans:
        found.append(f'{plural(run.tree.orphans, "span")} without the span that encloses them: it was not recorded')
    for why, count in run.store.skipped.items():
        found.append(f'left out: {count:,} {why}' if 'kept' not in why else f'{count:,} {why}')
    return found if len(found) <= _MOST else [*found[: _MOST - 1], f'{len(found) - _MOST + 1} more in run.json']


def _told(run: Run, totals: Totals) -> list[str]:
    """What the run itself has told of it."""
    found: list[str] = []
    if totals.counts.get('execs'):
        found.append(f'{plural(totals.counts["execs"], "span")} ended where the process went on as another program')
    unsent = [plural(count, name.removesuffix('s')) for name, count in totals.unsent.items() if count]
    if unsent:
        found.append(f'not sent: {" and ".join(unsent)}; lens-instrument --replay {printable(run.path)} sends them')
    elif totals.settings.get('exporter', [''])[0] == 'otlp' and not len(run.tree.rows):
        found.append('the spans are at the OTLP backend; the folder keeps only what was not sent')
    found += [*reasons.lost(totals), *_uninstrumented(totals)]
    limited = reasons.strategy(totals)
    found += [limited] if limited else []
    found += [line.strip() for line in reasons.rules(totals, nothing=False) if line]
    return [*found, *reasons.left_out(totals), *totals.notes]


def _uninstrumented(totals: Totals) -> list[str]:
    found: list[str] = []
    for what, noun in (('workers', 'worker'), ('processes', 'process')):
        call: dict[str, Any] = totals.roll_call.get(what) or {}
        seen, with_us = call.get('seen', 0), call.get('instrumented', 0)
        if seen > with_us:
            reasons_: list[dict[str, Any]] = call.get('not') or []
            why = '; '.join(f'{item["count"]}: {item["reason"]}' for item in reasons_[:3])
            found.append(f'{seen - with_us} of {plural(seen, noun)} not recorded: {why}')
    reach = totals.roll_call.get('reach')
    if reach:
        found.append(f'workers of the cluster are not recorded: {reach.get("reason") or "no reason given"}')
    return found
