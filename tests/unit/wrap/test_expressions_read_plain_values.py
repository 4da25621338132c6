# SPDX-License-Identifier: Apache-2.0
"""What expressions of a rule can read, and what they refuse to."""

import enum
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from lens_auto.rules.expression import ExpressionError, parse
from lens_auto.wrap.expression import Scope, Unreadable, number, reader, scalar, text

DEVICE = torch.empty((), device='meta')
REASONS: Any = [(9, ['stop', 'abort', 'length']), (1, ['stop'])]
REFUSED = (Unreadable, AttributeError, KeyError, IndexError, TypeError)


class Color(str, enum.Enum):
    red = 'r'


class Level(enum.IntEnum):
    high = 9


class Mode(enum.Enum):
    on = 1


class OnADevice:
    """A tensor of some other library: any look at its value waits for the device."""

    shape = (2, 3)

    def _wait(self, *_: Any) -> Any:
        raise AssertionError('waited for the device')

    __array__ = __float__ = __int__ = __bool__ = __str__ = __lt__ = __gt__ = __add__ = __radd__ = __round__ = (
        __index__
    ) = _wait
    __eq__ = __hash__ = __iter__ = _wait


class Bare:
    """And one that follows no protocol at all."""

    def _wait(self, *_: Any) -> Any:
        raise AssertionError('waited for the device')

    __float__ = __int__ = __bool__ = __round__ = __index__ = _wait


class Subclass(torch.Tensor):
    """A tensor subclass of the program's own, on a device."""


ARGS = SimpleNamespace(
    n=3,
    f=0.5,
    t='text',
    b=True,
    none=None,
    big=1 << 80,
    huge=1 << 100_000,
    long='x' * 1000,
    items=[1, [2, 3], (4,)],
    words=['secret prompt'],
    conf={'keys': 'mine', 'inner': SimpleNamespace(deep=[10, 20])},
    red=Color.red,
    high=Level.high,
    mode=Mode.on,
    np=numpy.float32(0.25),
    np0=numpy.array(7),
    np1=numpy.array([1, 2, 3]),
    cpu=torch.tensor(2.5, requires_grad=True),
    cpus=torch.tensor([1.0, 2.0, 3.0]),
    one=torch.tensor([4]),
    param=torch.nn.Parameter(torch.tensor(1.5)),
    size=torch.Size([2, 3]),
    dtype=torch.float32,
    dev=DEVICE,
    devs=[DEVICE, DEVICE],
    sub=torch.ones(1).as_subclass(Subclass),
    jax=OnADevice(),
    jaxes=[OnADevice(), OnADevice()],
    bare=Bare(),
    bares=[Bare(), Bare()],
    requests=[SimpleNamespace(outputs=[{'reason': r, 'level': n} for r in reasons]) for n, reasons in REASONS],
    stream=iter([1, 2]),
)

READS: dict[str, Any] = {
    'arg.x.n + 1': 4,
    'arg.x.n * 2 - 1': 5,
    '-arg.x.n': -3,
    'arg.x.n / 2': 1.5,
    'arg.x.n // 2 + arg.x.n % 2': 2,
    'arg.x.n > 2 and arg.x.f < 1': True,
    'not arg.x.none': True,
    'arg.x.none or arg.x.t': 'text',
    'arg.x.t': 'text',
    'arg.x.long': 'x' * 256,
    'arg.x.big': str(1 << 80),
    'arg.x.b': True,
    'arg.x.items[0] + arg.x.items[1][1]': 4,
    'arg.x.conf.keys': 'mine',
    'arg.x.conf.inner.deep[1]': 20,
    'arg.x.conf["keys"]': 'mine',
    'len(arg.x.items)': 3,
    'total(arg.x.items)': 10,
    'count(arg.x.items)': 4,
    'mean(arg.x.items)': 2.5,
    'max(arg.x.n, 7)': 7,
    'min(arg.x.items[1])': 2,
    'round(arg.x.f * 3)': 2,
    'int("12")': 12,
    'float(arg.x.n)': 3.0,
    'str(arg.x.n)': '3',
    'str(arg.x.mode)': 'Mode.on',
    'str(arg.x.dtype)': 'torch.float32',
    'arg.x.red': 'r',
    'str(arg.x.red)': 'r',
    'arg.x.high': 9,
    'arg.x.np': 0.25,
    'arg.x.np0 + 1': 8,
    'total(arg.x.np1)': 6,
    'max(arg.x.np1)': 3,
    'count(arg.x.np1)': 3,
    'arg.x.cpu': 2.5,
    'arg.x.cpu * 2 > 4': True,
    'mean(arg.x.cpus)': 2.0,
    'min(arg.x.cpus)': 1.0,
    'arg.x.one + arg.x.param': 5.5,
    'len(arg.x.cpus)': 3,
    'count(arg.x.size)': 2,
    'arg.x.cpus.shape[0]': 3,
    'arg.x.dev.ndim': 0,
    'arg.x.jax.shape[1]': 3,
    'env.LENS_TEST_RANK': '5',
    'self.n': 3,
    'len(each(arg.x.requests, "outputs"))': 4,
    'count(each(arg.x.requests, "outputs", "reason"), "stop", "length")': 3,
    'len(each(arg.x.requests, "outputs")) - count(each(arg.x.requests, "outputs", "reason"), "stop", "length")': 1,
    'count(each(arg.x.requests, "outputs", "level"), 9)': 3,
    'total(each(arg.x.requests, "outputs", "level"))': 28,
    'version.pytest': pytest.__version__,
    'version.pytest_timeout': metadata.version('pytest-timeout'),
}

