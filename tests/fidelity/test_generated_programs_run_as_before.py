# SPDX-License-Identifier: Apache-2.0
"""Programs made up by hypothesis, from loops, blocks, calls, generators and jumps: rewritten, they print the same."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.place_recording import Recording
from tests.helpers.rewriting import edited

HEAD = """
import contextlib
steps = 0
def tick(*given, **named):
    global steps
    steps += 1
    if steps > 300: raise SystemExit('enough')
    print(steps, given, named)
    return steps
@contextlib.contextmanager
def block(kind):
    tick('enter')
    try: yield kind
    except kind as error: tick(type(error).__name__)
    finally: tick('exit')
"""
SIMPLE = st.sampled_from(
    [
        "tick('s', x)",
        'x += 1',
        'x = tick(x, k=tick())',
        'x = [y + tick() for y in range(2)][-1]',
        'if x % 3 == 0: x = tick(*[x], **{"m": x})',
        "print(f'{tick(x)!r:>4}', sorted(locals()))",
        'x = (lambda z: tick(z) + x)(x)',
        'if (w := tick()) % 2: del w',
        'pass',
    ]
)
# What leaves: a value between a place's beginning and its end.
JUMPS = {
    'loop': ['break', 'continue'],
    'function': ['return tick()', 'return'],
    'generator': ['yield tick(x)', 'x = (yield x) or 1', 'yield from range(2)', 'yield from part(2)', 'return x'],
}
RAISES = ['raise KeyError(x)', "{}['k']", 'raise ValueError(tick())']


def _indented(lines: list[str]) -> list[str]:
    return [f'    {line}' for line in lines]


@st.composite
def bodies(draw: Any, inside: tuple[str, ...], depth: int) -> list[str]:
    """The lines of a block of statements."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(['simple', 'simple', 'jump', 'for', 'while', 'with', 'try', 'if', 'def']))
        if kind == 'simple' or depth == 0:
            lines.append(draw(SIMPLE))
        elif kind == 'jump':
            choices = [jump for name in inside for jump in JUMPS[name]] + RAISES
            lines.append(f'if x % {draw(st.integers(1, 4))} == 0: {draw(st.sampled_from(choices))}')
        elif kind == 'def':
            # A function of its own, called where it is defined.
            how = draw(st.sampled_from(['function', 'generator']))
            lines += ['def inner(x):', *_indented(draw(bodies((how,), depth - 1)))]
            lines += ['    yield x', 'tick(list(inner(x)))'] if how == 'generator' else ['tick(inner(x))']
        else:
            lines += draw(compound(kind, inside, depth - 1))
    return lines


@st.composite
def compound(draw: Any, kind: str, inside: tuple[str, ...], depth: int) -> list[str]:
    within = tuple(dict.fromkeys((*inside, 'loop'))) if kind in ('for', 'while') else inside
    body = _indented(draw(bodies(within, depth)))
    other = _indented(draw(bodies(inside, depth)))
    if kind == 'for':
        header = draw(st.sampled_from(['for x in range(3):', 'for x, *r in zip(range(2), range(2)):']))
        return [header, *body, *(['else:', *other] if draw(st.booleans()) else [])]
    if kind == 'while':
        return ['while tick() % 3:', *body, *(['else:', *other] if draw(st.booleans()) else [])]
    if kind == 'with':
        error = draw(st.sampled_from(['KeyError', 'ValueError']))
        return [f'with block({error}) as b, contextlib.nullcontext():', *body]
    if kind == 'if':
        return [f'if x % {draw(st.integers(1, 3))}:', *body, 'else:', *other]
    last = draw(st.sampled_from([['finally:', *other], ['else:', *other], []]))
    return ['try:', *body, 'except KeyError as error:', *other, *last]


@st.composite
def programs(draw: Any) -> str:
    part = ['def part(x):', *_indented(draw(bodies(('generator',), 1))), '    yield x']
    main = ['def main(x):', *_indented(draw(bodies(('function',), 3)))]
    gen = ['def gen(x):', *_indented(draw(bodies(('generator',), 3))), '    yield x']
    use = [
        'for f in (main, lambda x: list(gen(x)), lambda x: [*zip(gen(x), gen(x + 1))]):',
        '    try: print(f(2))',
        '    except Exception as error: print(type(error).__name__, error, error.__traceback__.tb_next.tb_lineno)',
        'g = gen(1)',
        'try:',
        '    next(g); g.send(5); g.throw(KeyError(9))',
        'except (Exception, SystemExit) as error: print(type(error).__name__)',
        'g.close()',
    ]
    return HEAD + '\n'.join([*part, *main, *gen, *use]) + '\n'


def printed(code: Any) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(code, {'__name__': 'program'})
        except SystemExit as end:
            print(end)
        except Exception as error:
            print(f'left with {error!r}')
    return out.getvalue()


@pytest.fixture(scope='module')
def recording() -> Iterator[Recording]:
    made = Recording()
    made.runtime.places.remove()
    yield made
    made.runtime.remove()


# A generator that is left behind may raise as it goes, with us and without.
@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(source=programs())
def test_a_program_prints_the_same_with_a_span_at_every_place(recording: Recording, source: str) -> None:
    plain = printed(compile(source, 'program.py', 'exec'))
    rewritten = edited(source.encode(), 'program.py').code

    assert printed(rewritten) == plain
    recording.journal.records.clear()
    recording.runtime.places.install()
    try:
        assert printed(rewritten) == plain
    finally:
        recording.runtime.places.remove()
    begun, ended = recording.spans()
    assert begun == ended > 0
    assert recording.faults == []
