# SPDX-License-Identifier: Apache-2.0
"""The syntax that an edit puts into a module.

A look-up is `delattr.__self__.__dict__.get(NAME, DEFAULT)`: the builtin `delattr` leads to the module it is of, and so
to the builtins, whatever the program has put in place of `__import__`, and whatever names it has. It adds none to the
program, takes a third to two thirds of the time of `__import__('sys').modules.get(...)` (CPython 3.10 to 3.13), and
code with it pickles by value. In a process without us the default does nothing: `memoryview(b'KEY')` is a context
manager, and `{}.setdefault(KEY, value)` gives the value back. A module with a `delattr` or a `memoryview` of its own is
left alone (`refusals`).
"""

from __future__ import annotations

import sys
from _ast import Attribute, Call, Constant, Dict, Load, Name, With, Yield, YieldFrom, withitem

from lens_auto.rewrite.key import AWAIT, CALL, HELD, PLACE, REST, STEP, STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import AST, expr, stmt
    from typing import Any

    # First line and column, last line and column, as of a node.
    At = tuple[int, int, int, int]

# The builtins that an edit names.
BUILTIN, CONTEXT = 'delattr', 'memoryview'
NOWHERE: At = (-1, -1, -1, -1)  # to the compiler: an instruction of its own making, on no line
# From 3.13 on what a with statement does at its end is on the line of the item, no longer on that of the statement.
_ENDS_AT_ITEM = sys.version_info >= (3, 13)
# 3.11 and 3.12 have an instruction on the line of a call before what is called is evaluated.
_CALL_BEGINS_FIRST = sys.version_info[:2] in ((3, 11), (3, 12))


def start(node: AST | None) -> At:
    """Where a node begins: of what is put in there nothing is on a later line.

    Args:
        node: A node of the program's; None for what is on no line.
    """
    found: Any = node
    if found is None:
        return NOWHERE
    return found.lineno, found.col_offset, found.lineno, found.col_offset


def _put(node: Any, where: At) -> Any:
    node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = where
    return node


def _in_place_of(node: AST, new: Any) -> Any:
    """A node where the program's own was, all of it: a traceback underlines the yield that an exception came out of."""
    for name in ('lineno', 'col_offset', 'end_lineno', 'end_col_offset'):
        setattr(new, name, getattr(node, name))
    return new


def _look_up(name: str, default: expr, where: At) -> expr:
    def put(node: Any) -> Any:
        return _put(node, where)

    module = put(Attribute(value=put(Name(id=BUILTIN, ctx=Load())), attr='__self__', ctx=Load()))
    builtins = put(Attribute(value=module, attr='__dict__', ctx=Load()))
    get = put(Attribute(value=builtins, attr='get', ctx=Load()))
    return put(Call(func=get, args=[put(Constant(value=name)), default], keywords=[]))


def _with_key(name: str, key: bytes, where: At, method: str = 'setdefault', value: expr | None = None) -> expr:
    nothing = _put(Dict(keys=[], values=[]), where)
    default = _put(Attribute(value=nothing, attr=method, ctx=Load()), where)
    given: list[expr] = [_put(Constant(value=key), where)]
    if value is not None:
        given.append(value)
    return _put(Call(func=_look_up(name, default, where), args=given, keywords=[]), where)


def block(key: bytes, body: list[stmt], where: At) -> With:
    """`with PLACE(key): body`.

    Args:
        key: The place's key.
        body: What the span is around.
        where: Where that begins. What runs at its end is on no line, so that none is traced that was not.
    """
    default = _put(Name(id=CONTEXT, ctx=Load()), where)
    look_up = _look_up(PLACE, default, where)
    opened = _put(Call(func=look_up, args=[_put(Constant(value=key), where)], keywords=[]), where)
    if _ENDS_AT_ITEM:
        _put(opened, NOWHERE)
    return _put(With(items=[withitem(context_expr=opened, optional_vars=None)], body=body, type_comment=None), NOWHERE)


def function_of(key: bytes, node: Call, waits: bool, where: At, after: At) -> expr:
    """`CALL(key, f)`: what is called in place of `f`.

    Args:
        key: The place's key.
        node: The call.
        waits: An `await` waits for it.
        where: Where it begins.
        after: Where the function it calls has been evaluated.
    """
    made: Any = _with_key(AWAIT if waits else CALL, key, where, value=node.func)
    return _put(made, NOWHERE if _CALL_BEGINS_FIRST and after[0] != where[0] else after)


def yielding(keys: list[bytes], node: Yield) -> expr:
    """`STEP(HELD(key), (yield REST(key, value)))`: a yield out of the spans of some places.

    Args:
        keys: The places' keys, outermost first.
        node: The yield.
    """
    where = start(node)
    value: expr = node.value if node.value is not None else _put(Constant(value=None), where)
    for key in reversed(keys):
        value = _with_key(REST, key, where, value=value)
    done: expr = _in_place_of(node, Yield(value=value))
    for key in keys:
        nothing = _put(Dict(keys=[], values=[]), where)
        default = _put(Attribute(value=nothing, attr='setdefault', ctx=Load()), where)
        held = _with_key(HELD, key, where, 'get')
        done = _put(Call(func=_look_up(STEP, default, where), args=[held, done], keywords=[]), where)
    return done


def delegating(keys: list[bytes], node: YieldFrom) -> expr:
    """`yield from STEPS(key, iterator)`.

    Args:
        keys: The places' keys, outermost first.
        node: The `yield from`.
    """
    where = start(node)
    value: expr = node.value
    for key in reversed(keys):
        value = _with_key(STEPS, key, where, value=value)
    return _in_place_of(node, YieldFrom(value=value))
