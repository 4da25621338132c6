# SPDX-License-Identifier: Apache-2.0
"""A site: one rule at one place of this process, with its readers compiled and its figures counted."""

from __future__ import annotations

from _thread import get_ident
from sys import _getframe, exc_info  # pyright: ignore[reportPrivateUsage]
from time import monotonic_ns

from lens_auto.record.foreign import foreign
from lens_auto.record.format import STATUS_UNSET
from lens_auto.record.recorder import is_error
from lens_auto.record.span import Span, current
from lens_auto.wrap.expression import LONGEST_TEXT, Scope, Unreadable, scalar, text
from lens_auto.wrap.frame import caller
from lens_auto.wrap.glob import matches
from lens_auto.wrap.raised import close_with
from lens_auto.wrap.reading import reading, recursed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.wrap.code import Patch
    from lens_auto.wrap.expression import Reader
    from lens_auto.wrap.figures import Figures
    from lens_auto.wrap.readers import Readers

# Spans nested deeper than this in one context are not recorded: the site's original code is put back until the deepest
# recorded span ends, so that a recursive function keeps its depth (a call through us costs two Python frames).
DEEPEST = 64
# What a value that is not there, or of no kind we read, comes to; anything else is told as a fault as well.
UNREADABLE = (Unreadable, AttributeError, KeyError, IndexError, TypeError)
SMALL = 1 << 29  # an integer below is one digit to the interpreter, and compared in no time
_current, _make_current = current.get, current.set
# Open spans inside which a bucket that comes from a group is another one, by span id; almost always empty.
inside: dict[bytes, str] = {}
# Frames between a site's `open` and the caller of the wrapped function: open, runtime.enter, our code, caller.
CALLER = 3


