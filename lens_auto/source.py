# SPDX-License-Identifier: Apache-2.0
"""Rules in the source: what `lens-codemod` writes in its style `lens`, one function for each kind of rule.

Keys, expressions and groups mean here what they mean in a rule file, and a span is the same whichever says it. Without
`lens-instrument` a decorator hands the function back as it is, and a block does nothing. Where a rule says the same as
the source, there is one span.
"""

from __future__ import annotations

from sys import _getframe  # pyright: ignore[reportPrivateUsage]

from lens_auto.api import _runtime  # pyright: ignore[reportPrivateUsage]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    Function = TypeVar('Function', bound=Callable[..., Any] | type)

__all__ = ['annotate', 'begin', 'block', 'call', 'end', 'function', 'interval', 'logger', 'metric', 'resource']


def function(name: str, /, **keys: Any) -> Callable[[Function], Function]:
    """A `function` rule for the function below: each call is a span. Coroutines and generators are fine.

    Args:
        name: The span's name; `{...}` holds an expression.
        **keys: `group`, `attributes` (name to expression), `bucket`, `root`, `announce`, `inside_bucket`, `budget`,
            `only_from`, `within`, `outside`, `vars`; and `held=True` below `@contextmanager`.
    """
    return _decorator('function', '', name, keys)


def interval(part: str, name: str, /, **keys: Any) -> Callable[[Function], Function]:
    """An end of an `interval` rule: the function below starts a span, stops it, or does both (`lap`).

    Args:
        part: 'start', 'stop' or 'lap'.
        name: The span's name, and what a start and its stop know each other by.
        **keys: As those of `function`, and `label_arg`, `current`, `stop_at`.
    """
    return _decorator('interval', part, name, keys)


def logger(**keys: Any) -> Callable[[Function], Function]:
    """A `logger` rule for the function below: metric points from the mapping it is given.

    Args:
        **keys: `metrics` (logged key to metric), `group`, `metrics_arg`, `prefix_arg`, `prefixes`.
    """
    return _decorator('logger', '', '', keys)


def metric(*measures: Any, **keys: Any) -> Callable[[Function], Function]:
    """A `metric` rule for the function below: metric points from each call that returns.

    Args:
        *measures: Mappings with `name`, `value` and, if wanted, `instrument`, `unit`, `attributes`.
        **keys: `group`, `only_from`.
    """
    return _decorator('metric', '', '', {**keys, 'metrics': measures})


def annotate(span: str, /, **keys: Any) -> Callable[[Function], Function]:
    """An `annotate` rule for the function below: attributes for the span that is current when it returns.

    Args:
        span: The name of that span, or a pattern.
        **keys: `attributes`, `group`, `only_from`.
    """
    return _decorator('annotate', '', '', {**keys, 'span': span})


def resource(**keys: Any) -> Callable[[Function], Function]:
    """A `resource` rule for the function below: attributes of everything this process records.

    Args:
        **keys: `attributes`, `settings`.
    """
    return _decorator('resource', '', '', keys)


def _decorator(kind: str, part: str, name: str, keys: dict[str, Any]) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        runtime = _runtime()
        if runtime is not None:
            runtime.source.decorate(kind, part, name, keys, function)
        return function

    return decorate


class block:
    """A span around a `with` or `async with` block, or one more item of a `with` statement that is there already.

    What an expression calls `frame` is the function that holds the block.
    """

    __slots__ = ('_keys', '_name', '_opened', '_runtime')

    def __init__(self, name: str, /, **keys: Any):
        """See the class.

        Args:
            name: The span's name; `{...}` holds an expression.
            **keys: `group`, `attributes`, `bucket`, `root`, `announce`, `budget`, `vars`.
        """
        self._name = name
        self._keys = keys
        self._runtime: Any = None
        self._opened: Any = None

    def __enter__(self) -> None:
        runtime = _runtime()
        if runtime is not None and not runtime.is_compiling():
            self._runtime = runtime
            self._opened = runtime.source.open(self._name, self._keys, _getframe(1))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            self._runtime.source.close(self._opened, error)
            self._opened = None

    async def __aenter__(self) -> None:
        runtime = _runtime()
        if runtime is not None and not runtime.is_compiling():
            self._runtime = runtime
            self._opened = runtime.source.open(self._name, self._keys, _getframe(1))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def begin(timer: Any, label: str, name: str, /, **keys: Any) -> None:
    """A span begins that `end` ends, for a timer with a start and a stop.

    Args:
        timer: The timer.
        label: What it times.
        name: The span's name; `{...}` holds an expression.
        **keys: As those of `block`, and `current`.
    """
    runtime = _runtime()
    if runtime is not None and not runtime.is_compiling():
        runtime.source.begin(timer, label, name, keys, _getframe(1))


def end(timer: Any, label: str, /) -> None:
    """The span that `begin` began for this timer and label ends; nothing happens where there is none.

    Args:
        timer: The timer.
        label: What it times.
    """
    runtime = _runtime()
    if runtime is not None and not runtime.is_compiling():
        runtime.source.end(timer, label)


def call(name: str, /, **keys: Any) -> Callable[[Function], Function]:
    """A function to be called once, here and now, with a span around the call: `call('rl.wait')(ray.get)(refs)`.

    Args:
        name: The span's name; `{...}` holds an expression.
        **keys: As those of `block`.
    """
    runtime = _runtime()
    if runtime is None or runtime.is_compiling():
        return _as_it_is
    frame = _getframe(1)

    def around(function: Function) -> Function:
        return runtime.source.call(function, name, keys, frame)

    return around


def _as_it_is(function: Function) -> Function:
    return function
