# SPDX-License-Identifier: Apache-2.0
"""The recording state of a process: journal, ids, the run's trace, and how spans open and close."""

from __future__ import annotations

import atexit
import os
from time import monotonic_ns

from lens_auto.record import console, process, resource, rollcall
from lens_auto.record.format import ENDED, OPENED, POINT, REPORT, RESOURCE, STATUS_ERROR, STATUS_UNSET
from lens_auto.record.ids import Spans, root_trace
from lens_auto.record.journal import Journal
from lens_auto.record.span import ENDED_ALREADY, Rare, Span, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from lens_auto.record.reader import Record
    from lens_auto.record.span import Attributes, Link

    # A span that is none of ours and encloses one: trace, id (b'' both: it is not the parent), links to add.
    Over = tuple[bytes, bytes, tuple[Link, ...] | None]

    class Beside(Protocol):
        """Knows the program's own spans: `lens_auto.bridge.beside`."""

        def __call__(self, up: Span | None, span: Span | None) -> Over | tuple[()]:
            """Which one is between `up`, our current span, and a new one; an empty tuple for none."""
            ...

        def leave(self) -> None:
            """The current one is no parent from here on."""
            ...


NOBODY = -1  # no object has this id

# A module's name is found faster than an attribute, and these two are asked for at both ends of every span.
_current, _make_current = current.get, current.set


