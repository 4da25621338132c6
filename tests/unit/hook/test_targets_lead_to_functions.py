# SPDX-License-Identifier: Apache-2.0
"""From `module:qualname` to the Python function behind it, whatever wraps it; nothing of the program's is run."""

import contextlib
import functools
import sys
from types import ModuleType
from typing import Any

import pytest

from lens_auto.hook.resolve import Unresolved, resolve


def passes_on(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def dispatches(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return registry[0](*args, **kwargs)

    registry = [function]
    return wrapper


def function(a: int) -> int:
    return a


class Watchful:
    """Complains when it is looked at by any way but its own dict."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f'looked at {name}')


class Kept:
    @property
    def watched(self) -> Any:
        raise AssertionError('ran')

    @passes_on
    def method(self, a: int) -> int:
        return a


@functools.singledispatch
def single(a: Any) -> None: ...


@contextlib.contextmanager
def block(a: int) -> Any:
    yield a


MODULE = ModuleType('module')
vars(MODULE).update(
    function=function,
    passed=passes_on(passes_on(function)),
    dispatched=dispatches(function),
    single=single,
    block=block,
    passed_block=passes_on(block),
    Kept=Kept,
    kept=Kept(),
    partial=functools.partial(functools.partial(function, 1)),
    cached=functools.cache(function),
    watchful=Watchful(),
)


@pytest.mark.parametrize(
    ('name', 'code', 'holds'),
    [
        ('function', function.__code__, False),
        ('passed', function.__code__, False),
        ('partial', function.__code__, False),
        ('cached', function.__code__, False),
        ('dispatched', vars(MODULE)['dispatched'].__code__, False),
        ('single', vars(MODULE)['single'].__code__, False),
        ('block', block.__wrapped__.__code__, True),
        ('passed_block', block.__wrapped__.__code__, True),
        ('Kept.watched', Kept.__dict__['watched'].fget.__code__, False),
        ('kept.watched', Kept.__dict__['watched'].fget.__code__, False),
        ('kept.method', Kept.method.__wrapped__.__code__, False),
    ],
)
def test_the_function_meant(name: str, code: Any, holds: bool) -> None:
    place = resolve(MODULE, name)
    assert (place.functions[0].__code__, place.holds) == (code, holds)


@pytest.mark.parametrize('name', ['absent', 'Kept.absent', 'kept.absent', 'Kept', 'function.absent'])
def test_what_is_not_there_is_unresolved(name: str) -> None:
    with pytest.raises(Unresolved):
        resolve(MODULE, name)


def test_a_module_is_not_asked_for_names_it_would_have_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f'asked for {name}')

    monkeypatch.setitem(sys.modules, 'lazy_one', Lazy('lazy_one'))
    with pytest.raises(Unresolved):
        resolve(sys.modules['lazy_one'], 'model')
    with pytest.raises(Unresolved):
        resolve(MODULE, 'watchful.anything')
