# SPDX-License-Identifier: Apache-2.0
"""The end of a collector: the run's root span, the last chunks, what is left over, and the spool's end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from lens_auto.collect import checkpoint, encoding, otlp, store
from lens_auto.collect.reading import PROCESSES

if TYPE_CHECKING:
    from lens_auto.collect.collector import Collector

JOURNAL = 'journal'
_STATUS_ERROR = 2
LOCK = '.collector'
_OURS = (checkpoint.NAME, checkpoint.NAME + '.new', PROCESSES, LOCK)


def close(collector: Collector, deadline: float) -> None:
    """Finish the run folder as far as the time allows; what cannot be finished stays readable for a replay.

    Args:
        collector: Its reading is over.
        deadline: By `monotonic`.
    """
    totals = collector.totals
    alive = collector.reading.alive()
    # A replay while the program runs on (its launcher was killed) leaves the run's end to a later one.
    if totals.creator and not totals.root_written and (totals.ended_ns or not alive):
        _write_root(collector)
        totals.root_written = True
    collector.flush()
    unwritten = collector.store.waiting > 0
    if collector.sender is not None:
        collector.sender.drain(deadline - 0.25)
        totals.notes += collector.sender.notes()
    left = otlp.leave(collector.store)
    for path in left:
        name = 'spans' if store.kind_of(path) == store.TRACES else 'points'
        totals.unsent[name] = totals.unsent.get(name, 0) + store.items_of(path)
    if alive:
        totals.notes.append(
            f'{len(alive)} process{"es" if len(alive) > 1 else ""} went on after the command ended; '
            'when they have ended too, --replay adds what they recorded'
        )
    totals.unsent = {name: count for name, count in totals.unsent.items() if count}
    if not unwritten:
        collector.save()  # the files are longer by what was left
        for path in left:
            os.unlink(path)
    totals.complete = not (collector.reading.members or unwritten or any(totals.unsent.values()))
    if not collector.reading.members and not unwritten:
        _remove_spool(collector.spool)
    elif not alive:
        _move_spool(collector, deadline)
    collector.write_run_file()
    collector.folder.unregister()
    totals.last = not any(still for _, _, still in collector.folder.launchers())


def _write_root(collector: Collector) -> None:
    run, totals = collector.run, collector.totals
    end = max(totals.ended_ns, collector.intake.last_ns)  # no span of the run may end after it
    items: dict[str, Any] = {'lens.run.attempt': run.attempt}
    if not totals.ended_ns:
        # A replay: the launcher was killed. The last thing anybody did is all that is known of the end.
        seen = [member.last + member.shift for member in collector.reading.members.values()]
        end = max([run.started_wall_ns, end, *seen])
        items |= {'lens.truncated': True, 'lens.end_estimated': True}
    if totals.exit_code is not None:
        items['process.exit.code'] = totals.exit_code
    if totals.signal is not None:
        items['lens.signal'] = totals.signal
    failed = bool(totals.exit_code or totals.signal or 'lens.truncated' in items)
    span = encoding.span(
        run.root_span_id,
        run.trace_id,
        0,
        'lens.run',
        run.started_wall_ns,
        end,
        items,
        _STATUS_ERROR if failed else 0,
        '',
        inbound_links(collector.environ),
        None,
    )
    resource = encoding.resource(collector.intake.of_launcher(collector.who))
    collector.store.put(store.TRACES, encoding.resource_spans(resource, [span]), 1)


def inbound_links(environ: Mapping[str, str]) -> list[tuple[int, int, Mapping[str, Any] | None]]:
    """The context the launcher was started in (W3C TRACEPARENT), as links of the run's root span.

    Args:
        environ: The launcher's environment.
    """
    parts = environ.get('TRACEPARENT', '').strip().split('-')
    if len(parts) < 4 or len(parts[1]) != 32 or len(parts[2]) != 16:
        return []
    try:
        trace_id, span_id = int(parts[1], 16), int(parts[2], 16)
    except ValueError:
        return []
    return [(trace_id, span_id, {'lens.link': 'inbound'})] if trace_id and span_id else []


def _remove_spool(spool: str) -> None:
    """Everything in it has been used; what is not the collector's own stays, and the folder with it."""
    for name in _OURS:
        try:
            os.unlink(os.path.join(spool, name))
        except OSError:
            pass
    try:
        os.rmdir(spool)
    except OSError:
        pass


def _move_spool(collector: Collector, deadline: float) -> None:
    """Take what could not be finished into the run folder, where nobody cleans up."""
    kept = os.path.join(collector.folder.path, JOURNAL, os.path.basename(collector.spool))
    if os.path.dirname(collector.spool) == os.path.dirname(kept):
        return  # it is there already: a replay that could not finish either
    os.makedirs(kept, 0o700, exist_ok=True)
    # The checkpoint last: with it in the new place, everything it speaks of is there.
    names = sorted(os.listdir(collector.spool), key=lambda name: name == checkpoint.NAME)
    for name in names:
        if monotonic() > deadline:
            break  # the spool is named in run.json: a replay finds the rest there
        if name in _OURS or name.endswith('.jnl'):
            shutil.move(os.path.join(collector.spool, name), os.path.join(kept, name))
    else:
        collector.totals.spools = [kept]
        _remove_spool(collector.spool)
