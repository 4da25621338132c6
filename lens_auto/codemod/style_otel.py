# SPDX-License-Identifier: Apache-2.0
"""The style `otel`: plain OpenTelemetry API. Spans only; attributes are Python, guarded where they may fail."""

from __future__ import annotations

from collections.abc import Callable

from lens_auto.codemod.piece import Listed, Piece, Said
from lens_auto.codemod.plain import fixed_name, plain_function, said_elsewhere, statements_between, values
from lens_auto.codemod.wish import DECORATED, Refused, Wish

SPAN = '_lens_tracer.start_as_current_span'
# The same where code travels by value: neither a tracer of an SDK nor what it decorates with can be pickled.
SENT, SENT_FUNCTION = '_lens_span', '_lens_spans'
READ, SET, ROOT = '_lens_read', '_lens_set', '_lens_root'


def write(wish: Wish, note: Callable[[str], None]) -> list[Piece]:
    """What this style puts at a place.

    Args:
        wish: The place and what a rule wants there.
        note: Told what is left out.

    Raises:
        Refused: It cannot.
    """
    if wish.kind == 'end':
        return []  # the block around what is timed ends there
    if wish.kind == 'begin':
        statements_between(wish)
    elif wish.kind not in ('function', 'block', 'loop', 'call'):
        raise Refused(f'style otel has no words for {wish.kind} rules: style lens has')
    arguments: list[str | Listed] = [fixed_name(wish)]
    if wish.kind == 'function':
        plain_function(wish, whole=True)
    said_elsewhere(wish, note, root=True)
    if wish.kind == 'block' and getattr(wish.node, 'asynchronous', None) is not None:
        raise Refused('this is an `async with`, and a span of the OpenTelemetry API is for a plain one')
    if wish.span['root']:
        arguments.append(f'context={ROOT}()')
    fixed = {'lens.group': wish.span['group'], 'rl.bucket': wish.span['bucket']}
    entries = [f'{name!r}: {value!r}' for name, value in fixed.items() if value is not None]
    read = values(wish, note)
    if wish.kind in DECORATED:
        entries += [f'{name!r}: {value.text}' for name, value in read.items() if _is_constant(value.text)]
        late = [f'{name!r}: {value.guarded}' for name, value in read.items() if not _is_constant(value.text)]
        name = SENT_FUNCTION if wish.travels else SPAN
        pieces = [Piece('decorator', Said(name, (*arguments, *_attributes(entries))))]
        return [*pieces, *([Piece('first', Said(SET, (Listed('', tuple(late)),)))] if late else [])]
    guarded = any(not value.safe for value in read.values())
    entries += [f'{name!r}: {value.guarded}' for name, value in read.items()]
    how = {'block': 'item', 'loop': 'loop', 'call': 'call', 'begin': 'between'}[wish.kind]
    attributes = [Listed(f'attributes={READ}(', tuple(entries), ')')] if guarded else _attributes(entries)
    return [Piece(how, Said(SENT if wish.travels else SPAN, (*arguments, *attributes)))]


def _attributes(entries: list[str]) -> list[str | Listed]:
    return [Listed('attributes=', tuple(entries))] if entries else []


def _is_constant(text: str) -> bool:
    return text[0] in '\'"-0123456789' or text in ('True', 'False', 'None')


def imports(uses: set[str]) -> list[str]:
    """The lines that bring in the names used.

    Args:
        uses: The names.
    """
    tracer = '_lens_tracer' in uses
    lines = ['try:']
    if SENT_FUNCTION in uses:
        lines += [
            '    from functools import wraps as _lens_wraps',
            '    from inspect import iscoroutinefunction as _lens_waits',
            '',
        ]
    if ROOT in uses:
        lines.append(f'    from opentelemetry.context import Context as {ROOT}')
    if uses & {READ, SET}:
        lines.append('    from opentelemetry.trace import get_current_span as _lens_current')
    lines.append('    from opentelemetry.trace import get_tracer as _lens_get_tracer')
    if tracer:
        lines += ['', '    _lens_tracer = _lens_get_tracer(__name__)']
    if uses & {SENT, SENT_FUNCTION}:
        lines += _SENT_HERE
    if SENT_FUNCTION in uses:
        lines += _SENT_FUNCTION_HERE
    lines.append('except ImportError:')
    absent: list[list[str]] = []
    if ROOT in uses:
        absent.append([f'    {ROOT} = dict'])
    if uses & {READ, SET}:
        absent.append(['    def _lens_current():', '        return None'])
    if tracer:
        absent.append(['    class _lens_tracer:', *_nothing('        class start_as_current_span:')])
    if SENT in uses:
        absent.append(_nothing(f'    class {SENT}:'))
    if SENT_FUNCTION in uses:
        absent.append([f'    def {SENT_FUNCTION}(*_, **__):', '        return lambda function: function'])
    for number, part in enumerate(absent):
        lines += ['', *part] if number else part
    return [*lines, *guarded(uses, '_lens_current()', '')]


_SENT_HERE = [
    '',
    f'    def {SENT}(*given, **more):',
    '        return _lens_get_tracer(__name__).start_as_current_span(*given, **more)',
]
_SENT_FUNCTION_HERE = [
    '',
    f'    def {SENT_FUNCTION}(*given, **more):',
    '        def decorate(function):',
    '            @_lens_wraps(function)',
    '            def call(*args, **kwargs):',
    f'                with {SENT}(*given, **more):',
    '                    return function(*args, **kwargs)',
    '',
    '            @_lens_wraps(function)',
    '            async def wait(*args, **kwargs):',
    f'                with {SENT}(*given, **more):',
    '                    return await function(*args, **kwargs)',
    '',
    '            return wait if _lens_waits(function) else call',
    '',
    '        return decorate',
]


def _nothing(head: str) -> list[str]:
    """A class that is a decorator and a context manager, and does nothing."""
    inner = ' ' * (len(head) - len(head.lstrip()) + 4)
    return [
        head,
        f'{inner}def __init__(self, *_, **__):',
        f'{inner}    pass',
        '',
        f'{inner}def __call__(self, function):',
        f'{inner}    return function',
        '',
        f'{inner}def __enter__(self):',
        f'{inner}    pass',
        '',
        f'{inner}def __exit__(self, *_):',
        f'{inner}    pass',
    ]


def guarded(uses: set[str], current: str, given: str) -> list[str]:
    """The lines of the guarded readers, where they are used.

    Args:
        uses: The names used.
        current: What gives the span that is current, or None.
        given: A parameter in front of that of the readers, with its comma.
    """
    if not uses & {READ, SET}:
        return []
    lines = [
        '',
        '',
        f'def {READ}(readers):',
        '    found = {}',
        '    for name, read in readers.items():',
        '        try:',
        '            value = read() if callable(read) else read',
        '        except Exception:',
        '            continue',
        '        if isinstance(value, (bool, int, float, str)):',
        '            found[name] = value',
        '    return found',
    ]
    if SET in uses:
        lines += [
            '',
            '',
            f'def {SET}({given}readers):',
            f'    span = {current}',
            '    if span is not None and span.is_recording():',
            f'        span.set_attributes({READ}(readers))',
        ]
    return lines
