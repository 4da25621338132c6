# SPDX-License-Identifier: Apache-2.0
"""The collector: a thread of the launcher that reads the node's journals and makes the run's record of them.

Everything it knows is in its checkpoint, so that it can be killed at any moment: output beyond the checkpoint is cut
off and made again from the journals, whose segments are deleted only after the checkpoint that has read them. Nothing
in here may reach the launcher: faults are caught in `_guard`, counted, and reported in run.json and the summary.
"""

from __future__ import annotations

import _thread
import fcntl
import os
from time import monotonic, time_ns

from lens_auto.collect import checkpoint, closing, runfile, snapshot
from lens_auto.collect.intake import Intake
from lens_auto.collect.reading import Reading
from lens_auto.collect.rollcall import Rollcall
from lens_auto.collect.store import FULL, NoRoom, Store
from lens_auto.collect.totals import Totals
from lens_auto.record import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from lens_auto.collect.console import Console
    from lens_auto.collect.folder import RunFolder
    from lens_auto.collect.look import Look
    from lens_auto.collect.otlp import Sender
    from lens_auto.collect.pace import Pace
    from lens_auto.collect.receiver import Receiver
    from lens_auto.collect.run import Run
    from lens_auto.collect.system.sampler import Sampler
    from lens_auto.record.reader import Identity

    class Listener(Protocol):
        """Who shows a line."""

        text: str


_PACE = 0.9  # seconds between two lines that say how the run gets along
_FAST, _SLOW = 0.05, 1.0  # seconds between polls: while records come, and when none do
_FLUSH = 1.0
_FLUSH_SHARE = 50  # a flush may take one part in 50 of the time
_RUN_FILE = 30.0
_FIRST_RUN_FILE = 0.5  # a shorter run needs none before its end; what a replay must know is in the checkpoint
_GRACE = 0.3  # seconds that processes which outlive the command have to end
_MOST_FAULTS = 20
_LONGEST_RETRY = 60.0
# What of the totals is not made anew from the rest.
_KEPT = (
    'ended_ns',
    'exit_code',
    'signal',
    'launcher',
    'host',
    'role',
    'creator',
    'root_written',
    'started_ns',
    'command',
    'settings',
    'groups_off',
    'unsent',
)


