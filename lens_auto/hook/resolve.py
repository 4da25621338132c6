# SPDX-License-Identifier: Apache-2.0
"""From a qualified name in a module to the plain Python function behind it, whatever it is wrapped in."""

from __future__ import annotations

import sys

from lens_auto.record.standard import BuiltinFunctionType, CellType, FunctionType, MethodType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

# What Ray puts around every method of an actor class, and around a remote function, whether it traces or not.
_RAY_TRACING = 'ray.util.tracing.tracing_helper'
_OF_RAY = ('_resume_span', '_function_with_tracing')
_PLAIN = frozenset((FunctionType, MethodType, BuiltinFunctionType, type, staticmethod, classmethod, property))
_ANY_ARGUMENTS = 0x4 | 0x8  # CO_VARARGS, CO_VARKEYWORDS


class Unresolved(Exception):
    """There is no such function, or none we can reach; the text says why."""


class Remote(Unresolved):
    """It is an actor class or a remote function of Ray: what runs is a copy of it in a worker, patched there."""


class Place:
    """A function found.

    Attributes:
        functions: The Python functions to patch: one, or enter and exit of a context manager class.
        holds: The function is the generator of a context manager: its span is current in the with block.
        owned_by: The class the rule names, when the function belongs to a base of it; or the class of the callable
            instance the rule names.
        context_class: The target is a class with `__enter__` and `__exit__` (which `functions` then are).
        decorators: Functions around it that pass calls on, as (module, function name): they are not its caller.
    """

    __slots__ = ('context_class', 'decorators', 'functions', 'holds', 'owned_by')

    def __init__(self, function: FunctionType, holds: bool = False, owned_by: type | None = None):
        """See the class.

        Args:
            function: See the class.
            holds: See the class.
            owned_by: See the class.
        """
        self.functions = [function]
        self.holds = holds
        self.owned_by = owned_by
        self.context_class = False
        self.decorators: set[tuple[str, str]] = set()


def resolve(module: ModuleType, qualname: str) -> Place:
    """Find a function by its qualified name.

    Args:
        module: The module, executed.
        qualname: Dotted name inside it: `train`, `Trainer.fit`.

    Raises:
        Unresolved: No such name, or nothing behind it that has Python code.
    """
    holder: Any = module
    owner: type | None = None
    found: Any = module
    for part in qualname.split('.'):
        holder = found
        if _is_remote(holder):
            raise Remote(qualname)
        found, owner = _member(holder, part, qualname)
    if _is_remote(found):
        raise Remote(qualname)
    return _function(found, qualname, owner, holder)


def resolve_in(found: Any, rest: str, qualname: str) -> Place:
    """Find a function in a class or function at hand, as Ray loads them.

    Args:
        found: The class or function.
        rest: Dotted name inside it, '' for itself.
        qualname: Its qualified name in its module.

    Raises:
        Unresolved: No such name, or nothing behind it that has Python code.
    """
    holder: Any = None
    owner: type | None = None
    for part in rest.split('.') if rest else ():
        holder = found
        found, owner = _member(holder, part, qualname)
    return _function(found, qualname, owner, holder)


def _is_remote(found: Any) -> bool:
    """Whether `@ray.remote` made it: the names of its classes say so, no attribute of the object is asked for."""
    kind: type[Any] = type(found)  # pyright: ignore[reportUnknownVariableType]
    if kind in _PLAIN:
        return False
    return any(
        (base.__module__, base.__name__) in (('ray.actor', 'ActorClass'), ('ray.remote_function', 'RemoteFunction'))
        for base in type.mro(kind)
    )


def _member(holder: Any, part: str, qualname: str) -> tuple[Any, type | None]:
    """A member without running descriptors; and the class named, if the member is inherited from a base of it."""
    # type() rather than isinstance, which asks the holder for its class: a lazy module would load itself.
    if issubclass(type(holder), type):
        for base in holder.__mro__:
            if part in base.__dict__:
                return base.__dict__[part], None if base is holder else holder
        raise Unresolved(f'class {holder.__qualname__} has no {part}')
    try:
        namespace: dict[str, Any] = object.__getattribute__(holder, '__dict__')
    except AttributeError:
        namespace = {}
    if part in namespace:
        return namespace[part], None
    if type(holder).__module__ != 'builtins':
        return _member(type(holder), part, qualname)
    raise Unresolved(f'no {part} (of {qualname})')