class Recorder:
    """Opens and closes the spans of one process.

    Attributes:
        journal: Where records go.
        run_trace: Trace id of the run.
        run_root: Span id of the run's `lens.run` span.
        epoch: Counts forks between the launcher's child and this process.
        printer: Given every finished span and point as well, when this process prints them itself.
        task: Given every span that starts with nothing current, once it has its id: in a worker of Ray it stores which
            task that is (a TASK record) and marks the span's trace with it.
        beside: Once the program has OpenTelemetry of its own: given our current span and a new one, says which span of
            the program's is between them; an empty tuple for none.
        started: Says under which span this process was started (trace and span id), or None.
        origin: In a worker of Ray: says which task this code runs for, with its attempt, or None.
    """

    __slots__ = (
        '_ids',
        '_next_id',
        '_tell',
        '_tell_at',
        '_tell_every',
        'beside',
        'epoch',
        'journal',
        'origin',
        'printer',
        'run_root',
        'run_trace',
        'started',
        'task',
    )

    def __init__(self, journal: Journal, run_trace: bytes, run_root: bytes):
        """See the class.

        Args:
            journal: The process's journal.
            run_trace: Trace id of the run, 16 bytes; b'' when unknown (each contextless span is then a root).
            run_root: Id of the run's root span, 8 bytes.
        """
        self.journal = journal
        self.run_trace = run_trace
        self.run_root = run_root
        self.epoch = 0
        self.printer: Callable[[Record], None] | None = None
        self.task: Callable[[Span], None] | None = None
        self.started: Callable[[], tuple[bytes, bytes] | None] | None = None
        self.beside: Beside | None = None
        self.origin: Callable[[], tuple[bytes, int] | None] | None = None
        self._tell: Callable[[], None] | None = None
        self._tell_at = 0
        self._tell_every = 0
        self._number()
        os.register_at_fork(before=journal.hold, after_in_parent=journal.go_on, after_in_child=self._forked)

    def _forked(self) -> None:
        self.epoch += 1
        self.journal.forget()
        self._number()

    def _number(self) -> None:
        self._ids = Spans()
        self._next_id = self._ids.next

    def on_close(self, tell: Callable[[], None], every: int) -> None:
        """Have something called now and then, when a span ends: there is no thread here to do it.

        Args:
            tell: What to call.
            every: Nanoseconds between two calls, at least.
        """
        self._tell, self._tell_every = tell, every
        self._tell_at = monotonic_ns() + every

    def open(
        self,
        site: Any,
        name: str,
        key: str,
        attributes: Attributes | None,
        root: bool,
        announce: bool,
        attach: bool,
    ) -> Span:
        """Start a span under the current one. See `open_under`."""
        return self.open_under(_current(), site, name, key, attributes, root, announce, attach)

    def open_under(
        self,
        up: Span | None,
        site: Any,
        name: str,
        key: str,
        attributes: Attributes | None,
        root: bool,
        announce: bool,
        attach: bool,
        subject: int = NOBODY,
        over: Over | tuple[()] | None = None,
    ) -> Span:
        """Start a span; stored at once when it announces, so that a killed process shows what it was in.

        Args:
            up: The current span, or None.
            site: What opened it.
            name: Span name.
            key: Rule key.
            attributes: Plain scalars read so far, or None.
            root: Start a trace of its own, linked to the run's root and to the enclosing span.
            announce: Store an opening record (0.7 us); high-volume rules leave it out.
            attach: Make it current.
            subject: See `Span`.
            over: What `beside` would answer, where the caller knows better.
        """
        span = Span()
        span.epoch = self.epoch  # before its id: if a signal handler forks now, the child shall not end this span
        span.span_id = span_id = self._next_id()
        span.site = site
        span.name = name
        span.up = up
        span.subject = subject
        span.rare = None
        links = None
        if over is None and self.beside is not None:
            over = self.beside(up, span)
        if over and over[0] and not root:
            span.trace_id, span.parent_id = trace_id, parent_id = over[:2]
            span.nest = 1 if up is None else up.nest + 1
        elif up is not None and not root:
            span.trace_id = trace_id = up.trace_id
            span.parent_id = parent_id = up.span_id
            span.nest = up.nest + 1
        elif root:
            span.trace_id = trace_id = root_trace(self.run_trace, span_id)
            span.parent_id = parent_id = b''
            span.nest = 1 if up is None else up.nest + 1
            span.links = links = self._root_links(up, over or ())
        else:
            span.trace_id = self.run_trace or root_trace(b'', span_id)
            span.parent_id = parent_id = self.run_root
            span.nest = 1
            if self.started is not None:
                above = self.started()
                if above is not None:
                    span.trace_id, span.parent_id = above
                    parent_id = span.parent_id
            if self.task is not None:
                self.task(span)
            trace_id = span.trace_id
        if over and over[2]:
            span.links = links = (*(links or ()), *over[2])
        if not attach:
            span.inside = None
        span.start = start = monotonic_ns()
        if announce:
            self.journal.put((OPENED, span_id, trace_id, parent_id, start, name, key, attributes, links))
            span.attributes = None
            if self.printer is not None:
                self._remember(span, attributes)
        else:
            span.attributes = attributes
        if attach:
            _make_current(span)
        return span

    def _remember(self, span: Span, attributes: Attributes | None) -> None:
        if span.rare is None:
            span.rare = Rare()
        span.rare.told = attributes

    def announce(self, span: Span, key: str) -> None:
        """Store the opening record of a span that was opened without one.

        Args:
            span: The span.
            key: Rule key.
        """
        attributes = span.attributes
        self.journal.put(
            (
                OPENED,
                span.span_id,
                span.trace_id,
                span.parent_id,
                span.start,
                span.name,
                key,
                attributes,
                span.links,
            )
        )
        span.attributes = None
        if self.printer is not None:
            self._remember(span, attributes)

    def newest(self, span: Span) -> bool:
        """True when no span of this process was opened after this one.

        Args:
            span: A span.
        """
        return self._ids.last() == span.span_id

    def open_over(
        self,
        over: Over | tuple[()] | None,
        site: Any,
        name: str,
        key: str,
        attributes: Attributes,
        root: bool = False,
    ) -> Span:
        """Start a span that is not current and not announced yet, for a program that may have named its parent.

        Args:
            over: The parent; an empty tuple for a root of the run; None for whatever is current.
            site: What opened it.
            name: Span name.
            key: Rule key.
            attributes: Plain scalars.
            root: See `open`.
        """
        up = _current() if over is None else None
        return self.open_under(up, site, name, key, attributes, root, False, False, NOBODY, over)

    def _root_links(self, up: Span | None, over: Over | tuple[()]) -> tuple[Link, ...]:
        run: Link = (self.run_trace, self.run_root, {'lens.link': 'run'})
        if over and over[0] and not over[2]:
            return (run, (over[0], over[1], {'lens.link': 'enclosing'}))
        if up is None:
            above = None if self.started is None else self.started()
            return (run,) if above is None else (run, (*above, {'lens.link': 'enclosing'}))
        return (run, (up.trace_id, up.span_id, {'lens.link': 'enclosing'}))

    def close(self, span: Span, end: int, key: str, status: int) -> None:
        """Store the end of a span; the context is the caller's business (`detach`).

        Args:
            span: The span.
            end: CLOCK_MONOTONIC nanoseconds.
            key: Rule key.
            status: One of `format.STATUS_*`.
        """
        rare = span.rare
        if rare is not None and rare.shut is not None:
            # The last that was shut first: two rules on one function have their code one inside the other.
            for reopen in reversed(rare.shut):
                reopen()
        if span.epoch != self.epoch:
            return  # opened before a fork, so its end is the parent's to tell; or ended already
        links = events = None
        if rare is not None:
            for inner in rare.pending or ():
                self._orphan(inner, end)
            links = rare.links
            events = None if rare.events is None else tuple(rare.events)
        record = (
            ENDED,
            span.span_id,
            span.trace_id,
            span.parent_id,
            span.start,
            end - span.start,
            span.name,
            key,
            status,
            span.attributes,
            links,
            events,
        )
        self.journal.put(record, span)
        if self.printer is not None:
            told = None if rare is None else rare.told
            self.printer((*record[:9], {**(told or {}), **(span.attributes or {})}, *record[10:]))
        if end > self._tell_at and self._tell is not None:
            self._tell_at = end + self._tell_every
            self._tell()

    def detach(self, span: Span) -> None:
        """Make the span that enclosed `span` current again; silent when another task or context closes it."""
        here = _current()
        if here is span:
            _make_current(span.up)
            return
        # Orphans: spans opened inside it whose end never came (an interval left open by an exception) end with it.
        inner = here
        while inner is not None:
            if inner is span:
                self._end_orphans(here, span)
                _make_current(span.up)
                return
            inner = inner.up

    def _end_orphans(self, inner: Span | None, span: Span) -> None:
        end = monotonic_ns()
        while inner is not None and inner is not span:
            self._orphan(inner, end)
            inner = inner.up

    def _orphan(self, span: Span, end: int) -> None:
        if span.epoch == ENDED_ALREADY:
            return
        if span.rested:
            self.close(span, span.rested, span.site.key, STATUS_UNSET)
            return
        span.attributes = {**(span.attributes or {}), 'lens.orphaned': True}
        self.close(span, end, span.site.key, STATUS_UNSET)

    def here(self) -> tuple[bytes, bytes]:
        """Trace and span id of the innermost span here, one of the program's own included; b'' for none."""
        up = _current()
        if self.beside is not None:
            over = self.beside(up, None)
            if over and over[0]:
                return over[:2]
        return (b'', b'') if up is None else (up.trace_id, up.span_id)

    def point(
        self, site: Any, name: str, instrument: str, unit: str, value: float, attributes: Attributes | None
    ) -> None:
        """Store a metric point.

        Args:
            site: What read it (its `key` is the rule's).
            name: Metric name.
            instrument: 'gauge', 'counter' (value is the increment) or 'histogram' (value is one observation).
            unit: UCUM unit, '' for none.
            value: The number.
            attributes: Its labels, or None.
        """
        trace_id, span_id = self.here()
        record = (POINT, monotonic_ns(), name, instrument, unit, value, attributes, site.key, trace_id, span_id)
        self.journal.put(record)
        if self.printer is not None:
            self.printer(record)

    def points(self, site: Any, measured: list[tuple[str, str, str, float, Attributes | None]]) -> None:
        """Store several metric points of one moment: two thirds of what `point` would take for each.

        Args:
            site: See `point`.
            measured: Name, instrument, unit, value and labels of each, as `point` has them.
        """
        up = _current()
        trace_id, span_id = (b'', b'') if up is None else (up.trace_id, up.span_id)
        at, key, put = monotonic_ns(), site.key, self.journal.put
        for name, instrument, unit, value, attributes in measured:
            record = (POINT, at, name, instrument, unit, value, attributes, key, trace_id, span_id)
            put(record)
            if self.printer is not None:
                self.printer(record)

    def resource(self, attributes: Attributes) -> None:
        """Add attributes to what the collector knows of this process."""
        self.journal.put((RESOURCE, monotonic_ns(), attributes))

    def report(self, what: str, fields: Attributes) -> None:
        """Store a word of the agent about itself (see `format`)."""
        self.journal.put((REPORT, monotonic_ns(), what, fields))


