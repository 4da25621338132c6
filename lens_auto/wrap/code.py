# SPDX-License-Identifier: Apache-2.0
"""Puts our code around a function's own, inside the same function object.

The function keeps its identity, attributes, globals, defaults and closure; only `__code__` changes, to code with the
same parameters, name, file, first line and free variables, which holds the original code as a constant and calls it.
So every alias made before (a registry, `from x import f`, a property, a bound method) is reached, `is` comparisons and
pickles by name stay as they were, and undoing it is one assignment. By value it pickles with all it needs: where the
agent is absent `marshal` has no `_lens_rt` and the original code runs.

The new code opens nothing while torch compiles (`is_compiling`), and gives its own references to the arguments away in
the very call that passes them on, so that a batch the function deletes is freed when it would have been.
"""

from __future__ import annotations

import sys

from lens_auto.record.standard import CodeType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARARGS, VARKEYWORDS, NESTED, GENERATOR = 0x4, 0x8, 0x10, 0x20
COROUTINE, ITERABLE_COROUTINE, ASYNC_GENERATOR = 0x80, 0x100, 0x200
# Flags that say how a function was compiled (nested, `from __future__`, docstring), not how it runs.
_CARRIED = NESTED | ITERABLE_COROUTINE | ~0xFFF

# How a site is told of a call.
AROUND = 'around'  # a span from call to return
HELD = 'held'  # a span over a context manager's generator: current between its enter and exit
BEFORE = 'before'  # told before the call
AFTER = 'after'  # told after the call returned
REPLACE = 'replace'  # what it returns is put in place of the result (`direct` alone)


class Unwrappable(Exception):
    """No code of ours can be put around this function; the text says why."""


class Signature:
    """The parameters of a function, as its code has them.

    Attributes:
        positional: Positional parameters, the positional-only ones first.
        positional_only: How many of them are positional-only.
        keyword: Keyword-only parameters.
        rest: Name of `*args`, or None.
        extra: Name of `**kwargs`, or None.
        names: All of them, in the order in which sites get their values.
    """

    __slots__ = ('extra', 'keyword', 'names', 'positional', 'positional_only', 'rest')

    def __init__(self, code: CodeType):
        """See the class.

        Args:
            code: The function's code.
        """
        count, keywords = code.co_argcount, code.co_kwonlyargcount
        names = code.co_varnames
        self.positional = names[:count]
        self.positional_only = code.co_posonlyargcount
        self.keyword = names[count : count + keywords]
        at = count + keywords
        self.rest = names[at] if code.co_flags & VARARGS else None
        self.extra = names[at + (self.rest is not None)] if code.co_flags & VARKEYWORDS else None
        self.names = self.positional + self.keyword + tuple(n for n in (self.rest, self.extra) if n is not None)

    def parameters(self) -> str:
        """The parameter list, as source; which ones have defaults is the function object's affair, not its code's."""
        parts = list(self.positional)
        if self.positional_only:
            parts.insert(self.positional_only, '/')
        if self.rest is not None:
            parts.append(f'*{self.rest}')
        elif self.keyword:
            parts.append('*')
        parts += self.keyword
        if self.extra is not None:
            parts.append(f'**{self.extra}')
        return ', '.join(parts)

    def call(self, keep: bool) -> str:
        """The call of the original code, as source.

        Args:
            keep: Our frame still needs the arguments afterwards.
        """
        parts = list(self.positional)
        if self.rest is not None:
            parts.append(f'*{self.rest}')
        parts += [f'{name}={name}' for name in self.keyword]
        if self.extra is not None:
            parts.append(f'**{self.extra}')
        simple = self.positional + self.keyword
        if not keep and simple and self.rest is None and self.extra is None:
            # The last argument's expression forgets them all once they are on the stack, whence the callee takes them.
            forget = ', '.join(f'{name} := None' for name in simple)
            name = simple[-1]
            parts[-1] = f'{name}=({name}, {forget})[0]' if self.keyword else f'({name}, {forget})[0]'
        return f'_lens_g({", ".join(parts)})'

    def values(self) -> str:
        """The tuple of argument values, as source."""
        return f'({", ".join(self.names)}{"," if self.names else ""})'


# The import fails while the interpreter shuts down, where a `__del__` may still call us, and may be the program's own
# (`builtins.__import__`, a stand-in for marshal): whatever it does, the function must run as ever. Nothing is called
# inside the `try`, where what a signal handler raises would be lost.
_HEAD = """\
def _lens_outer():
    {bind}
    {define} _lens_w({parameters}):
        def _lens_g(): {free}
        try:
            import marshal as _lens_h
            _lens_h = _lens_h._lens_rt
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            _lens_h = None
"""

