# SPDX-License-Identifier: Apache-2.0
"""`lens-instrument --replay RUN`: finish what a collector could not, and send what no backend has had yet."""

from __future__ import annotations

import json
import os
import sys

from lens_auto.collect import checkpoint, closing, collector, otlp, runfile, store, summary
from lens_auto.collect.collector import Collector
from lens_auto.collect.folder import LAUNCHERS, RunFolder, read_key
from lens_auto.collect.look import look_of
from lens_auto.collect.run import Run
from lens_auto.collect.totals import Totals, merge
from lens_auto.record.reader import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lens_auto.record.reader import Identity

SENT = 'sent.json'
_ENDPOINTS = (
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
    'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT',
)


def replay(folder: str, environ: Mapping[str, str]) -> int:
    """Complete a run folder, send what is unsent when an OTLP endpoint is set, and print the summary on stderr.

    Args:
        folder: The run folder.
        environ: The environment; `OTEL_EXPORTER_OTLP_*` as the SDK reads it.

    Returns:
        0, or 1 when the run is still going on or an endpoint is set and did not take everything, or 2 when it is no
        run folder.
    """
    folder = os.path.realpath(folder)
    key = read_key(folder)
    if not key:
        sys.stderr.write(f'lens-instrument: {folder} is not the folder of a run\n')
        return 2
    run = _run(key)
    notes: list[str] = []
    for launcher, spool in _spools(folder):
        note = _merge(folder, run, launcher, spool, environ)
        if note:
            notes.append(note)
    going_on = bool(notes)
    parts = runfile.load(folder) or [_blank(folder, run)]
    _empty_outbox(folder)
    sent = True
    # Not while a collector writes: if it is killed, what it wrote last is cut off and written again.
    if not going_on and _has_destination(parts, environ):
        left, said = _send(folder, environ)
        sent = not left
        notes += said
        for part in parts:
            # What an earlier attempt met is over, whatever this one met.
            part.notes = [note for note in part.notes if not otlp.is_about_sending(note)]
            part.unsent = {name: count for name, count in part.unsent.items() if name in left}
            if sent:
                part.complete = part.complete or not _spools(folder)
            runfile.write(folder, part)
    whole = merge(runfile.load(folder) or parts)
    whole.notes += notes
    whole.folder = folder
    look = look_of(2, environ, sys.stderr.encoding)
    sys.stderr.write(summary.render(whole, look, going_on))
    merged = whole.complete or any(whole.unsent.values())
    return 0 if merged and sent and not going_on else 1


def _has_destination(parts: list[Totals], environ: Mapping[str, str]) -> bool:
    """An endpoint is named, or the run was to be sent: then the SDK's default endpoint was, and is, meant."""
    if any(environ.get(name) for name in _ENDPOINTS):
        return True
    return any(part.settings.get('exporter', [''])[0] == 'otlp' for part in parts)


def _run(key: dict[str, str]) -> Run:
    run = Run(key['id'], 'run folder', int(key['attempt']), key['nonce'], '', False)
    # Not now: when it was. The monotonic clock of that node is known from the journals.
    run.started_wall_ns = int(key.get('started') or 0)
    run.started_mono_ns = 0
    return run


def _blank(folder: str, run: Run) -> Totals:
    return Totals(run_id=run.run_id, trace_id=run.trace_id.hex(), folder=folder, started_ns=run.started_wall_ns)


def _spools(folder: str) -> list[tuple[str, str]]:
    """Every spool that may hold something, with the launcher it belongs to ('' when only its checkpoint knows)."""
    found: dict[str, str] = {}
    for name, spool, _ in RunFolder(folder, False).launchers():
        if spool:
            found[spool] = name
    for part in runfile.load(folder):
        for spool in part.spools:
            found.setdefault(spool, part.launcher)
    kept = os.path.join(folder, closing.JOURNAL)
    names = [name for name in sorted(os.listdir(kept)) if not name.endswith('.new')] if os.path.isdir(kept) else []
    # A spool that was copied here counts here alone, also when its original could not be removed.
    moved = {os.path.join(kept, name): '' for name in names}
    for spool, launcher in found.items():
        if os.path.basename(spool) in names:
            moved[os.path.join(kept, os.path.basename(spool))] = launcher
        elif os.path.isdir(spool):
            moved[spool] = launcher
    return [(launcher, spool) for spool, launcher in moved.items()]


