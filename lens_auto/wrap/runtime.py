# SPDX-License-Identifier: Apache-2.0
"""`_lens_rt`: what the code put around functions calls. There only while the process records.

It hangs on `marshal`, a module of the interpreter itself that is always there: to import a module that is there and
read one attribute of it costs half of going through `sys.modules`, and is quick to fail in a process without us. For
the public API it is in `sys.modules` as well.

Every function here is an entry from user code into ours, so each is a fail-open boundary: an unexpected error disables
the site, is counted and journalled once, and never reaches the caller.
"""

from __future__ import annotations

import marshal
import sys
from _thread import get_ident

from lens_auto.record.foreign import foreign
from lens_auto.record.span import current
from lens_auto.record.standard import ModuleType
from lens_auto.wrap.leaked import CHECKS_AFTER_CALL, leaked
from lens_auto.wrap.reading import reading
from lens_auto.wrap.unseen import unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.span import Span
    from lens_auto.wrap.figures import Figures
    from lens_auto.wrap.place import Places
    from lens_auto.wrap.site import Site

NAME = '_lens_rt'


class Runtime:
    """The sites of this process, by key, and the calls our code makes.

    Attributes:
        sites: Site by key; one that is off or disabled is not in it.
        module: What `sys.modules` holds while the process records. A plain module with plain functions: their look-up
            is cached by the interpreter, where a method of a subclass would cost a bound method a call.
    """

    __slots__ = ('_disable', '_faults', '_places', 'module', 'sites')

    def __init__(self, faults: Faults, disable: Callable[[str], None]):
        """See the class.

        Args:
            faults: The process's fault count.
            disable: Takes a site out of the process, by key.
        """
        self.sites: dict[str, Site] = {}
        self._faults = faults
        self._disable = disable
        self.module = ModuleType(NAME, 'Runtime of lens-auto; see lens_auto.wrap.runtime.')
        self.module.__dict__.update(_around(self.sites, self._failed), **_told(self.sites, self._failed))
        self.module.__dict__.update(_generator(self._failed), **_passing(self._failed))
        self.is_compiling = bool
        self._places: Places | None = None

    @property
    def is_compiling(self) -> Callable[[], bool]:
        """True while torch traces; the builtin `bool` (always false, 12 ns) until torch is imported."""
        return self.module.is_compiling

    @is_compiling.setter
    def is_compiling(self, ask: Callable[[], bool]) -> None:
        self.module.__dict__['is_compiling'] = ask

    @property
    def places(self) -> Places:
        """What rewritten source calls; `install`ed apart. Loaded only where a plan has rules for source."""
        if self._places is None:
            from lens_auto.wrap.place import Places

            self._places = Places(self._failed, _cutter(self._failed), _entry, self.module.__dict__)
        return self._places

    def install(self) -> None:
        """Make the process record."""
        sys.modules[NAME] = self.module
        marshal.__dict__[NAME] = self.module

    def remove(self) -> None:
        """Stop recording in this process; code in place falls through to the original."""
        if sys.modules.get(NAME) is self.module:
            del sys.modules[NAME]
            marshal.__dict__.pop(NAME, None)
        if self._places is not None:
            self._places.remove()

    def _failed(self, where: str, key: str, error: Exception, span: Span | None = None) -> None:
        if span is not None and current.get() is span:
            current.set(span.up)
        if isinstance(error, RecursionError):
            # The program is at its own limit: this call goes unrecorded, the site is not to blame.
            return
        self._faults.take(where, key, error)
        try:
            self._disable(key)
        except Exception as second:
            if foreign(second):
                raise
            # To say that it is off has failed too (the journal is what is broken). Off it is all the same.
            self.sites.pop(key, None)
            self._faults.take('disable', key, second)