def exception_name(kind: type[BaseException]) -> str:
    """An exception's class, as `exception.type` has it.

    Args:
        kind: The class.
    """
    return (kind.__qualname__ if kind.__module__ == 'builtins' else f'{kind.__module__}.{kind.__qualname__}')[:256]


def exception_event(error: BaseException, at: int) -> tuple[int, str, Attributes]:
    """The event of an exception: its type and where in the program it was raised; never its message.

    Names are those of OpenTelemetry's semantic conventions (`exception.*`, `code.*`).

    Args:
        error: The exception, with its traceback.
        at: CLOCK_MONOTONIC nanoseconds.
    """
    attributes: Attributes = {'exception.type': exception_name(type(error))}
    trace = error.__traceback__
    if trace is not None:
        while trace.tb_next is not None:
            trace = trace.tb_next
        code = trace.tb_frame.f_code
        attributes['code.file.path'] = code.co_filename[-256:]
        attributes['code.line.number'] = trace.tb_lineno or 0
        attributes['code.function.name'] = code.co_name[:256]
    return at, 'exception', attributes


def is_error(error: BaseException) -> bool:
    """False for exceptions that steer control flow rather than report a failure."""
    if isinstance(error, (StopIteration, StopAsyncIteration, GeneratorExit)):
        return False
    if isinstance(error, SystemExit):
        return error.code not in (None, 0)
    # By name: neither asyncio nor ray is imported for this. AsyncioActorExit is how Ray ends an async actor.
    return not any(base.__name__ in ('CancelledError', 'AsyncioActorExit') for base in type(error).__mro__)