def _merge(folder: str, run: Run, launcher: str, spool: str, environ: Mapping[str, str]) -> str:
    """Read one spool to its end; the answer is why it could not be finished, or ''."""
    if _is_done(folder, launcher, spool):
        closing.remove_spool(spool)
        return ''
    lock = collector.own(spool)
    if lock < 0:
        return f'{spool} is being collected by a launcher that is still at work'
    try:
        host, pid, started = launcher.rsplit('-', 2) if launcher else ('', '0', '0')
        who: Identity = (host, int(pid), int(started))
        key = read_key(folder)
        creator = key.get('host') == host and key.get('pid') == pid
        # The root is written once, by whichever launcher the spool's checkpoint named.
        creator = creator and not any(part.root_written for part in runfile.load(folder))
        values: dict[str, Any] = {'service_name': 'unknown_service', 'exporter': 'file'}
        reader = Collector(spool, RunFolder(folder, creator), run, values, None, None, environ, who, live=False)
        reader.drain()
    finally:
        os.close(lock)
    if launcher and not os.path.isdir(spool):
        _forget(folder, launcher)
    return ''


def _is_done(folder: str, launcher: str, spool: str) -> bool:
    """A collector that was killed while it removed the spool, its work being done."""
    names = os.listdir(spool)
    if checkpoint.NAME in names or any(identity(name) for name in names):
        return False
    return any(part.launcher == launcher and not part.spools for part in runfile.load(folder))


def _forget(folder: str, launcher: str) -> None:
    for remove, path in (
        (os.unlink, os.path.join(folder, LAUNCHERS, launcher)),
        (os.rmdir, os.path.join(folder, LAUNCHERS)),
    ):
        try:
            remove(path)
        except OSError:
            pass


def _empty_outbox(folder: str) -> None:
    """Chunks whose launcher is gone, and whose spool with it, go into the files they would have ended in."""
    for path in store.chunks(folder):
        stem = os.path.basename(path).rsplit('-', 3)[0]
        if any(name.startswith(stem + '-') and alive for name, _, alive in RunFolder(folder, False).launchers()):
            continue
        try:
            with open(path, 'rb') as file:
                store.Store(folder, stem, False).append(f'{store.kind_of(path)}-{stem}.jsonl', file.read())
            os.unlink(path)
        except OSError:
            break  # the disk is full: it stays for the next replay
    store.remove_outbox(folder)


def _send(folder: str, environ: Mapping[str, str]) -> tuple[set[str], list[str]]:
    """Send every line that was not sent, and note after each that it was: a second replay sends none of them.

    The answer is what is left (spans, points), and a word on it for the user.
    """
    try:
        from lens_auto.collect.otlp_sdk import Exporters

        exporters = Exporters(environ)
    except Exception as error:
        return {*store.ITEMS.values()}, [f'nothing was sent: {otlp.reason(error)}']
    done = _read_sent(folder)
    sent: dict[str, int] = {}
    failed: dict[str, bool] = {}
    for name in sorted(os.listdir(folder), reverse=True):  # traces first: they are what every backend takes
        kind = name.partition('-')[0]
        if kind not in store.ITEMS or kind in failed or not name.endswith('.jsonl'):
            continue
        with open(os.path.join(folder, name), 'rb') as file:
            file.seek(done.get(name, 0))
            for line in file:
                if not line.endswith(b'\n'):
                    break  # still being written
                if not _try(exporters, kind, line.decode()):
                    failed[kind] = True
                    break
                sent[kind] = sent.get(kind, 0) + 1
                done[name] = done.get(name, 0) + len(line)
                _write_sent(folder, done)
    if failed:
        return {store.ITEMS[kind] for kind in failed}, otlp.failures(exporters, failed)
    if not sent:
        return set(), ['sending: there was nothing left to send']
    return set(), [f'sending: all of it is at {" and ".join(sorted({exporters.endpoint(kind) for kind in sent}))} now']


def _try(exporters: Any, kind: str, line: str) -> bool:
    # Once: the SDK's exporter has tried again itself for as long as OTEL_EXPORTER_OTLP_TIMEOUT lets it.
    try:
        return exporters.send(kind, line)
    except Exception as error:
        exporters.note(kind, otlp.reason(error))
        return False


def _read_sent(folder: str) -> dict[str, int]:
    try:
        with open(os.path.join(folder, SENT), encoding='utf-8') as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def _write_sent(folder: str, done: dict[str, int]) -> None:
    path = os.path.join(folder, SENT)
    with open(path + '.new', 'w', encoding='utf-8') as file:
        json.dump(done, file)
    os.rename(path + '.new', path)
