# SPDX-License-Identifier: Apache-2.0
"""The style `nemo-lens`: `trace_fn` and `managed_span` of nemo-lens, whose own span groups switch the spans on."""

from __future__ import annotations

from collections.abc import Callable

from lens_auto.codemod.piece import Listed, Piece, Said
from lens_auto.codemod.plain import fixed_name, plain_function, said_elsewhere, statements_between, values
from lens_auto.codemod.style_otel import READ, SET, guarded
from lens_auto.codemod.wish import Refused, Wish

SPAN, FUNCTION = '_lens_managed_span', '_lens_trace_fn'


def write(wish: Wish, note: Callable[[str], None]) -> list[Piece]:
    """What this style puts at a place.

    Args:
        wish: The place and what a rule wants there.
        note: Told what is left out.

    Raises:
        Refused: It cannot.
    """
    kind, group = wish.kind, wish.span['group']
    if kind == 'end':
        return []  # the block around what is timed ends there
    if kind == 'begin':
        statements_between(wish)
    elif kind not in ('function', 'block', 'loop', 'call'):
        raise Refused(f'style nemo-lens has no words for {kind} rules: style lens has')
    if group is None:
        raise Refused('a span of nemo-lens has to have a group, and this one has none')
    if kind == 'function':
        plain_function(wish, whole=False)
    if kind == 'block' and getattr(wish.node, 'asynchronous', None) is not None:
        raise Refused('this is an `async with`, and managed_span is for a plain one')
    said_elsewhere(wish, note, root=False)
    arguments = (repr(group), fixed_name(wish))
    read = values(wish, note)
    bucket = wish.span['bucket']
    fixed = [] if bucket is None else [f"'rl.bucket': {bucket!r}"]
    entries = [*fixed, *(f'{name!r}: {value.guarded}' for name, value in read.items())]
    if kind in ('function', 'call'):
        how = 'decorator' if kind == 'function' else 'call'
        pieces = [Piece(how, Said(FUNCTION, arguments))]
        if entries and kind == 'function':
            pieces.append(Piece('first', Said(SET, (repr(group), Listed('', tuple(entries))))))
        elif entries:
            note('the span is written without its attributes: trace_fn of nemo-lens takes none')
        return pieces
    how = {'block': 'item', 'loop': 'loop', 'begin': 'between'}[kind]
    if all(value.safe for value in read.values()):
        rest: list[str | Listed] = [Listed('**', tuple(entries))] if entries else []
    else:
        rest = [Listed(f'**{READ}(', tuple(entries), ')')]
    return [Piece(how, Said(SPAN, (*arguments, *rest)))]


def imports(uses: set[str]) -> list[str]:
    """The lines that bring in the names used.

    Args:
        uses: The names.
    """
    names = [f'managed_span as {SPAN}'] if SPAN in uses else []
    names += [f'trace_fn as {FUNCTION}'] if FUNCTION in uses else []
    lines = ['try:']
    if SET in uses:
        names = ['is_span_group_enabled as _lens_enabled', *names]
    lines += [f'    from nemo.lens import {name}' for name in names]
    if SET in uses:
        lines.append('    from opentelemetry.trace import get_current_span as _lens_current')
    lines.append('except ImportError:')
    if SPAN in uses:
        lines += ['    from contextlib import nullcontext as _lens_null', '']
        lines += [f'    def {SPAN}(*_, **__):', '        return _lens_null()']
    if FUNCTION in uses:
        lines += [''] if lines[-1] != 'except ImportError:' else []
        lines += [f'    def {FUNCTION}(*_, **__):', '        return lambda function: function']
    if SET in uses:
        lines += ['', '    def _lens_enabled(group):', '        return False']
    return [*lines, *guarded(uses, '_lens_current() if _lens_enabled(group) else None', 'group, ')]