def _function(target: Any, qualname: str, owner: type | None, holder: Any) -> Place:
    holds = False
    found: Any = target
    decorators: set[tuple[str, str]] = set()
    for _ in range(8):
        kind: type[Any] = type(found)  # pyright: ignore[reportUnknownVariableType]
        if isinstance(found, FunctionType):
            inner = _context_manager(found)
            if inner is not None:
                found, holds = inner, True
                continue
            inner = _passed_on_to(found)
            if inner is None:
                place = Place(found, holds, owner)
                place.decorators = decorators
                return place
            decorators.add((found.__globals__.get('__name__', ''), found.__code__.co_name))
            found = inner
        elif isinstance(found, (staticmethod, classmethod, MethodType)):
            if isinstance(found, staticmethod):
                owner = None  # nothing in its arguments says through which class it was called
            found = getattr(found, '__func__')  # noqa: B009  (typed as Any)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(found, property):
            found = found.fget
        elif isinstance(found, type):
            return _class(found, qualname)
        elif isinstance(found, BuiltinFunctionType) or found is None:
            break
        elif 'func' in getattr(found, '__dict__', {}) or kind.__name__ in ('partial', 'partialmethod'):
            found = found.func  # functools.cached_property, partial, partialmethod
        elif hasattr(found, '__wrapped__'):
            found = found.__wrapped__  # functools.lru_cache: the span is of a computation, a cache hit has none
        elif isinstance(getattr(kind, '__call__', None), FunctionType):  # noqa: B004  (a Python one)
            return _instance(found)
        else:
            break
    raise Unresolved(f'{qualname} is a {type(found).__name__} without Python code')


def _instance(found: Any) -> Place:
    """A callable instance: its class's `__call__`, recorded for that one instance."""
    return Place(type(found).__call__, False, _Only(found))  # type: ignore[arg-type]


class _Only(type):
    """A class whose one instance, to `isinstance`, is a given object."""

    _lens_object: Any

    def __new__(cls, found: Any) -> _Only:
        made = super().__new__(cls, 'Only', (), {})
        made._lens_object = found
        return made

    def __init__(cls, found: Any):
        super().__init__('Only', (), {})

    def __instancecheck__(cls, instance: Any) -> bool:
        return instance is cls._lens_object


def _class(found: type, qualname: str) -> Place:
    enter, leave = found.__dict__.get('__enter__'), found.__dict__.get('__exit__')
    if isinstance(enter, FunctionType) and isinstance(leave, FunctionType):
        place = Place(enter)
        place.functions.append(leave)
        place.context_class = True
        return place
    raise Unresolved(f'{qualname} is a class: name one of its methods, such as {qualname}.__init__')


def _passed_on_to(function: FunctionType) -> FunctionType | None:
    """The function behind a decorator that takes `*args, **kwargs` and passes them on (`@torch.no_grad()`), or None.

    The rule means that one: its parameters have names, and it may be a coroutine where the decorator is none. What a
    decorator does besides (a dispatch, a compiler: torch.compile records nothing inside) must still be the one patched.
    """
    code, inner = function.__code__, function.__dict__.get('__wrapped__')
    if code.co_name in _OF_RAY and function.__globals__.get('__name__') == _RAY_TRACING:
        return inner if isinstance(inner, FunctionType) else None
    if code.co_argcount or code.co_kwonlyargcount or code.co_flags & _ANY_ARGUMENTS != _ANY_ARGUMENTS:
        return None
    if not isinstance(inner, FunctionType):
        return None
    if str(function.__globals__.get('__name__')).startswith('torch._dynamo'):
        return None
    return inner if any(_content(cell) is inner for cell in function.__closure__ or ()) else None


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _context_manager(function: FunctionType) -> FunctionType | None:
    """The generator function behind `@contextmanager` or `@asynccontextmanager`, or None."""
    contextlib: Any = sys.modules.get('contextlib')
    if contextlib is None or function.__code__.co_filename != contextlib.__file__:
        return None
    inner = function.__dict__.get('__wrapped__')
    if function.__code__.co_name == 'helper' and isinstance(inner, FunctionType):
        return inner
    return None
