# SPDX-License-Identifier: Apache-2.0
"""Store and forward: chunks of the outbox go to the OTLP backend and are deleted once it has acknowledged them.

The run never waits for the backend: while it is down, slow or refuses, chunks stay on disk; what is still there at the
end is left in the run folder, from where a replay sends it. A chunk that a backend took but could not acknowledge in
time is sent twice, with the same ids.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING

from lens_auto.collect import store

if TYPE_CHECKING:
    from lens_auto.collect.otlp_sdk import Exporters

_FIRST_RETRY, _LONGEST_RETRY = 1.0, 60.0
_POLL = 2.0
_LAST_TRY = 0.5
# After this many refusals in a row the next chunk gets its turn: one that a backend will never take must not block it.
_PATIENCE = 5
# How a backend answers that does not know the signal at all.
_NO_SUCH_THING = ('code: 404', 'code: 405', 'code: 501', 'UNIMPLEMENTED')
_ELSEWHERE = (
    '; if it takes traces alone: OTEL_EXPORTER_OTLP_{}_ENDPOINT names another place for {}, '
    '--set {}_enabled=false leaves them out'
)


def is_about_sending(note: str) -> bool:
    """True for a note that `Sender.notes` made: a later attempt makes it out of date.

    Args:
        note: A line of run.json's notes.
    """
    return note.startswith(
        ('sending to ', 'sending traces ', 'sending metrics ', 'sending logs ', 'nothing was sent: ')
    )


class Sender:
    """Sends one launcher's chunks, each signal in a thread of its own: many backends take traces and nothing else.

    Attributes:
        missing: Why there is no SDK to send with, or ''.
    """

    def __init__(self, folder: str, stem: str, environ: Mapping[str, str]) -> None:
        """Prepare; nothing is imported before `start`.

        Args:
            folder: The run folder.
            stem: Whose chunks.
            environ: The launcher's environment.
        """
        self._environ = environ
        self._making = threading.Lock()
        self._exporters: Exporters | None = None
        self._lanes = [_Lane(kind, folder, stem, self._made) for kind in store.ITEMS]
        self.missing = ''

    def start(self) -> None:
        """Begin to send."""
        for lane in self._lanes:
            lane.start()

    def wake(self) -> None:
        """There is a new chunk."""
        for lane in self._lanes:
            lane.wake()

    def drain(self, deadline: float) -> None:
        """Wait until everything is sent, or the time is up; nothing is deleted after that.

        Args:
            deadline: By `monotonic`.
        """
        for lane in self._lanes:
            lane.hurry()
        for lane in self._lanes:
            lane.end(deadline)

    def give_up(self) -> None:
        """Stop what is under way, after `drain`."""
        if self._exporters is not None:
            self._exporters.shutdown()

    def notes(self) -> list[str]:
        """What the user should know, in a line each."""
        if self.missing:
            return [f'nothing was sent: {self.missing}']
        broken = [f'sending {lane.kind} ended: {lane.fault}' for lane in self._lanes if lane.fault]
        left = [lane for lane in self._lanes if not lane.fault and lane.pending()]
        if self._exporters is None or not left:
            return broken
        return broken + failures(self._exporters, {lane.kind: lane.failed for lane in left})

    def _made(self) -> Exporters | None:
        with self._making:
            if self._exporters is None and not self.missing:
                try:
                    # The SDK takes 0.1-0.3 s to import and is needed nowhere else.
                    from lens_auto.collect.otlp_sdk import Exporters

                    self._exporters = Exporters(self._environ)
                except Exception as error:
                    self.missing = reason(error)
            return self._exporters


class _Lane:
    """One signal's chunks, sent one after the other.

    Attributes:
        kind: TRACES, METRICS or LOGS of `store`.
        failed: Whether the last attempt did.
        fault: What went wrong in here, or ''.
    """

    def __init__(self, kind: str, folder: str, stem: str, made: Callable[[], Exporters | None]) -> None:
        self.kind = kind
        self.failed = False
        self.fault = ''
        self._folder = folder
        self._stem = stem
        self._made = made
        self._work = threading.Event()
        self._draining = threading.Event()
        self._stop = threading.Event()
        self._idle = threading.Event()  # once it drains: nobody need wait for it
        self._deciding = threading.Lock()  # whether a chunk is deleted or left
        self._started = False
        self._failures = 0
        self._refused: list[str] = []
        self._wait_until = 0.0

    def start(self) -> None:
        self._started = True
        threading.Thread(target=self._guarded, name=f'lens-otlp-{self.kind}', daemon=True).start()

    def wake(self) -> None:
        self._work.set()

    def hurry(self) -> None:
        """What waits is tried at once, however long the back-off was."""
        self._draining.set()
        self._wait_until = 0.0
        self._work.set()

    def end(self, deadline: float) -> None:
        """Wait until nothing is left or the time is up, and stop."""
        if self.failed:
            # Very likely it is still not there: one attempt, and not much time.
            deadline = min(deadline, monotonic() + _LAST_TRY)
        if self._started:
            self._idle.wait(max(0.0, deadline - monotonic()))
        with self._deciding:
            self._stop.set()
        self._work.set()

    def pending(self) -> list[str]:
        """The chunks that are not sent, oldest first."""
        return [path for path in store.chunks(self._folder, self._stem) if store.kind_of(path) == self.kind]

    def _guarded(self) -> None:
        try:
            exporters = self._made()
            if exporters is not None:
                self._send(exporters)
        except Exception as error:  # the boundary; chunks stay where they are
            self.fault = f'{type(error).__name__} in the sender'
        finally:
            self._idle.set()

    def _send(self, exporters: Exporters) -> None:
        while not self._stop.is_set():
            draining = self._draining.is_set()  # asked before the look: whatever was to be sent then is seen by it
            pending = self._next()
            if pending and monotonic() >= self._wait_until:
                self._try(exporters, pending[0])
                if self.failed and self._draining.is_set():
                    self._idle.set()  # whoever waits for the end need not wait for a backend that is not there
                continue
            if not pending and draining:
                self._idle.set()
            self._work.wait(_POLL if not pending else max(0.05, min(_POLL, self._wait_until - monotonic())))
            self._work.clear()

    def _next(self) -> list[str]:
        pending = self.pending()
        if self.failed or not self._refused:
            return [path for path in pending if path not in self._refused] or pending
        return pending

    def _try(self, exporters: Exporters, path: str) -> None:
        try:
            with open(path, encoding='utf-8') as lines:
                done = all(exporters.send(self.kind, line) for line in lines)
        except FileNotFoundError:
            return
        except Exception as error:
            exporters.note(self.kind, reason(error))
            done = False
        with self._deciding:
            if self._stop.is_set():
                return  # the time is up and the chunk belongs to `leave`
            if done:
                os.unlink(path)
        self.failed = not done
        if done:
            self._failures = 0
            self._refused.clear()
            return
        self._failures += 1
        if self._failures % _PATIENCE == 0:
            self._refused.append(path)
        wait = min(_LONGEST_RETRY, _FIRST_RETRY * 2 ** min(self._failures - 1, 6))
        self._wait_until = monotonic() + wait


def failures(exporters: Exporters, left: Mapping[str, bool]) -> list[str]:
    """What is said of the signals that were not sent, in a line each; in one where all of them go to one place.

    Args:
        exporters: They know where to, and what went wrong.
        left: By signal, whether sending failed; it was not done in time otherwise.
    """
    places = {exporters.endpoint(kind) for kind in left}
    lines: list[str] = []
    for kind, failed in left.items():
        whole = len(left) > 1 and len(places) == 1
        said = exporters.said(kind)
        lines.append(
            f'sending {"" if whole else kind + " "}to {exporters.endpoint(kind)} '
            f'{"failed" if failed else "was not done in time"}{": " + said if said else ""}'
        )
        if whole:
            break
        if failed and kind != store.TRACES and any(answer in said for answer in _NO_SUCH_THING):
            lines[-1] += _ELSEWHERE.format(kind.upper(), kind, kind)
    return lines


def reason(error: BaseException) -> str:
    """Why sending failed, in a line for the user.

    Args:
        error: What was raised.
    """
    if isinstance(error, ImportError):
        return (
            f'the OpenTelemetry SDK or its OTLP exporter is not installed here ({error.name or error}); '
            "pip install 'lens-auto[otlp]', then lens-instrument --replay"
        )
    return f'{type(error).__name__}: {error}'