def status_of(error: BaseException) -> int:
    """The span status an exception stands for."""
    return STATUS_ERROR if is_error(error) else STATUS_UNSET


def _last_word(journal: Journal, spool: str) -> None:
    try:
        journal.flush()
    except Exception as error:
        try:
            rollcall.note(spool, 'armed', f'fault: flush: {type(error).__qualname__}')
        except OSError:
            journal.dropped += 1  # the spool is gone or full: there is nobody left to tell


def start(environ: dict[str, str]) -> Recorder:
    """The recorder of this process, from the launcher's variables.

    Args:
        environ: `os.environ`.

    Raises:
        KeyError, ValueError: LENS_SPOOL or LENS_RUN_ROOT is missing or malformed.
    """
    trace, _, root = environ['LENS_RUN_ROOT'].partition('-')
    journal = Journal(environ['LENS_SPOOL'], lambda: resource.describe(os.environ))
    journal.flags['pidns'] = process.namespace()
    journal.flags['image'] = monotonic_ns()  # another one after an exec, in a process that is the same
    atexit.register(_last_word, journal, environ['LENS_SPOOL'])
    recorder = Recorder(journal, bytes.fromhex(trace), bytes.fromhex(root))
    if console.prints_here(environ):
        journal.flags['prints'] = True
        names = {'service.name': environ.get('LENS_SERVICE_NAME', ''), 'nemo.run.id': environ.get('LENS_RUN_ID', '')}
        recorder.printer = console.Printer(lambda: {**names, **resource.describe(os.environ)})
    return recorder