REFUSES = [
    *(
        'arg.x.missing',
        'arg.x.conf.items',
        'arg.x.items[9]',
        'arg.x.none.deep',
        'arg.x.items',
        'arg.x.conf',
        'arg.x.none',
    ),
    *('arg.x.mode', 'arg.x.huge', 'arg.x.cpus', 'arg.x.np1', 'str(arg.x.words)', 'str(arg.x.conf)', 'str(arg.x.cpus)'),
    *('total(arg.x.words)', 'arg.x.t + 1', 'len(arg.x.n)', 'env.LENS_TEST_ABSENT', 'version.no_such_package'),
    *('len(each(arg.x.stream, "n"))', 'len(each(arg.x.requests, "missing"))'),
]
ON_A_DEVICE = [
    f.format(name)
    for name in ('dev', 'sub', 'jax', 'bare')
    for f in (
        'arg.x.{}',
        'float(arg.x.{})',
        'int(arg.x.{})',
        'round(arg.x.{})',
        'max(arg.x.{}, 1)',
        'not arg.x.{}',
        'arg.x.{} or 1',
    )
]
ON_A_DEVICE += [
    'arg.x.dev + 1',
    'arg.x.jax + 1',
    'arg.x.jax == 1',
    'str(arg.x.jax)',
    'str(arg.x.dev)',
    'total(arg.x.jax)',
]
ON_A_DEVICE += [f'{f}(arg.x.{name})' for f in ('min', 'max', 'total', 'mean') for name in ('devs', 'jaxes', 'bares')]


def value_of(expression: str) -> Any:
    tree = parse(expression)
    scope = Scope((ARGS,))
    return scalar(reader(tree, ('x',), {})(scope))


@pytest.mark.parametrize('expression', READS)
def test_reads(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('LENS_TEST_RANK', '5')
    found = value_of(expression)
    assert found == READS[expression]
    assert type(found) in (int, float, str, bool)


@pytest.mark.parametrize('expression', REFUSES)
def test_refuses_what_is_no_scalar(expression: str) -> None:
    with pytest.raises(REFUSED):
        value_of(expression)


@pytest.mark.parametrize('expression', ON_A_DEVICE)
def test_never_waits_for_a_device(expression: str) -> None:
    with pytest.raises(REFUSED):
        value_of(expression)


@pytest.mark.parametrize(
    'expression',
    [
        'arg.x.__class__',
        'arg.__dict__',
        'self.__init__',
        'arg.x._private.__x__',
        'open("f")',
        'arg.x.f()',
        'lambda: 1',
        '[i for i in arg.x]',
        'each(arg.x, "__class__")',
        'each(arg.x, arg.y)',
        'each(arg.x, "a.b")',
    ],
)
def test_there_is_no_way_to_write_a_dunder_or_a_call(expression: str) -> None:
    with pytest.raises(ExpressionError):
        parse(expression)


def test_a_metric_value_is_a_number_and_nothing_else() -> None:
    assert [number(v) for v in (1, 2.5, numpy.int64(3), torch.tensor(4.0), Level.high)] == [1, 2.5, 3, 4.0, 9]
    for wrong in (True, '1', None, [1], numpy.bool_(True), DEVICE, torch.ones(2), OnADevice(), Mode.on, 1j):
        with pytest.raises(REFUSED):
            number(wrong)


def test_text_is_bounded_and_takes_no_container() -> None:
    assert (text('a'), text(1), text(None), text(Color.red), len(text('x' * 999))) == ('a', '1', 'None', 'r', 256)
    for wrong in (['a'], {'a': 1}, b'a', DEVICE, torch.ones(2), numpy.ones(2)):
        with pytest.raises(REFUSED):
            text(wrong)
