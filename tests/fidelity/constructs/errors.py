# SPDX-License-Identifier: Apache-2.0
import logging
import sys
import traceback
import warnings
from collections import namedtuple
from contextlib import suppress
from enum import Enum


def fails(n):
    for i in range(n):
        with suppress(KeyError):
            if i == 1:
                raise ValueError(
                    'one'
                )
            {}['x']
    return (
        [1]
        .pop(0)
        .bit_length(
            n, 2
        )
    )


def calls(x):
    while x:
        try:
            return fails(x) + fails(0) + len(x)
        except TypeError as error:
            raise RuntimeError('wrapped') from error
        finally:
            x = 0


for n in (2, 1, 0):
    try:
        calls(n) or fails(n)
    except Exception:
        traceback.print_exc(file=sys.stdout)


class Boom:
    def __getattr__(self, name):
        raise AttributeError(name)

    def __call__(self, *a):
        raise OSError(*a)


def attribute():
    return Boom().nothing(1)


def chained():
    return (
        Boom()(
            1,
        )
    )


def built():
    value = {
        'a': [
            1,
            2,
            3,
        ],
        'b': len(
            'x'
        ),
    }
    return [
        value
        for _ in range(2)
        if value
    ]


for _ in range(1):
    print(
        built()
    )
for _ in range(1):
    names = [
        'a',
        'b',
        'c',
    ]


def deep(n):
    with suppress(KeyError):
        return deep(n - 1) if n else 1 / n


for f in (attribute, chained, lambda: deep(2), lambda: f(*[1], **{'a': 2}), lambda: int('x', base=10)):
    try:
        f()
    except Exception:
        traceback.print_exc(file=sys.stdout)


def stack():
    return [(f.name, f.lineno) for f in traceback.extract_stack() if f.filename == __file__]


def warned():
    for _ in range(1):
        warnings.warn('old', stacklevel=2)


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    warned()
print([(w.filename == __file__, w.lineno) for w in caught])
handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(logging.Formatter('%(filename)s %(funcName)s %(lineno)d %(message)s'))
log = logging.getLogger('constructs')
log.addHandler(handler)
log.propagate = False


def logs():
    for i in range(1):
        log.warning('at %d', i)


logs()
Point = namedtuple('Point', 'x y')
Color = Enum('Color', 'RED')
print(Point.__module__, Color.__module__)


try:
    for i in range(3):
        next(iter([]))
except StopIteration as stop:
    print(repr(stop))
try:
    with open('/nonexistent/file') as f:
        pass
except OSError as error:
    print(error.errno, error.__context__)
try:
    try:
        for i in range(2):
            1 / i
    except ZeroDivisionError:
        for j in range(1):
            raise
except ZeroDivisionError:
    print(sys.exc_info()[2].tb_lineno)
print(sys.exc_info())
