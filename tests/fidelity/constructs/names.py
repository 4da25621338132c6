# SPDX-License-Identifier: Apache-2.0
"""The module's docstring."""

from __future__ import annotations

import inspect
import sys

__annotations_before__ = 1


def documented(a: int, b: 'str' = 'x', *c, d=2, **e) -> list[undefined]:  # noqa: F821
    """The function's docstring."""
    for local in range(1):
        print(sorted(locals()), local)
    return sorted(locals())


print(documented(1), documented.__doc__, documented.__annotations__, documented.__code__.co_varnames)
print(inspect.getsource(documented), inspect.signature(documented))


class Private:
    __secret = 3
    for __i in range(2):
        pass
    print(sorted(n for n in locals() if not n.startswith('__')))

    def __hidden(self):
        for __x in range(self.__secret):
            with self.__manager() as __m:
                print(sorted(locals()))
        return self.__secret

    def __manager(self):
        import contextlib

        return contextlib.nullcontext(self.__secret)

    def seen(self):
        return self.__hidden()


class Child(Private):
    def seen(self):
        for _ in range(1):
            found = super().seen()
        return found, __class__.__name__

    @property
    def p(self):
        return [super(Child, self).seen() for _ in range(1)]

    @classmethod
    def c(cls):
        with __import__('contextlib').nullcontext():
            return super().__new__(cls).__class__


print(Child().seen(), Child().p, Child.c(), [n for n in dir(Child) if not n.startswith('__')])


def counter():
    n = 0

    def up():
        nonlocal n
        for _ in range(2):
            n += 1
        return n

    return up


print(counter()(), counter().__code__.co_freevars)


def glob():
    global made
    while True:
        made = 5
        break


glob()
print(made)
print([x * y for x in range(3) for y in range(x) if (z := x)], z)
print({k: v for k, v in zip('ab', range(2))}, {x for x in 'aa'}, sum(i for i in range(4)))
print(eval('documented.__name__'), [eval('x') for x in range(2)])
exec('for q in range(2): print(q)')
print(f'{documented.__name__!r:>12} {[f"{i:0{2}d}" for i in range(2)]} {sum([1, 2])=}')
assert documented, 'message'
if __debug__:
    print('debug')
print(dir() == sorted(globals()), [n for n in dir() if 'lens' in n])
print(sys._getframe().f_code.co_name, inspect.currentframe().f_lineno)


def frames():
    return [(f.function, f.lineno) for f in inspect.stack() if f.filename == __file__]


def decorate(arg):
    def inner(f):
        f.arg = arg
        return f

    return inner


@decorate([x for x in range(2)])
def decorated(x=sum([1, 2]), *, y=len('abc')):
    return x + y


print(decorated(), decorated.arg)


class Meta(type):
    def __new__(mcs, name, bases, ns, **kw):
        print(name, kw, [n for n in ns if 'lens' in n])
        return super().__new__(mcs, name, bases, ns)


class Made(*[object], metaclass=Meta, flag=bool(1)):
    x: int = int('4')
    for y in range(x):
        pass


print(Made.x, Made.y)
match_ = {'a': [1, 2]}
match match_:
    case {'a': [int(x), y]} if sum([x, y]) == 3:
        for _ in range(1):
            print('matched', x, y)
    case _:
        print('no')
