# SPDX-License-Identifier: Apache-2.0
"""Finds a run and loads it: a run folder, finished, live or dead, or files of OTLP JSON lines."""

from __future__ import annotations

import gc
import glob
import os
import time
from dataclasses import dataclass, field
from errno import EINVAL
from stat import S_ISREG

from lens_auto.collect import closing, runfile
from lens_auto.collect import store as outbox
from lens_auto.collect.folder import RUNS, RunFolder, read_key
from lens_auto.collect.totals import Totals
from lens_auto.record.reader import segments
from lens_auto.report import journals, otlp, told
from lens_auto.report.store import Store, printable
from lens_auto.report.tree import Tree, build

_SUFFIXES = ('.jsonl', '.json', '.ndjson', '.jsonl.gz', '.json.gz')
_LINES = ('traces', 'metrics')


class NoRun(Exception):
    """There is nothing to report on; the text says why and what to do."""


@dataclass
class Run:
    """A run, loaded.

    Attributes:
        path: Its folder or file.
        store: What was read.
        tree: Who encloses whom.
        totals: What run.json says, None where there is none.
        live: Processes of the run, or its launcher, are at work.
        finished: It has ended and all that was recorded is in the folder.
        took: Seconds that reading took.
    """

    path: str
    store: Store
    tree: Tree
    totals: Totals | None = None
    live: bool = False
    finished: bool = True
    took: float = 0.0
    notes: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        """What to call the run."""
        name = (self.totals.run_id if self.totals else '') or os.path.basename(self.path.rstrip('/')) or self.path
        return printable(name)


def newest(cwd: str) -> str:
    """The newest run under `lens-runs` of a folder, or the folder itself when it is a run's.

    Args:
        cwd: The folder.

    Raises:
        NoRun: There is none.
    """
    if read_key(cwd):
        return cwd
    parent = os.path.join(cwd, RUNS)
    try:
        runs = [os.path.join(parent, name) for name in os.listdir(parent)]
    except OSError:
        runs = []
    runs = [path for path in runs if read_key(path)]
    if not runs:
        raise NoRun(
            f'no run under {parent}\n'
            '    name a run folder or a file of OTLP JSON lines, or record a run: lens-instrument python train.py'
        )
    return max(runs, key=lambda path: (read_key(path).get('started', '').rjust(20, '0'), path))


def find(given: str | None, cwd: str) -> str:
    """The path of a run: what was given, or a run of that name under `lens-runs`, or the newest.

    Args:
        given: What the user named.
        cwd: The working directory.

    Raises:
        NoRun: There is no such thing.
    """
    if given is None:
        return newest(cwd)
    path = os.path.join(cwd, given)
    if os.path.exists(path):
        return path
    under = os.path.join(cwd, RUNS, given)
    if os.path.isdir(under):
        return under
    raise NoRun(f'{given} is neither a run folder nor a file, and no run of that name is under {RUNS}/')


def load(path: str, spans_only: bool = False) -> Run:
    """Read a run.

    Args:
        path: A run folder, a folder of OTLP JSON lines or of journals, or a file of OTLP JSON lines.
        spans_only: Leave the metrics out.

    Raises:
        NoRun: There is nothing to read, or it cannot be read.
    """
    began = time.perf_counter()
    store = Store()
    store.origin = path
    totals, live, finished = None, False, True
    # What JSON makes is freed by its reference counts; looking for cycles in it costs a third of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        if os.path.isdir(path):
            key = read_key(path)
            parts = told.parts(path, store)
            totals = told.together(parts)
            if key:
                # Journals first: what the collector moves into the files meanwhile is then seen twice, not never.
                pending = Store()
                live, finished = _journals(path, key, parts, pending)
                _files(path, store, spans_only)
                store.adopt(pending)
            elif segments(path):
                # A spool by itself: of a run whose folder is elsewhere, or gone.
                _ours_alone(path)
                live = journals.read_spool(path, '', store, time.time_ns())
            elif not _files(path, store, spans_only):
                raise NoRun(
                    f'{path} holds no run\n'
                    '    expected traces*.jsonl as lens-instrument writes them, OTLP JSON lines, or journals'
                )
        else:
            _file(path, store)
    except OSError as error:
        raise NoRun(f'{error.filename or path} cannot be read: {error.strerror or error}') from None
    finally:
        if collecting:
            gc.enable()
    run = Run(path, store, build(store), totals, live, finished)
    run.took = time.perf_counter() - began
    return run


def _ours_alone(path: str) -> None:
    """Refuse journals that may be another's work: unlike OTLP lines they must be trusted (`record/format.py`)."""
    status = os.stat(path)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise NoRun(
            f'{path} holds journals, which are read only from a folder that is open to nobody but you\n'
            '    if you know where they come from: chmod 700'
        )


def _file(path: str, store: Store) -> None:
    otlp.read(path, store)
    if not len(store) and not store.series and not store.skipped:
        raise NoRun(
            f'{path} holds neither spans nor metrics\n    expected OTLP JSON lines (resourceSpans, resourceMetrics)'
        )


def _files(path: str, store: Store, spans_only: bool) -> bool:
    """Read the folder's files, and what waits in its outbox; False when there are none."""
    names = sorted(name for name in os.listdir(path) if name.endswith(_SUFFIXES) and name != runfile.NAME)
    ours = [name for name in names if name.startswith(_LINES)]
    found, unreadable = False, None
    for name in ours or [name for name in names if not name.startswith(('logs', 'sent'))]:
        if spans_only and name.startswith('metrics'):
            continue
        file = os.path.join(path, name)
        try:
            if not S_ISREG(os.stat(file).st_mode):  # a pipe of that name would hold us
                raise OSError(EINVAL, 'not a file', file)
            otlp.read(file, store)
            found = True
        except OSError as error:
            store.skip('files that cannot be read')
            unreadable = error
    if unreadable is not None and not found:
        raise unreadable
    for chunk in outbox.chunks(path):
        try:
            otlp.read(chunk, store)
        except FileNotFoundError:
            continue  # it was sent meanwhile
        except OSError:
            store.skip('files that cannot be read')
    return found


def _journals(path: str, key: dict[str, str], parts: list[Totals], store: Store) -> tuple[bool, bool]:
    """Read every spool of the run; whether it is live, and whether nothing was left to read."""
    run_key = ':'.join(key.get(name, '') for name in ('id', 'attempt', 'nonce'))
    spools: dict[str, None] = {}
    live = False
    for _, spool, alive in RunFolder(path, False).launchers():
        live = live or alive
        if spool:
            spools[spool] = None
    for part in parts:
        spools.update(dict.fromkeys(part.spools))
    kept = sorted(glob.glob(os.path.join(glob.escape(path), closing.JOURNAL, '*')))
    names = {os.path.basename(one) for one in kept}
    # A spool that was moved here counts here alone.
    for spool in [*kept, *(one for one in spools if os.path.basename(one) not in names)]:
        if os.path.isdir(spool) and not spool.endswith('.new'):
            live = journals.read_spool(spool, run_key, store, time.time_ns()) or live
    return live, not spools and not kept
