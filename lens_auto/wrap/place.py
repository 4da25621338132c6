# SPDX-License-Identifier: Apache-2.0
"""What rewritten source calls (see `rewrite.build`): spans of loop iterations, blocks, calls and function bodies.

Its names stand among the builtins, where the source looks for them, and only while a plan with such rules is in force.
Every function here is an entry from user code into ours, so each is a fail-open boundary (see `runtime`).
"""

from __future__ import annotations

import builtins
from sys import _getframe  # pyright: ignore[reportPrivateUsage]

from lens_auto.record.foreign import foreign
from lens_auto.record.span import ENDED_ALREADY, current
from lens_auto.rewrite.key import AWAIT, CALL, HELD, PLACE, REST, STEP, STEPS, read
from lens_auto.wrap.delegated import Delegated
from lens_auto.wrap.stand_in import StandIns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lens_auto.record.span import Span
    from lens_auto.rewrite.key import Key
    from lens_auto.wrap.place_site import PlaceSite

_NOTHING: Any = object()


class Places:
    """The places of rewritten source that this process has come to.

    Attributes:
        sites: Their sites, by the constant in the code; None where the rule is off here.
        cut: Ends a span whose end an exception of the program has cut short.
        make: Makes the site of a place, or None; asked at its first use, and again after `forget`.
    """

    __slots__ = ('_failed', '_names', 'cut', 'make', 'sites')

    def __init__(
        self,
        failed: Callable[..., None],
        cut: Callable[[Span | None], None],
        entry: Callable[[dict[Any, Any], Callable[..., None], bool], Callable[..., Span | None]],
        namespace: dict[str, Any],
    ):
        """See the class.

        Args:
            failed: Takes a fault of ours, with where, key, error and perhaps span.
            cut: Ends a span whose end an exception of the program has cut short.
            entry: Makes the function that opens a span by key (`runtime`).
            namespace: Of the runtime's module.
        """
        self.sites: dict[bytes, PlaceSite | None] = {}
        self.make: Callable[[Key], PlaceSite | None] = lambda key: None
        self.cut = cut
        self._failed = failed
        enter = entry(self.sites, self.fault, True)
        stand_ins = StandIns(enter, namespace['leave'], namespace['fail'])
        self._names = {
            PLACE: _place(self, enter, namespace),
            CALL: _call(self, stand_ins.call, namespace),
            AWAIT: _call(self, stand_ins.wait, namespace),
            **_yields(self),
        }

    def install(self) -> None:
        """Make rewritten source record."""
        builtins.__dict__.update(self._names)

    def remove(self) -> None:
        """Let rewritten source run as if it were not."""
        for name, value in self._names.items():
            if builtins.__dict__.get(name) is value:
                del builtins.__dict__[name]

    def forget(self) -> None:
        """Other rules are on from here: sites are made anew."""
        self.sites.clear()

    def know(self, constant: bytes) -> PlaceSite | None:
        """The site of a place, made at its first use.

        Args:
            constant: From the code.
        """
        site = self.sites.get(constant, _NOTHING)
        if site is _NOTHING:
            site = None
            try:
                site = self.make(read(constant))
            except Exception as error:
                if foreign(error):
                    raise
                self.fault('place', constant, error)
            self.sites[constant] = site
        return site

    def held(self, constant: bytes) -> Span | None:
        """The span of a place that this very code is in.

        Args:
            constant: From the code.
        """
        site = self.sites.get(constant)
        span = None if site is None else current.get()
        while span is not None and span.site is not site:
            span = span.up
        return span

    def ended(self, span: Span, error: BaseException) -> None:
        """A place is left by an exception.

        Args:
            span: The place's span.
            error: What left it.
        """
        try:
            span.site.fail(span, error)
        except Exception as problem:
            if foreign(problem):
                self.cut(span)
                raise
            self._failed('leave', span.site.key, problem, span)
        except BaseException:
            self.cut(span)
            raise

    def cut_off(self, constant: bytes, before: Span | None) -> None:
        """An exception of the program came while a place was entered: end the span, if there is one by now.

        Args:
            constant: From the code.
            before: What was current before.
        """
        here = current.get()
        if here is not None and here is not before and here.site is self.sites.get(constant):
            self.cut(here)

    def fault(self, where: str, key: bytes, error: Exception, span: Span | None = None) -> None:
        """Something of ours has failed: the place is left alone from here on.

        Args:
            where: What it was doing.
            key: The constant in the code.
            error: What it raised.
            span: The span concerned.
        """
        if not isinstance(error, RecursionError):
            self.sites[key] = None
        self._failed(where, read(key).rule, error, span)


def _place(places: Places, enter: Callable[..., Span | None], namespace: dict[str, Any]) -> Callable[[bytes], Any]:
    leave: Callable[[Span, Any], None] = namespace['leave']
    sites = places.sites

    class Place:
        """The context manager around one iteration, block or function body."""

        __slots__ = ('_key', '_span')

        def __init__(self, key: bytes):
            self._key = key
            self._span: Span | None = None

        def __enter__(self) -> None:
            key = self._key
            before = current.get()
            try:
                if key not in sites:
                    places.know(key)
                if not namespace['is_compiling']():
                    self._span = enter(key, ())
            except BaseException:
                if self._span is None:
                    places.cut_off(key, before)
                raise

        def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
            span = self._span
            if span is None:
                return
            try:
                span.inside = None
                if error is None:
                    leave(span, None)
                else:
                    places.ended(span, error)
            except BaseException:
                places.cut(span)  # a signal struck between two steps of ours
                raise

    # Not the class itself: a program may go through the classes among the builtins.
    make: Any = type.__call__
    return make.__get__(Place)


def _call(places: Places, stand_in: Callable[..., Any], namespace: dict[str, Any]) -> Callable[[bytes, Any], Any]:
    def call(key: bytes, function: Any) -> Any:
        """What to call in place of a function."""
        try:
            site = places.know(key)
            if site is None or namespace['is_compiling']() or site.passes():
                return function
            return stand_in(key, function, _getframe(1))
        except Exception as error:
            if foreign(error):
                raise
            places.fault('place', key, error)
            return function

    return call


def _yields(places: Places) -> dict[str, Callable[..., Any]]:
    """What a yield inside a place calls: a span is never current while its code is suspended."""

    def held(key: bytes) -> Span | None:
        try:
            return places.held(key)
        except Exception as error:
            if foreign(error):
                raise
            places.fault('step', key, error)
            return None

    def rest(key: bytes, value: Any) -> Any:
        """The code is about to yield: what was current around the place is so again."""
        span = held(key)
        if span is not None:
            here = current.get()
            span.inside = None if here is span else here
            current.set(span.up)
        return value

    def step(span: Span | None, value: Any) -> Any:
        """The code goes on: what was current inside is so again, and what is current now will be afterwards."""
        if span is not None and span.epoch != ENDED_ALREADY:
            span.up = current.get()
            inside, span.inside = span.inside, None
            current.set(inside or span)
        return value

    def steps(key: bytes, iterator: Any) -> Any:
        """The iterator of a `yield from`, each step of which runs inside the place."""
        span = held(key)
        if span is None:
            return iterator
        try:
            inner = iter(iterator)
        except TypeError:
            return iterator  # Python itself takes it (a coroutine, in some functions) or says why not
        return Delegated(lambda: rest(key, None), lambda: step(span, None), inner)

    return {HELD: held, REST: rest, STEP: step, STEPS: steps}