_AROUND = """\
        if _lens_h is None or _lens_h.is_compiling():
            return {wait}{call}
        _lens_s = None
        try:
            _lens_s = _lens_h.enter({key!r}, {values})
            if _lens_s is None:
                return {wait}{call}
            try:
                _lens_r = {wait}{call}
            except:
                _lens_h.fail(_lens_s)
                raise
            _lens_h.leave(_lens_s, _lens_r)
            return _lens_r
        except:
            _lens_h.lost({key!r}, _lens_s)
            raise
"""

_GENERATOR = """\
        if _lens_h is None or _lens_h.is_compiling():
            return (yield from {call})
        _lens_s = _lens_h.begin({key!r}, {values})
        if _lens_s is None:
            try:
                return (yield from {call})
            except:
                _lens_h.unseen({key!r})
                raise
        try:
            _lens_r = yield from _lens_h.steps(_lens_s, {call})
        except:
            _lens_h.fail(_lens_s)
            raise
        try:
            _lens_h.leave(_lens_s, _lens_r)
        except:
            _lens_h.lost({key!r}, _lens_s)
            raise
        return _lens_r
"""

# `yield from` has no async form, so the protocol is spelled out; the context is attached per step, never over a yield.
# The event loop must know one generator, ours, or it closes both at its end, each in the other's way: hence no hooks.
_ASYNC_GENERATOR = """\
        _lens_s = None
        if _lens_h is not None and not _lens_h.is_compiling():
            _lens_s = _lens_h.{open}({key!r}, {values})
        _lens_r = {call}
        try:
            import os as _lens_o
            _lens_o = _lens_o.sys
            _lens_o.get_asyncgen_hooks, _lens_o.set_asyncgen_hooks
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            _lens_o = None
        if _lens_o is None:
            _lens_e = _lens_r.asend(None)
        else:
            _lens_v = _lens_o.get_asyncgen_hooks()
            try:
                _lens_o.set_asyncgen_hooks(None, None)
                _lens_e = _lens_r.asend(None)
            finally:
                _lens_o.set_asyncgen_hooks(*_lens_v)
        try:
            while True:
                if _lens_s is not None:
                    _lens_h.step(_lens_s)
                try:
                    _lens_v = await (_lens_e, _lens_e := None)[0]
                finally:
                    if _lens_s is not None:
                        _lens_h.rest(_lens_s)
                try:
                    _lens_v = yield (_lens_v, _lens_v := None)[0]
                except BaseException as _lens_x:
                    _lens_e = _lens_r.athrow(_lens_x.with_traceback(_lens_x.__traceback__.tb_next))
                else:
                    _lens_e = _lens_r.asend((_lens_v, _lens_v := None)[0])
        except StopAsyncIteration:
            pass
        except:
            if _lens_s is not None:
                _lens_h.fail(_lens_s)
            elif _lens_h is not None:
                _lens_h.unseen({key!r})
            raise
        if _lens_s is not None:
            try:
                _lens_h.leave(_lens_s, None)
            except:
                _lens_h.lost({key!r}, _lens_s)
                raise
"""

_BEFORE = """\
        if _lens_h is None or _lens_h.is_compiling():
            return {wait}{call}
        _lens_h.before({key!r}, {values})
        try:
            return {wait}{call}
        except:
            _lens_h.unseen({key!r})
            raise
"""

_AFTER = """\
        if _lens_h is None or _lens_h.is_compiling():
            return {wait}{call}
        try:
            _lens_r = {wait}{kept}
        except:
            _lens_h.unseen({key!r})
            raise
        _lens_h.after({key!r}, {values}, _lens_r)
        return _lens_r
"""


def _template(flags: int, how: str) -> str:
    if how in (BEFORE, AFTER):
        if flags & (GENERATOR | ASYNC_GENERATOR):
            raise Unwrappable(f'a generator cannot be told of {how} its call')
        return _BEFORE if how == BEFORE else _AFTER
    if flags & ASYNC_GENERATOR:
        # Held: the with block of an asynccontextmanager is inside the yield, and the span is current there.
        if how != HELD:
            return _ASYNC_GENERATOR
        return _ASYNC_GENERATOR.replace('_lens_h.step(_lens_s)', 'pass').replace('_lens_h.rest(_lens_s)', 'pass')
    if flags & GENERATOR and how != HELD:
        return _GENERATOR
    return _AROUND


