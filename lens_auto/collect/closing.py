# SPDX-License-Identifier: Apache-2.0
"""The end of a collector: the run's root span, the last chunks, what is left over, and the spool's end."""

from __future__ import annotations

import errno
import os
from time import monotonic, sleep

from lens_auto.collect import checkpoint, encoding, store
from lens_auto.collect.liveness import carriers
from lens_auto.collect.reading import PROCESSES
from lens_auto.collect.spool import PLAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lens_auto.collect.collector import Collector

JOURNAL = 'journal'
_MARGIN = 0.4  # seconds kept back for what follows the sending
_GRACE = 0.5  # seconds for processes of the run that are about to end
_PATIENCE = 5.0  # seconds to wait for room on a full disk
_STATUS_ERROR = 2
_NO_ROOM = (
    'the file system of the run folder is 90 % full: what is not in the folder waits in the journals; '
    'make room, then --replay'
)
LOCK = '.collector'
# The checkpoint goes last: as long as it is there, it tells a replay what was done.
_OURS = (checkpoint.NAME + '.new', PROCESSES, LOCK, PLAN)


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
    written = collector.flush()
    # A disk over its share stays so for longer than anybody waits.
    retry = min(deadline - 0.3, monotonic() + (0.0 if collector.no_room else _PATIENCE))
    while not written and monotonic() < retry:
        sleep(0.05)
        written = collector.flush()
    if collector.no_room:
        totals.notes.append(_NO_ROOM)
    if collector.sender is not None:
        collector.sender.drain(deadline - _MARGIN)
        totals.notes += collector.sender.notes()
    if written:
        left = collector.store.leave()
        for name, count in left.items():
            totals.unsent[name] = totals.unsent.get(name, 0) + count
        if left:
            collector.save()  # the files are longer by it
        store.remove_outbox(collector.folder.path)
    # Those that record already, and those that may begin to; the run's own are gone when nothing was left behind.
    running = len(alive) or (_left_behind(collector.spool, deadline) if written else 0)
    if running:
        still = '1 process is' if running == 1 else f'{running} processes are'
        totals.notes.append(f'{still} still running; after that, --replay adds what was recorded meanwhile')
    finished = written and not running and not collector.reading.members and not collector.reading.left()
    totals.complete = finished and not totals.unsent
    if finished:
        totals.spools = []
    elif not running:
        totals.spools = [_move_spool(collector, deadline)]
    collector.write_run_file()
    if finished:
        # Only now: whoever finds the spool without a checkpoint finds run.json complete.
        remove_spool(collector.spool)
    if collector.sender is not None:
        collector.sender.give_up()
    collector.folder.unregister()
    totals.last = not any(still for _, _, still in collector.folder.launchers())


def _left_behind(spool: str, deadline: float) -> int:
    """Processes that carry the spool and stay: helpers of multiprocessing end a moment after their program."""
    until = min(deadline - _MARGIN, monotonic() + _GRACE)
    while (count := carriers(spool)) and monotonic() < until:
        sleep(0.02)
    return count


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
        b'',
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
    collector.store.put(store.TRACES, encoding.resource_spans(resource, [span]), 1, vital=True)


def inbound_links(environ: Mapping[str, str]) -> list[tuple[bytes, bytes, Mapping[str, Any] | None]]:
    """The context the launcher was started in (W3C TRACEPARENT), as links of the run's root span.

    Args:
        environ: The launcher's environment.
    """
    parts = environ.get('TRACEPARENT', '').strip().split('-')
    if len(parts) < 4 or len(parts[1]) != 32 or len(parts[2]) != 16:
        return []
    try:
        trace_id, span_id = bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
    except ValueError:
        return []
    return [(trace_id, span_id, {'lens.link': 'inbound'})] if any(trace_id) and any(span_id) else []


def remove_spool(spool: str) -> None:
    """Everything in it has been used; what is not the collector's own stays, and the folder with it.

    Args:
        spool: The spool.
    """
    for name in (*_OURS, checkpoint.NAME):
        try:
            os.unlink(os.path.join(spool, name))
        except OSError:
            pass
    for path in (spool, os.path.dirname(spool)):
        try:
            os.rmdir(path)
        except OSError:
            break
        if os.path.basename(os.path.dirname(spool)) != JOURNAL:
            break


def _move_spool(collector: Collector, deadline: float) -> str:
    """Take what could not be finished into the run folder, where nobody cleans up; the answer is where it is then."""
    spool = collector.spool
    kept = os.path.join(collector.folder.path, JOURNAL, os.path.basename(spool))
    if spool == kept:
        return spool  # a replay that could not finish either
    os.makedirs(os.path.dirname(kept), 0o700, exist_ok=True)
    try:
        os.rename(spool, kept)
        return kept
    except OSError as error:
        if error.errno != errno.EXDEV:
            return spool
    import shutil

    # Another disk. A copy counts when it is whole; with it in place the original is nobody's any more.
    fresh = kept + '.new'
    os.mkdir(fresh, 0o700)
    try:
        for name in os.listdir(spool):
            path = os.path.join(spool, name)
            if monotonic() > deadline:
                raise TimeoutError
            collector.store.check_room(os.stat(path).st_size)
            shutil.copyfile(path, os.path.join(fresh, name))
    except OSError:
        shutil.rmtree(fresh)
        return spool  # run.json names it: a replay finds it there
    os.rename(fresh, kept)
    shutil.rmtree(spool, ignore_errors=True)
    return kept