class Site:
    """One rule at one function; the base of the kinds in this folder.

    Attributes:
        key: The rule's key.
        figures: Its counts, shared by all sites of the rule.
        patches: What was put in place for it.
        counts_all: Every call counts against the budget; False for kinds that look at the call first (a timer's label).
    """

    __slots__ = (
        '_allowed',
        '_announce',
        '_faults',
        '_only_from',
        '_owned_by',
        '_passing',
        '_readers',
        '_recorder',
        '_root',
        '_shut',
        'counts_all',
        'figures',
        'key',
        'patches',
    )

    def __init__(
        self,
        rule: dict[str, Any],
        readers: Readers | None,
        figures: Figures,
        recorder: Recorder,
        faults: Faults,
        passing: frozenset[tuple[str, str]] = frozenset(),
        owned_by: type | None = None,
    ):
        """See the class.

        Args:
            rule: The compiled rule.
            readers: Its name and attributes; None for kinds that have none of their own.
            figures: The rule's counts in this process.
            recorder: The process's recorder.
            faults: The process's fault count.
            passing: (module, function name) of code whose frames only pass the call on.
            owned_by: Record only calls whose first argument is an instance (or subclass) of this class: the function is
                inherited, and the rule names the subclass.
        """
        self.key: str = rule['key']
        self.figures = figures
        self.patches: list[Patch] = []
        self.counts_all = type(self).open is Site.open
        self._recorder = recorder
        self._faults = faults
        self._readers = readers
        self._root: bool = rule['root']
        self._announce: bool = rule['announce']
        self._only_from: tuple[str, ...] | None = rule['only_from']
        self._allowed: dict[str, bool] = {}
        self._passing = passing
        self._owned_by = owned_by
        self._shut = 0

    def absent(self) -> list[str]:
        """What the rule asks for and this function does not have, a line each."""
        return [] if self._readers is None else self._readers.absent

    def open(self, args: tuple[Any, ...], attach: bool) -> Span | None:
        """A span for a call that begins, or None when this call is not recorded.

        The runtime has seen to it that the budget leaves one (see `counts_all`).

        Args:
            args: The call's arguments, in the order of the function's parameters.
            attach: Make the span current.
        """
        figures = self.figures
        figures.calls += 1
        up = _current()
        if up is not None and up.nest >= DEEPEST:
            figures.over += 1
            self._shut_under(up)
            return None
        readers = self._readers
        assert readers is not None
        frame = None
        if self._only_from is not None or readers.frame:
            frame = caller(_getframe(CALLER), self._passing)
            if self._only_from is not None and not self.allows(frame):
                figures.filtered += 1
                return None
        if self._owned_by is not None and not self._owns(args):
            return None
        return self._start(readers, args, frame, None, attach, up, self._root, self._announce)

    def _owns(self, args: tuple[Any, ...]) -> bool:
        owner = self._owned_by
        assert owner is not None
        if not args:
            return False
        first = args[0]
        return issubclass(first, owner) if isinstance(first, type) else isinstance(first, owner)

    def allows(self, frame: FrameType) -> bool:
        """True when the rule's `only_from` names the module of a frame.

        Args:
            frame: The caller's.
        """
        if self._only_from is None:
            return True
        module = frame.f_globals.get('__name__', '')
        allowed = self._allowed.get(module)
        if allowed is None:
            allowed = self._allowed[module] = any(matches(pattern, module) for pattern in self._only_from)
        return allowed

    def _start(
        self,
        readers: Readers,
        args: tuple[Any, ...],
        frame: FrameType | None,
        label: str | None,
        attach: bool,
        up: Span | None,
        root: bool,
        announce: bool,
    ) -> Span | None:
        name = readers.name
        attributes = readers.fixed
        late = None
        plain = readers.plain
        if plain is None or name is None:
            scope = Scope(args, frame, label)
            if name is None:
                name = self._name(readers, scope)
            if readers.early:
                attributes = {} if attributes is None else attributes.copy()
                self.read(readers.early, scope, attributes)
            scope.frame = None
            if readers.late:
                late = (readers.late, scope)
                if not readers.keeps:
                    scope.args = ()
        elif plain:
            attributes = {} if attributes is None else attributes.copy()
            for attribute, index in plain:
                value = args[index]
                kind = type(value)  # pyright: ignore[reportUnknownVariableType]
                # The usual kinds here and now, by the rules of `scalar`: a call costs as much as the three tests.
                if (
                    (kind is int and -SMALL < value < SMALL)
                    or (kind is str and len(value) <= LONGEST_TEXT)
                    or kind is float
                    or kind is bool
                ):
                    attributes[attribute] = value
                else:
                    self._convert(attribute, value, attributes)
        if inside and readers.by_group:
            bucket = _bucket_inside(up)
            if bucket is not None:
                attributes = {**(attributes or {}), 'rl.bucket': bucket}
        subject = id(args[0]) if args else 0
        # The same span seen twice: an override and, through super(), the method it overrides, both named by rules.
        if up is not None and up.subject == subject and up.name == name and up.site is not self:
            return None
        span = self._recorder.open_under(up, self, name, self.key, attributes, root, announce, attach, subject)
        span.late = late
        if self.figures.left > 0:
            self.figures.left -= 1
        return span

    def _convert(self, attribute: str, value: Any, into: dict[str, Any]) -> None:
        if value is None:
            return
        try:
            into[attribute] = scalar(value)
        except RecursionError:
            raise
        except (Unreadable, AttributeError, TypeError) as error:
            if foreign(error):
                raise
            self.figures.unread += 1
        except Exception as error:
            if foreign(error):
                raise
            self.figures.unread += 1
            self._faults.take('attribute', self.key, error)

    def _name(self, readers: Readers, scope: Scope) -> str:
        ident = get_ident()
        nested = ident in reading
        try:
            reading.add(ident)
            return text(readers.name_of(scope))
        except Exception as error:
            if foreign(error):
                raise
            if isinstance(error, RecursionError):
                if not recursed(error):
                    raise
                readers.name = self.key
            self._faults.take('name', self.key, error)
            return self.key
        finally:
            if not nested:
                reading.discard(ident)

    def read(self, readers: list[tuple[str, Reader]], scope: Scope, into: dict[str, Any]) -> None:
        """Read attributes; one that cannot be read is left out and counted.

        Args:
            readers: Attribute names with their readers; one that calls itself without end is taken out.
            scope: What they see.
            into: Where the values go.
        """
        ident = get_ident()
        nested = ident in reading
        endless: list[tuple[str, Reader]] | None = None
        try:
            reading.add(ident)  # inside: a signal handler that raises must not leave it there
            for each in readers:
                attribute, read = each
                try:
                    value = read(scope)
                    if value is not None:  # what the program says is nothing is not there
                        into[attribute] = scalar(value)
                except Exception as error:
                    if foreign(error):
                        raise
                    if isinstance(error, RecursionError):
                        if not recursed(error):
                            raise
                        endless = [*(endless or ()), each]
                    self.figures.unread += 1
                    if not isinstance(error, UNREADABLE):
                        self._faults.take('attribute', self.key, error)
        finally:
            if not nested:
                reading.discard(ident)
        if endless:
            readers[:] = [each for each in readers if each not in endless]

    def leave(self, span: Span, result: Any) -> None:
        """End a span whose call returned.

        Args:
            span: From `open`.
            result: What it returned.
        """
        end = monotonic_ns()
        figures = self.figures
        figures.spans += 1
        figures.nanoseconds += end - span.start
        if _current() is span:
            _make_current(span.up)
        else:
            self._recorder.detach(span)
        if span.late is not None:
            readers, scope = span.late
            span.late = None
            scope.result = result
            span.attributes = dict(span.attributes or {})
            self.read(readers, scope, span.attributes)
        self._recorder.close(span, end, self.key, STATUS_UNSET)

    def fail(self, span: Span, error: BaseException) -> None:
        """End a span whose call raised.

        Args:
            span: From `open`.
            error: What it raised.
        """
        end = monotonic_ns()
        figures = self.figures
        figures.spans += 1
        figures.nanoseconds += end - span.start
        span.late = None
        self._recorder.detach(span)
        if is_error(error):
            figures.errors += 1
        close_with(self._recorder, span, error, end, self.key)

    def cut(self, span: Span) -> None:
        """End a span that an exception on its way to the program has cut short; called from the `except` clause.

        Args:
            span: From `open`.
        """
        span.late = None
        self._recorder.detach(span)
        error = exc_info()[1]
        if error is not None:
            # The call ends with that exception, wherever in our code it came.
            close_with(self._recorder, span, error, monotonic_ns(), self.key)

    def newest(self, span: Span) -> bool:
        """True when no span of this process was opened after this one.

        Args:
            span: A span of this site.
        """
        return self._recorder.newest(span)

    def _shut_under(self, up: Span) -> None:
        if self._shut:
            return
        shut = [patch for patch in self.patches if patch.shut()]
        if not shut:
            return
        self._shut += 1
        if up.shut is None:
            up.shut = []
        up.shut.append(lambda: self._reopen(shut))

    def _reopen(self, shut: list[Patch]) -> None:
        self._shut -= 1
        for patch in shut:
            if not patch.reopen():
                self._faults.take('reopen', self.key, RuntimeError())


def _bucket_inside(up: Span | None) -> str | None:
    while up is not None:
        bucket = inside.get(up.span_id)
        if bucket is not None:
            return bucket
        up = up.up
    return None
