# SPDX-License-Identifier: Apache-2.0
"""The public API: spans, events and metrics a program adds by hand to what the rules record.

A program that uses it runs the same without `lens-instrument`: every call is then one look-up that finds nothing. It
imports nothing but os and sys, so `import lens_auto` costs a program next to nothing either.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    Function = TypeVar('Function', bound=Callable[..., Any])
    Scalar = str | int | float | bool

# Under the launcher the recorder is loaded at the first import of a module that a rule names. A program none of whose
# modules is named loads it with its first call here instead.
_asleep = 'LENS_PLAN_REF' in os.environ


def span(name: str, /, **attributes: Scalar) -> Span:
    """A span around a with block (`with` or `async with`), current inside it.

    Args:
        name: Its name.
        **attributes: Its attributes; other values than str, int, float and bool are left out.
    """
    return Span(name, attributes)


def trace(name: str, /, **attributes: Scalar) -> Callable[[Function], Function]:
    """A decorator: every call of the function is a span.

    Args:
        name: The span's name.
        **attributes: The span's attributes.

    Raises:
        TypeError: The function is a generator; put `span()` inside it, where the context can be left at each yield. Or
            the name was forgotten: `@trace` instead of `@trace('name')`.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("trace() takes the span's name: @trace('name')")

    def decorate(function: Function) -> Function:
        flags = _flags(function)
        if flags & (_GENERATOR | _ASYNC_GENERATOR):
            name_ = getattr(function, '__qualname__', repr(function))
            raise TypeError(f'trace() cannot wrap the generator function {name_}: use span() inside it')

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with span(name, **attributes):
                return await function(*args, **kwargs)

        def called(*args: Any, **kwargs: Any) -> Any:
            with span(name, **attributes):
                return function(*args, **kwargs)

        return _like(function, awaited if flags & _COROUTINE else called)

    return decorate


# As in functools and inspect, which are not imported for it: a module of that name may be the program's own.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200
_CARRIED = ('__module__', '__name__', '__qualname__', '__doc__', '__annotations__', '__type_params__')


def _flags(function: Any) -> int:
    """How a function was compiled, through bound methods and partials."""
    for _ in range(8):
        code = getattr(function, '__code__', None)
        if code is not None:
            return code.co_flags
        function = getattr(function, '__func__', None) or getattr(function, 'func', None)
    return 0


def _like(function: Any, made: Any) -> Any:
    """A wrapper with the name, signature and attributes of what it wraps."""
    for name in _CARRIED:
        try:
            setattr(made, name, getattr(function, name))
        except AttributeError:
            continue
    made.__dict__.update(getattr(function, '__dict__', {}))
    made.__wrapped__ = function
    return made


def event(name: str, /, **attributes: Scalar) -> None:
    """Add an event to the current span; nothing happens where there is none.

    Args:
        name: Its name.
        **attributes: Its attributes.
    """
    runtime = _runtime()
    if runtime is not None:
        runtime.by_hand.event(name, attributes)


def set_attribute(name: str, value: Scalar, /) -> None:
    """Set an attribute of the current span; nothing happens where there is none.

    Args:
        name: Its name.
        value: Its value.
    """
    runtime = _runtime()
    if runtime is not None:
        runtime.by_hand.attribute(name, value)


def metric(name: str, value: float, /, instrument: str = 'gauge', unit: str = '', **attributes: Scalar) -> None:
    """Record a metric point.

    Args:
        name: Metric name.
        value: The value, the increment of a counter, or one observation of a histogram.
        instrument: 'gauge', 'counter' or 'histogram'.
        unit: UCUM unit, '' for none.
        **attributes: Its labels. Keep the number of different values small: each combination is a series of its own.

    Raises:
        ValueError: The instrument is none of these.
    """
    if instrument not in ('gauge', 'counter', 'histogram'):
        raise ValueError(f"instrument is {instrument!r}; it can be 'gauge', 'counter' or 'histogram'")
    runtime = _runtime()
    if runtime is not None:
        runtime.by_hand.point(name, value, instrument, unit, attributes)


class Span:
    """A span that `span()` made; opens when its with block is entered."""

    __slots__ = ('_attributes', '_name', '_opened', '_runtime')

    def __init__(self, name: str, attributes: dict[str, Scalar]):
        """See the class.

        Args:
            name: Its name.
            attributes: Its attributes.
        """
        self._name = name
        self._attributes = attributes
        self._runtime: Any = None
        self._opened: Any = None

    def __enter__(self) -> Span:
        runtime = _runtime()
        if runtime is not None and not runtime.is_compiling():
            self._runtime = runtime
            self._opened = runtime.by_hand.open(self._name, self._attributes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            self._runtime.by_hand.close(self._opened, error)
            self._opened = None

    async def __aenter__(self) -> Span:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def set_attribute(self, name: str, value: Scalar) -> None:
        """Set an attribute of this span, while it is open.

        Args:
            name: Its name.
            value: Its value.
        """
        if self._opened is not None:
            self._runtime.by_hand.attribute(name, value, self._opened)


def _runtime() -> Any:
    runtime = sys.modules.get('_lens_rt')
    if runtime is None and _asleep:
        _wake()
        runtime = sys.modules.get('_lens_rt')
    return runtime


def _wake() -> None:
    global _asleep
    _asleep = False
    # Stage 1's finder, if this process takes part.
    for finder in sys.meta_path:
        wake = getattr(finder, 'wake', None)
        if wake is not None and getattr(finder, 'home', None) == os.path.dirname(os.path.abspath(__file__)):
            wake()
            return