def _entry(sites: dict[Any, Any], failed: Callable[..., None], attach: bool) -> Callable[..., Span | None]:
    site_of = sites.get
    cut = _cutter(failed)
    # Rules whose budget is gone, for good: of a call there, only this is asked.
    spent: dict[str, Figures] = {}
    spent_of = spent.get

    def enter(key: str, args: tuple[Any, ...]) -> Span | None:
        try:
            figures = spent_of(key)
            if figures is not None:
                figures.spent += 1
                return None
            site = site_of(key)
            if site is None or (reading and get_ident() in reading):
                return None
            figures = site.figures
            if not figures.left and site.counts_all:
                spent[key] = figures
                figures.spent += 1
                return None
            return site.open(args, attach)
        except Exception as error:
            if foreign(error):
                cut(leaked(sites.get(key), error))
                raise
            failed('enter', key, error)
            return None
        except BaseException as error:  # KeyboardInterrupt is the program's
            cut(leaked(sites.get(key), error))
            raise

    return enter


def _around(sites: dict[str, Site], failed: Callable[..., None]) -> dict[str, Any]:
    """What code around a call or a generator calls.

    `enter`: a call begins; its span becomes current. `begin`: a generator begins; its span is current only while its
    body runs. Both answer None when the call is not recorded. Then `leave` or `fail`.
    """
    cut, hide = _cutter(failed), _hider(failed)

    def leave(span: Span, result: Any) -> None:
        """The call returned."""
        try:
            span.site.leave(span, result)
        except Exception as error:
            if foreign(error):
                cut(span)
                raise
            failed('leave', span.site.key, error, span)
        except BaseException:  # KeyboardInterrupt is the program's; the span has ended all the same
            cut(span)
            raise

    def fail(span: Span) -> None:
        """The call raised; called from the `except` clause."""
        try:
            error = sys.exc_info()[1]
            if error is not None:
                span.site.fail(span, error)
            unseen(sys._getframe(1), STEPS)  # pyright: ignore[reportPrivateUsage]
        except Exception as problem:
            if foreign(problem):
                cut(span)
                raise
            failed('leave', span.site.key, problem, span)
        except BaseException:
            cut(span)
            raise

    def lost(key: str, span: Span | None) -> None:
        """An exception leaves our code; had it got in between two calls to us, the span would be open still."""
        if span is not None:
            cut(span)
        elif CHECKS_AFTER_CALL:
            error = sys.exc_info()[1]
            site = sites.get(key)
            if site is not None and error is not None and not _from_original(error, site):
                cut(leaked(site, error))
        hide(key, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    enter, begin = _entry(sites, failed, True), _entry(sites, failed, False)
    return {'enter': enter, 'begin': begin, 'leave': leave, 'fail': fail, 'lost': lost}


def _hider(failed: Callable[..., None]) -> Callable[[str, FrameType], None]:
    """Takes the frame of our code out of the traceback of an exception that no span ends with."""

    def hide(key: str, frame: FrameType) -> None:
        try:
            unseen(frame)
        except Exception as problem:
            if foreign(problem):
                raise
            failed('leave', key, problem)

    return hide


def _passing(failed: Callable[..., None]) -> dict[str, Any]:
    """What code around a call that no span is for calls when it raises: `unseen`."""
    hide = _hider(failed)

    def unseen_of(key: str) -> None:
        """The call raised."""
        hide(key, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    return {'unseen': unseen_of}


def _cutter(failed: Callable[..., None]) -> Callable[[Span | None], None]:
    """Ends a span whose end was cut short by an exception on its way to the program, which nothing may replace."""

    def cut(span: Span | None) -> None:
        if span is None or span.epoch < 0:
            return
        try:
            span.site.cut(span)
        except Exception as problem:
            if foreign(problem):
                raise
            failed('leave', span.site.key, problem, span)

    return cut


def _from_original(error: BaseException, site: Site) -> bool:
    trace = error.__traceback__
    inner = trace.tb_next if trace is not None else None
    return inner is not None and any(inner.tb_frame.f_code is patch.original for patch in site.patches)


def _told(sites: dict[str, Any], failed: Callable[..., None]) -> dict[str, Any]:
    """What code before or after a call calls."""
    cut = _cutter(failed)

    def before(key: str, args: tuple[Any, ...]) -> None:
        """A call that a site wants to be told of begins."""
        try:
            site = sites.get(key)
            if site is not None and not (reading and get_ident() in reading):
                site.told(args)
        except Exception as error:
            if foreign(error):
                cut(leaked(sites.get(key), error))
                raise
            failed('enter', key, error)
        except BaseException as error:
            cut(leaked(sites.get(key), error))
            raise

    def after(key: str, args: tuple[Any, ...], result: Any) -> None:
        """A call that a site wants to be told of has returned. The key's last letter says which of its functions."""
        try:
            site = sites.get(key)
            if site is None or (reading and get_ident() in reading):
                return
            if key[-1] == 's':
                site.started(args, result)
            elif key[-1] == 'e':
                site.stopped(args, result)
            elif key[-1] == 'l':
                site.lapped(args, result)
            else:
                site.returned(args, result)
        except Exception as error:
            if foreign(error):
                cut(leaked(sites.get(key), error))
                raise
            failed('leave', key, error)
        except BaseException as error:
            cut(leaked(sites.get(key), error))
            raise

    return {'before': before, 'after': after}


def _generator(failed: Callable[..., None]) -> dict[str, Any]:
    """What code around a generator calls besides: `step` and `rest` around each run of its body."""

    def step(span: Span) -> None:
        """A generator's body goes on: what was current inside it at its last yield is so again."""
        try:
            span.outer = current.get()
            current.set(span.inside or span)
        except Exception as error:
            if foreign(error):
                raise  # the code around the generator ends the span
            failed('step', span.site.key, error)

    def rest(span: Span) -> None:
        """A generator has yielded (or ended): the context is its consumer's again."""
        try:
            here = current.get()
            span.inside = None if here is span else here
            current.set(span.outer)
            span.outer = None
        except Exception as error:
            if foreign(error):
                raise
            failed('step', span.site.key, error)

    def steps(span: Span, generator: Any) -> Steps:
        """An iterator over a generator, with the span current while its body runs and never across a yield."""
        return Steps(step, rest, span, generator)

    return {'step': step, 'rest': rest, 'steps': steps}


class Steps:
    """What `yield from` runs for a wrapped generator: send, throw and close, each with the context attached."""

    __slots__ = ('_generator', '_rest', '_span', '_step')

    def __init__(self, step: Callable[[Span], None], rest: Callable[[Span], None], span: Span, generator: Any):
        """See the class.

        Args:
            step: Called before the body runs.
            rest: Called after.
            span: The generator's span.
            generator: The original generator.
        """
        self._step = step
        self._rest = rest
        self._span = span
        self._generator = generator

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> Any:
        self._step(self._span)
        try:
            return next(self._generator)
        finally:
            self._rest(self._span)

    def send(self, value: Any) -> Any:
        """See `generator.send`."""
        self._step(self._span)
        try:
            return self._generator.send(value)
        finally:
            self._rest(self._span)

    def throw(self, kind: Any, value: BaseException | None = None, trace: TracebackType | None = None) -> Any:
        """See `generator.throw`; `yield from` passes one argument or three, depending on the Python version."""
        self._step(self._span)
        try:
            if value is None and trace is None:
                return self._generator.throw(kind)
            return self._generator.throw(kind, value, trace)
        finally:
            self._rest(self._span)

    def close(self) -> None:
        """See `generator.close`."""
        self._step(self._span)
        try:
            self._generator.close()
        finally:
            self._rest(self._span)


# Between our code around a generator and the generator itself.
STEPS = tuple(each.__code__ for each in (Steps.__next__, Steps.send, Steps.throw, Steps.close))
