# SPDX-License-Identifier: Apache-2.0
import contextlib
import gc
import inspect
import sys
import traceback


def numbers(n):
    for i in range(n):
        got = yield i
        if got:
            print('got', got)
        try:
            yield -i
        except KeyError as error:
            print('thrown', error)
        finally:
            print('left', i)
    return 'done'


def outer(n):
    while n:
        result = yield from numbers(2)
        print(result)
        n -= 1
        yield from [7, 8]
        yield
    try:
        yield from numbers(1)
    except ValueError as error:
        print('outer caught', error)
        yield 'after'


print(list(outer(1)))
g = outer(1)
print(next(g), g.send('hello'), g.throw(KeyError('k')), inspect.getgeneratorstate(g))
g.close()
print(inspect.getgeneratorstate(g))
g = outer(0)
print(next(g))
print(g.throw(ValueError('v')))
print(next(g, 'over'))
g = outer(2)
next(g)
del g
gc.collect()
one, two = numbers(3), numbers(3)
print(next(one), next(two), next(one), next(two), next(one))


def plain():
    with contextlib.suppress(ValueError):
        yield from iter([1, 2])
        raise ValueError
    yield from (i for i in range(2))


print(list(plain()))
p = plain()
next(p)
try:
    p.send(3)
except AttributeError as error:
    print(error)
try:
    list(not_iterable for not_iterable in (yield_from() for yield_from in [lambda: 1]))
    (lambda: (yield))
except TypeError as error:
    print(error)


def wrong():
    for _ in range(1):
        yield from 5


try:
    list(wrong())
except TypeError as error:
    print(error)


@contextlib.contextmanager
def held(x):
    for _ in range(1):
        with contextlib.nullcontext(x) as y:
            try:
                yield y
            finally:
                print('released', y)


with held(4) as four:
    print(four)
with contextlib.suppress(OSError), held(5):
    raise OSError


def echo():
    total = 0
    while True:
        total += (yield total) or (yield -total) or 1
        if total > 3:
            return total


e = echo()
print(next(e), e.send(2), e.send(None), e.send(None))


def chain():
    return (yield from echo())


c = chain()
next(c)
try:
    while True:
        c.send(5)
except StopIteration as stop:
    print(stop.value)


def wide(n):
    for i in range(n):
        print([1, (yield i + 1), 3])


def within(n):
    for _ in [
        (1, 2),
    ]:
        yield from wide(n)


for made in (wide, within):
    g = made(2)
    next(g)
    try:
        g.throw(ValueError('thrown in'))
    except ValueError as error:
        if sys.version_info >= (3, 11):  # before, there are no carets, and a frame of ours between two generators
            traceback.print_exc(file=sys.stdout)


def formatted(value):
    return (
        'a %s'
        'b %s'
    ) % (
        value.real,
        repr(value),
    )  # fmt: skip


print(formatted(1))