def wrapped(code: CodeType, key: str, how: str) -> CodeType:
    """The code that replaces a function's: same parameters, same free variables, the original inside.

    Args:
        code: The function's code.
        key: What the runtime knows the site by.
        how: AROUND, HELD, BEFORE or AFTER.

    Raises:
        Unwrappable: Its parameters or free variables have names no source can hold.
    """
    flags = code.co_flags
    signature = Signature(code)
    for name in signature.names + code.co_freevars:
        if not name.isidentifier() or name.startswith('_lens_'):
            raise Unwrappable(f'parameter or free variable {name!r}')
    suspends = flags & (COROUTINE | ASYNC_GENERATOR)
    source = (_HEAD + _template(flags, how)).format(
        bind=''.join(f'{name} = ' for name in code.co_freevars) + 'None',
        define='async def' if suspends else 'def',
        parameters=signature.parameters(),
        free='; '.join(code.co_freevars) or 'pass',
        wait='await ' if flags & COROUTINE else '(yield from ' if flags & GENERATOR else '',
        call=signature.call(keep=False) + (')' if flags & GENERATOR and how == HELD else ''),
        kept=signature.call(keep=True),
        values=signature.values(),
        key=key,
        open='enter' if how == HELD else 'begin',
    )
    outer = compile(source, '<lens_auto>', 'exec', dont_inherit=True).co_consts[0]
    ours = _nested(outer, '_lens_w')
    slot = _nested(ours, '_lens_g')
    if slot.co_freevars != code.co_freevars or ours.co_freevars != code.co_freevars:
        raise Unwrappable(f'free variables {code.co_freevars} in an order of their own')
    consts = tuple(code if const is slot else const for const in ours.co_consts)
    return like(ours.replace(co_consts=consts), code)


def like(ours: CodeType, code: CodeType) -> CodeType:
    """Our code under the name, place and flags of the code it stands for.

    Args:
        ours: Our code.
        code: The function's own.
    """
    changes: dict[str, Any] = {
        'co_name': code.co_name,
        'co_filename': code.co_filename,
        'co_firstlineno': code.co_firstlineno,
        'co_linetable': one_line(len(ours.co_code)),
        'co_flags': (ours.co_flags & ~_CARRIED) | (code.co_flags & _CARRIED),
        # Ours first, by their index; `inspect.getclosurevars` reads off this which globals a function uses.
        'co_names': ours.co_names + tuple(name for name in code.co_names if name not in ours.co_names),
    }
    if sys.version_info >= (3, 11):
        changes['co_qualname'] = code.co_qualname
    return ours.replace(**changes)


def _nested(code: CodeType, name: str) -> CodeType:
    for const in code.co_consts:
        if isinstance(const, CodeType) and const.co_name == name:
            return const
    raise Unwrappable(f'no {name} in compiled source')


def one_line(size: int) -> bytes:
    """A line table that puts `size` bytes of code on the first line: where a traceback shows us, it is at the `def`."""
    table = bytearray()
    if sys.version_info >= (3, 11):
        # PEP 626 as of 3.11 (Objects/locations.md): code 13 = line delta only, here 0, for up to 8 code units.
        for start in range(0, size // 2, 8):
            table += bytes((0x80 | 13 << 3 | min(8, size // 2 - start) - 1, 0))
    else:
        # 3.10: pairs of byte delta and line delta.
        for start in range(0, size, 254):
            table += bytes((min(254, size - start), 0))
    return bytes(table)


def _before(code: CodeType, key: str) -> CodeType:
    """A function's code; the original, where an exception of the program left ours in place without its `Patch`."""
    if '_lens_rt' in code.co_names and key in code.co_consts:
        return next(const for const in code.co_consts if isinstance(const, CodeType))
    return code


def bare(function: FunctionType) -> None:
    """Give a function that came by value from a process with us the code it had before: its sites are not here.

    Args:
        function: A function that no `Patch` of this process is at.
    """
    code = function.__code__
    while '_lens_rt' in code.co_names:
        code = next(const for const in code.co_consts if isinstance(const, CodeType))
    if code is not function.__code__:
        function.__code__ = code


class Patch:
    """One function with our code in place.

    Attributes:
        function: The function.
        original: Its own code, or that of a patch put in place earlier.
        ours: The code we put there.
    """

    __slots__ = ('function', 'original', 'ours')

    def __init__(self, function: FunctionType, key: str, how: str):
        """Put our code in place.

        Args:
            function: A plain Python function.
            key: What the runtime knows the site by.
            how: AROUND, HELD, BEFORE or AFTER.

        Raises:
            Unwrappable: It cannot be done; nothing has changed.
        """
        self.function = function
        self.original = _before(function.__code__, key)
        self.ours = wrapped(self.original, key, how)
        function.__code__ = self.ours

    def shut(self) -> bool:
        """Let calls run the original code; False when somebody has changed the function's code since."""
        if self.function.__code__ is not self.ours:
            return False
        self.function.__code__ = self.original
        return True

    def reopen(self) -> bool:
        """Undo `shut`; False when somebody has changed the function's code since."""
        if self.function.__code__ is not self.original:
            return self.function.__code__ is self.ours
        self.function.__code__ = self.ours
        return True
