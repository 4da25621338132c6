# SPDX-License-Identifier: Apache-2.0
"""One function of each kind a rule can name. Copied into the program under test, where rules name all of `TARGETS`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import types
from collections.abc import AsyncIterator, Iterator
from typing import Any

REGISTRY: dict[str, Any] = {}


def register(function: Any) -> Any:
    REGISTRY[function.__name__] = function
    return function


@register
def function(a: int, b: str = 'b') -> str:
    """Documented."""
    return f'{a}{b}'


def many(a: int, /, b: int = 2, *rest: int, c: int, d: int = 4, **extra: int) -> tuple[Any, ...]:
    """All kinds of parameters."""
    return a, b, rest, c, d, extra


def keywords(*, first: int, second: int = 2) -> int:
    return first - second


def none() -> None:
    return None


def generator(n: int) -> Iterator[int]:
    """Yields."""
    for i in range(n):  # noqa: UP028
        yield i


async def coroutine(n: int) -> int:
    """Awaits."""
    return n + 1


async def async_generator(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i


@types.coroutine
def old_coroutine(n: int):
    yield from ()
    return n


@contextlib.contextmanager
def manager(n: int) -> Iterator[int]:
    """A with block."""
    yield n


@contextlib.asynccontextmanager
async def async_manager(n: int) -> AsyncIterator[int]:
    yield n


class ManagerClass:
    def __init__(self, n: int = 0) -> None:
        self.n = n

    def __enter__(self) -> ManagerClass:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


class Base:
    """Has methods of all kinds."""

    def __init__(self, n: int = 1) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Base) and self.n == other.n

    def __hash__(self) -> int:
        return hash(self.n)

    def method(self, k: int = 1) -> int:
        """A method."""
        return self.n + k

    @classmethod
    def of_class(cls, k: int) -> str:
        return f'{cls.__name__}{k}'

    @staticmethod
    def static(k: int) -> int:
        return k

    @property
    def prop(self) -> int:
        """A property."""
        return self.n

    @functools.cached_property
    def cached(self) -> int:
        return self.n

    def inherited(self, k: int) -> int:
        return k

    def overridden(self) -> str:
        return 'base'

    async def async_method(self, k: int) -> int:
        return self.n + k

    def generates(self) -> Iterator[int]:
        yield self.n


class Child(Base):
    def overridden(self) -> str:
        return 'child of ' + super().overridden()


class Callable:
    def __call__(self, k: int) -> int:
        return k * 2


instance = Callable()


@dataclasses.dataclass
class Data:
    n: int = 3

    def method(self, k: int = 1) -> int:
        return self.n * k


def partially(a: int, b: int) -> int:
    return a - b


partial = functools.partial(partially, 1)


@functools.lru_cache
def lru(n: int) -> int:
    return n + 1


def decorate(f: Any) -> Any:
    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    return wrapper


@decorate
def decorated(a: int, b: int = 2) -> int:
    """Behind functools.wraps."""
    return a + b


anonymous = lambda n: n + 1  # noqa: E731


def make(step: int) -> Any:
    total = 0

    def counted(n: int) -> int:
        nonlocal total
        total += step * n
        return total

    return counted


nested = make(2)

ALIASES = {'function': function, 'method': Base.method, 'static': Base.static, 'nested': nested, 'lambda': anonymous}

# Kind: how the program reaches it, and the name a rule gives it.
TARGETS = {
    'function': ('g.function', 'function'),
    'all kinds of parameters': ('g.many', 'many'),
    'keyword-only': ('g.keywords', 'keywords'),
    'no parameters': ('g.none', 'none'),
    'method': ('g.Base.method', 'Base.method'),
    'classmethod': ('g.Base.__dict__["of_class"].__func__', 'Base.of_class'),
    'staticmethod': ('g.Base.static', 'Base.static'),
    'property': ('g.Base.prop.fget', 'Base.prop'),
    'cached_property': ('g.Base.__dict__["cached"].func', 'Base.cached'),
    'inherited, named on the subclass': ('g.Child.inherited', 'Child.inherited'),
    'override that calls super': ('g.Child.overridden', 'Child.overridden'),
    'coroutine': ('g.coroutine', 'coroutine'),
    'async method': ('g.Base.async_method', 'Base.async_method'),
    'generator': ('g.generator', 'generator'),
    'generator method': ('g.Base.generates', 'Base.generates'),
    'async generator': ('g.async_generator', 'async_generator'),
    'types.coroutine': ('g.old_coroutine', 'old_coroutine'),
    'contextmanager': ('g.manager', 'manager'),
    'asynccontextmanager': ('g.async_manager', 'async_manager'),
    'context manager class': ('g.ManagerClass.__enter__', 'ManagerClass'),
    'callable instance': ('g.instance', 'instance'),
    'partial': ('g.partial', 'partial'),
    'lru_cache': ('g.lru', 'lru'),
    'lambda': ('g.anonymous', 'anonymous'),
    'decorated with wraps': ('g.decorated', 'decorated'),
    'dataclass method': ('g.Data.method', 'Data.method'),
    'closure with free variables': ('g.nested', 'nested'),
}
