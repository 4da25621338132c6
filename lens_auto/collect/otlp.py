# SPDX-License-Identifier: Apache-2.0
"""Store and forward: chunks of the outbox go to the OTLP backend and are deleted once it has acknowledged them.

The run never waits for the backend: while it is down, slow or refuses, chunks stay on disk; what is still there at the
end is left in the run folder, from where a replay sends it. A chunk that a backend took but could not acknowledge in
time is sent twice, with the same ids.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
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


def is_about_sending(note: str) -> bool:
    """True for a note that `Sender.notes` made: a later attempt makes it out of date.

    Args:
        note: A line of run.json's notes.
    """
    return note.startswith(('sending to ', 'nothing was sent: '))


class Sender:
    """Sends one launcher's chunks, in a thread of its own.

    Attributes:
        missing: Why there is no SDK to send with, or ''.
        sent: spans and points the backend acknowledged.
    """

    def __init__(self, folder: str, stem: str, environ: Mapping[str, str]) -> None:
        """Prepare; nothing is imported before `start`.

        Args:
            folder: The run folder.
            stem: Whose chunks.
            environ: The launcher's environment.
        """
        self._folder = folder
        self._stem = stem
        self._environ = environ
        self._work = threading.Event()
        self._stop = threading.Event()
        self._idle = threading.Event()
        self._deciding = threading.Lock()  # whether a chunk is deleted or left
        self._thread: threading.Thread | None = None
        self._exporters: Exporters | None = None
        self._failed = 0
        self._refused: list[str] = []
        self._wait_until = 0.0
        self.missing = ''
        self.sent: dict[str, int] = {}

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._guarded, name='lens-otlp', daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is a new chunk."""
        self._work.set()

    def drain(self, deadline: float) -> None:
        """Wait until everything is sent, or the time is up; nothing is deleted after that.

        Args:
            deadline: By `monotonic`.
        """
        if self._thread is None or self.missing:
            return
        if self._failed:
            # Very likely it is still not there: one attempt at once, however long the back-off was, and not much time.
            deadline = min(deadline, monotonic() + _LAST_TRY)
        self._wait_until = 0.0
        self._idle.clear()
        self._work.set()
        self._idle.wait(max(0.0, deadline - monotonic()))
        with self._deciding:
            self._stop.set()
        self._work.set()

    def give_up(self) -> None:
        """Stop what is under way, after `drain`."""
        if self._exporters is not None:
            self._exporters.shutdown()

    def notes(self) -> list[str]:
        """What the user should know, in a line each."""
        if self.missing:
            return [f'nothing was sent: {self.missing}']
        if self._exporters is None or not store.chunks(self._folder, self._stem):
            return []
        said = self._exporters.said()
        how = 'failed' if self._failed else 'was not done in time'
        return [f'sending to {self._exporters.endpoint} {how}{": " + said if said else ""}']

    def _guarded(self) -> None:
        try:
            self._send()
        except Exception as error:  # the boundary; chunks stay where they are
            self.missing = f'{type(error).__name__} in the sender'
            self._idle.set()

    def _send(self) -> None:
        try:
            # The SDK takes 0.1-0.3 s to import and is needed nowhere else.
            from lens_auto.collect.otlp_sdk import Exporters

            self._exporters = Exporters(self._environ)
        except Exception as error:
            self.missing = reason(error)
            self._idle.set()
            return
        while not self._stop.is_set():
            pending = self._pending()
            if pending and monotonic() >= self._wait_until:
                self._try(pending[0])
                if self._failed:
                    self._idle.set()  # whoever waits for the end need not wait for a backend that is not there
                continue
            if not pending:
                self._idle.set()
            self._work.wait(_POLL if not pending else max(0.05, min(_POLL, self._wait_until - monotonic())))
            self._work.clear()

    def _pending(self) -> list[str]:
        pending = store.chunks(self._folder, self._stem)
        if self._failed or not self._refused:
            return [path for path in pending if path not in self._refused] or pending
        return pending

    def _try(self, path: str) -> None:
        exporters = self._exporters
        assert exporters is not None
        kind = store.kind_of(path)
        try:
            with open(path, encoding='utf-8') as lines:
                done = all(exporters.send(kind, line) for line in lines)
        except FileNotFoundError:
            return
        except Exception as error:
            exporters.note(reason(error))
            done = False
        with self._deciding:
            if self._stop.is_set():
                return  # the time is up and the chunk belongs to `leave`
            if done:
                os.unlink(path)
        if done:
            name = 'spans' if kind == store.TRACES else 'points'
            self.sent[name] = self.sent.get(name, 0) + store.items_of(path)
            self._failed = 0
            self._refused.clear()
            return
        self._failed += 1
        if self._failed % _PATIENCE == 0:
            self._refused.append(path)
        wait = min(_LONGEST_RETRY, _FIRST_RETRY * 2 ** min(self._failed - 1, 6))
        self._wait_until = monotonic() + wait


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