def own(spool: str) -> int:
    """Become the only collector of a spool, or -1 when another one is alive; where there are no locks, be it.

    Args:
        spool: The spool. The answer is a descriptor that holds the lock while it is open.
    """
    fd = os.open(os.path.join(spool, closing.LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return -1
    except OSError:
        pass
    return fd


def _console(fd: int | None) -> Console | None:
    if fd is None:
        return None
    from lens_auto.collect.console import Console

    return Console(fd)


def _sender(folder: str, stem: str, environ: Mapping[str, str]) -> Sender:
    from lens_auto.collect.otlp import Sender

    return Sender(folder, stem, environ)


class Collector:
    """Reads one spool until `finish`.

    Attributes:
        spool: Where the journals lie.
        folder: The run folder.
        run: The run.
        who: The launcher whose part this is.
        environ: The launcher's environment as it was at the start.
        intake: The state of the run.
        store: The files written.
        sender: Sends what the store puts into the outbox, or None.
        reading: The journals.
        faults: The collector's own faults.
        no_room: The run folder's disk was too full to be written to, the last time that was tried.
        totals: This launcher's part of the run, as of the last run.json.
        whole: The run as all its launchers see it, as of the last run.json.
    """

    def __init__(
        self,
        spool: str,
        folder: RunFolder,
        run: Run,
        values: Mapping[str, Any],
        console_fd: int | None = None,
        facts: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        launcher: Identity | None = None,
        live: bool = True,
        receiver: Receiver | None = None,
    ) -> None:
        """Prepare; nothing is read or written before `start`.

        Args:
            spool: Where the journals lie.
            folder: The run folder.
            run: The run.
            values: Resolved settings.
            console_fd: The launcher's standard output, with exporter `console`.
            facts: For run.json: `command` (list), `settings` (name -> [value, source]), `rules` (see `Ledger`), and the
                lists `groups_off`, `named` (rule files) and `notes`. `absent` says what a package lacks of a module, ''
                for nothing; `select` gives rules and groups_off for span groups that the program's own config names.
            environ: The launcher's environment as it was at the start.
            launcher: Whose part of the run this is; this process by default.
            live: The processes may still run. A replay passes False: nobody saw them die.
            receiver: Where frameworks send spans of their own, or None.
        """
        environ = os.environ if environ is None else environ
        facts = facts or {}
        self.spool = spool
        self.folder = folder
        self.run = run
        self.who: Identity = launcher or (process.hostname(), os.getpid(), process.start_ticks())
        self._live = live
        self.environ = environ
        self.faults: dict[str, int] = {}
        delta = environ.get('OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE', '').lower() == 'delta'
        self.intake = Intake(run, values, environ, prints=console_fd is not None)
        self.intake.ledger.know_rules(list(facts.get('rules') or []))
        self.intake.ledger.others = facts.get('others')
        self._console = _console(console_fd)
        sending = values.get('exporter') == 'otlp' and live
        self.store = Store(folder.path, f'{self.who[0]}-{self.who[1]}', sending)
        self.reading = Reading(spool, self.intake, self.store, live, delta, self.fault)
        self._receiver = receiver
        if receiver is not None:
            self.reading.receive(receiver)
        self._measures = live and values.get('system_metrics') is True and values.get('metrics_enabled') is not False
        self._sampler: Sampler | None = None
        self.rollcall = Rollcall(spool, process.hostname(), self.intake.ledger)
        self.sender = _sender(folder.path, self.store.stem, environ) if sending else None
        self.totals = Totals(
            launcher='{}-{}-{}'.format(*self.who),
            run_id=run.run_id,
            trace_id=run.trace_id.hex(),
            folder=folder.path,
            host=self.who[0],
            role=f'rank {environ["RANK"]}' if environ.get('RANK', '').isdigit() else '',
            creator=folder.created,
            started_ns=run.started_wall_ns,
            command=runfile.private_command(list(facts.get('command') or [])),
            settings=runfile.private_settings(dict(facts.get('settings') or {})),
            groups_off=list(facts.get('groups_off') or []),
            named=list(facts.get('named') or []),
            spools=[spool],
            notes=list(facts.get('notes') or []),
        )
        self._notes = list(self.totals.notes)
        self._select: Callable[[str, bool], tuple[list[dict[str, Any]], list[str]]] | None = facts.get('select')
        self._absent: Callable[[str], str] | None = facts.get('absent')
        self._listener: Listener | None = None
        self._pace: Pace | None = None
        self._told_at = 0.0
        self._lock = -1
        self._started = False
        self._done = _thread.allocate_lock()  # held until the thread has ended
        self._stop_at: float | None = None
        self._failures = 0
        self._flushed_at = monotonic()
        self._flush_every = _FLUSH
        self._retry_at = 0.0
        self._retry_after = 1.0
        self._written_at = monotonic() + _FIRST_RUN_FILE - _RUN_FILE
        self._saved = False
        self.no_room = False
        self.whole = self.totals

    def tell(self, listener: Listener, steps: int = 0) -> None:
        """Keep a line up to date that says how the run gets along; before `start`.

        Args:
            listener: Its `text` is set, once a second.
            steps: How many steps there are to be, 0 where nobody said.
        """
        from lens_auto.collect.pace import Pace

        self._listener, self._pace = listener, Pace(steps)

    def start(self) -> None:
        """Begin to collect, in a thread of its own."""
        # Held until the end: a replay sees that somebody is at work.
        self._lock = self._guard('lock', lambda: own(self.spool)) or -1
        self._started = self._done.acquire(False)
        if self._receiver is not None:
            self._guard_once('receiver', self._receiver.start)
        # Nobody has to wait for it: if the disk hangs, the launcher still ends.
        _thread.start_new_thread(self._collect, ())
        if self.sender is not None:
            self.sender.start()

    def finish(self, seconds: float, exit_code: int | None = None, signal: int | None = None) -> Totals:
        """Read what is left, write what waits, close the run folder.

        Args:
            seconds: It returns after this long at the latest; what is left then stays on disk.
            exit_code: The command's exit code.
            signal: The signal that ended it.
        """
        self.totals.exit_code, self.totals.signal = exit_code, signal
        self.totals.ended_ns = time_ns()
        self._stop_at = monotonic() + seconds
        if not self._started:
            self.start()
        self.reading.watch.wake()
        if self._done.acquire(timeout=max(0.0, seconds)):
            self._done.release()
        else:
            self.totals.complete = False
            self.totals.notes.append('the collector did not end in time: what is left can be read with --replay')
        return self.totals

    def drain(self) -> Totals:
        """Read all there is, however long it takes, and close (a replay; in the calling thread)."""
        if self._guard('recover', self.recover) is not False:
            while self._guard('step', self._step) and self._failures < _MOST_FAULTS:
                pass
            self._guard('close', lambda: closing.close(self, monotonic() + 60.0))
        self.reading.watch.close()
        return self.totals

    def _collect(self) -> None:
        try:
            self._work()
        finally:
            self._done.release()

    def _work(self) -> None:
        self._guard('recover', self.recover)
        pause = _FAST
        while self._failures < _MOST_FAULTS:
            busy = self._guard('step', self._step)
            if self._stop_at is not None:
                break
            pause = _FAST if busy else min(_SLOW, pause * 1.5)
            self.reading.watch.sleep(pause)
        if self._guard('close', self._close) is False:
            self._guard('run.json', self.write_run_file)
        if self._lock >= 0:
            os.close(self._lock)

    def _close(self) -> None:
        if self._sampler is not None:
            self._sampler.stop()
        self._guard_once('roll-call', self.rollcall.look)  # while the command's children may still be there
        deadline = self._stop_at or monotonic()
        # Two thirds of the time for reading; the rest is the sender's and the disk's.
        reading = monotonic() + (deadline - monotonic()) * 0.6
        grace = min(reading, monotonic() + _GRACE)
        while monotonic() < reading:
            busy = self._guard('step', self._step)
            waits = monotonic() < self._retry_at and not self.no_room  # for the disk
            if not busy and not waits and (not self.reading.members or monotonic() > grace):
                break
            if not busy:
                self.reading.watch.sleep(0.01)
        self.reading.ending = True
        while self.reading.members and monotonic() < reading and self._guard('step', self._step):
            pass
        if self._receiver is not None:
            self._receiver.close()
        self._guard_once('roll-call', self.rollcall.finish)
        closing.close(self, deadline)

    def _guard(self, where: str, work: Callable[[], Any]) -> Any:
        """The one boundary between what happens in here and the launcher."""
        try:
            result = work()
        except Exception as error:
            self.fault(where, error)
            self._failures += 1
            return False
        self._failures = 0
        return result

    def _guard_once(self, where: str, work: Callable[[], None]) -> None:
        """As `_guard`, for what the rest can do without."""
        try:
            work()
        except Exception as error:
            self.fault(where, error)

    def fault(self, where: str, error: BaseException) -> None:
        """Count a fault of the collector's own.

        Args:
            where: The work it happened in.
            error: What happened; its message is left out.
        """
        trace, place = error.__traceback__, ''
        while trace is not None:
            code = trace.tb_frame.f_code
            place = f'{os.path.basename(code.co_filename)}:{trace.tb_lineno}'
            trace = trace.tb_next
        said = f'{type(error).__name__} in collector {where} ({place})'
        self.faults[said] = self.faults.get(said, 0) + 1

    def _step(self) -> bool:
        """One round: new journals, new records, dead processes; True when there may be more at once."""
        now = monotonic()
        busy = False
        if now >= self._retry_at:
            busy = self.reading.round()
            if self._live and self._stop_at is None:
                self._guard_once('roll-call', self.rollcall.step)
                self._guard_once('system figures', self._measure)
            if self.reading.full or (self.reading.news and monotonic() - self._flushed_at >= self._flush_every):
                self.flush()
        if self._pace is not None and now - self._told_at >= _PACE:
            self._told_at = now
            self._guard_once('progress', self._tell)
        if self._live and now - self._written_at >= _RUN_FILE:
            self._guard_once('open spans', self.reading.tell_open)
            self.write_run_file()
        return busy

    def _tell(self) -> None:
        if self._pace is not None and self._listener is not None:
            self._listener.text = self._pace.line(self.intake.tally.root, self.reading.members.values())

    def _measure(self) -> None:
        settings = self.intake.ledger.settings  # what the program's own config has changed since
        if settings.get('system_metrics') is False or settings.get('metrics_enabled') is False:
            self._measures = False
            if self._sampler is not None:
                self._sampler.stop()
        if not self._measures or self._sampler is not None or not self.reading.members:
            return
        from lens_auto.collect.system.sampler import Sampler  # in a run that records nothing there is none

        self._sampler = Sampler(self.environ.get('CUDA_VISIBLE_DEVICES'))
        self.reading.measure(self._sampler, self.who)
        self._sampler.start()

    def flush(self) -> bool:
        """Write what waits, then the checkpoint, then delete what is no longer needed; False when the disk refuses."""
        begun = monotonic()
        self.reading.hand_over()
        try:
            if not self._saved:
                self.save()  # nothing is written before a checkpoint says that it was not there
            self.store.flush()
            self.save()
        except OSError as error:
            # Disk full, most likely: what waits is kept, and nothing more is read until it could be written.
            self.no_room = isinstance(error, NoRoom)
            if self.no_room:
                self.intake.count('no_room')
            else:
                self.fault('flush', error)
            self._retry_at = monotonic() + self._retry_after
            self._retry_after = min(2 * self._retry_after, _LONGEST_RETRY)
            return False
        self._retry_after = 1.0
        self.no_room = False
        self.reading.news = False
        if self.sender is not None:
            self.sender.wake()
        if self._console is not None:
            printed, self.intake.printed = self.intake.printed, []
            self._console.print(printed)
            self.intake.counts['not_printed'] = self._console.lost
        self._flushed_at = monotonic()
        self._flush_every = max(_FLUSH, _FLUSH_SHARE * (self._flushed_at - begun))
        return True

    def save(self) -> None:
        """Write the checkpoint; then show the chunks it knows of and delete the segments it has read.

        Raises:
            OSError: It cannot be written; nothing was shown or deleted.
        """
        plain = {
            'run': [self.run.run_key, self.run.started_wall_ns],
            'totals': {name: getattr(self.totals, name) for name in _KEPT},
            'notes': self._notes,
            'faults': self.faults,
            'intake': self.intake.dump(),
            'reading': self.reading.dump(),
            'store': self.store.state(),
        }
        checkpoint.save(self.spool, plain)
        self._saved = True
        self.store.commit()
        self.reading.delete_consumed()

    def recover(self) -> None:
        """Go on where an earlier collector of this spool stopped, if there was one."""
        plain = checkpoint.load(self.spool)
        if plain is None:
            try:
                # Also tells a replay what this environment knew of the run, if the launcher is killed at once.
                self.save()
            except OSError as error:
                self.fault('checkpoint', error)
            return
        self._saved = True
        self.intake.load(plain['intake'])
        self.store.recover(plain['store'])
        kept = Totals.from_json(plain['totals'])
        for name in _KEPT:
            setattr(self.totals, name, getattr(kept, name))
        # What a former end had to say (processes still running, nothing sent) need not be true any more.
        self._notes = list(plain['notes'])
        self.totals.notes = list(plain['notes'])
        for said, count in plain['faults'].items():
            self.faults[said] = self.faults.get(said, 0) + count
        self.reading.load(plain['reading'])

    def summary(self, look: Look) -> str:
        """What to print at the end: the run's summary, or a line when other launchers of the run are still at work.

        Args:
            look: How to draw it.
        """
        from lens_auto.collect.summary import render, render_part

        whole = self.whole
        whole.faults = {**self.faults, **whole.faults}  # also those that kept run.json from telling
        return render(whole, look) if self.totals.last else render_part(self.totals)

    def write_run_file(self) -> None:
        """Bring run.json up to date."""
        groups = self.intake.ledger.settings.get('span_groups')
        if groups is not None and self._select is not None:
            every = self.intake.ledger.others is None
            rules, self.totals.groups_off = self._select(str(groups), every)
            self.intake.ledger.know_rules(rules)
        if self.totals.ended_ns and self._absent is not None:
            self.intake.ledger.look_for_modules(self._absent)
        snapshot.fill(self.totals, self.intake, self.reading.members.values(), self.faults)
        if self.store.dropped:
            self.totals.dropped[FULL] = self.store.dropped
        self._written_at = monotonic()
        self.whole = self.totals
        self.whole = runfile.write(self.folder.path, self.totals)
