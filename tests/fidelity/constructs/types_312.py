# SPDX-License-Identifier: Apache-2.0
import inspect


def first[T: (int, str), *Ts, **P](items: list[T], *rest: *Ts) -> T:
    "Doc."
    for item in items:
        with open('/dev/null'):
            return item


class Box[T](list[T], metaclass=type):
    type Pair[U] = tuple[T, U]

    def map[U](self, f: 'U') -> 'Box[U]':
        while True:
            return Box([f(x) for x in self])


type Alias = Box[int]
print(first([3]), first.__type_params__, Box([1, 2]).map(str), Box.__type_params__, Box.Pair.__value__, Alias.__value__)
print(inspect.signature(first), first.__doc__, f'{"nested " + f"{'quotes' + str(len("x"))}"}')


def scope():
    x = 1
    return [x + y for y in range(2)], [lambda: y for y in range(1)][0](), locals()


print(scope())


class C:
    n = 3
    squares = [i for i in range(n)]
    for i in range(2):
        squares = [j + i for j in squares]


print(C.squares)
