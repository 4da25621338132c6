# SPDX-License-Identifier: Apache-2.0
"""Compares the code of a module with that of the same module rewritten: all but our own must be there, as it was.

What is ours is told by position: a second copy of the edit has all that we put in on lines beyond the file's end. What
is left is compared code object by code object: names, flags, parameters, variables and cells; constants and names used;
and each instruction that does work, with what it works on and where in the source it stands. How control gets from one
to the next is not compared (blocks are laid out anew, a value is kept on the stack across the end of a block): running
the programs shows that. Symbol tables are compared as the compiler sees them.
"""

from __future__ import annotations

import ast
import dis
import symtable
import sys
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import Any

from lens_auto.rewrite import build
from lens_auto.rewrite.places import Wanted

OURS = 10_000_000  # a line of no file
# Instructions that only move control or the stack, or that a compiler picks by what stands around: not work.
_PLUMBING = (
    *('CACHE', 'COPY', 'DUP_TOP', 'DUP_TOP_TWO', 'EXTENDED_ARG', 'JUMP', 'NOP', 'NOT_TAKEN', 'POP', 'PRECALL', 'PUSH'),
    *('RAISE_VARARGS', 'RERAISE', 'RESUME', 'RETURN', 'ROT', 'SETUP', 'SWAP', 'END', 'COPY_FREE', 'MAKE_CELL', 'WITH'),
    *('GEN_START', 'RETURN_GENERATOR', 'BEFORE_WITH', 'CALL', 'KW_NAMES', 'LOAD_CONST', 'FOR_ITER', 'CALL_INTRINSIC'),
    *('LOAD_SPECIAL', 'TO_BOOL', 'INTERPRETER_EXIT', 'CHECK_EXC', 'CLEANUP_THROW', 'SEND', 'YIELD_', 'GET_YIELD'),
    *('BEGIN', 'LOAD_ASSERTION', 'LOAD_COMMON'),
)
_PACKED = ('BUILD_MAP', 'BUILD_CONST_KEY_MAP', 'MAP_ADD', 'DICT_MERGE', 'BUILD_TUPLE', 'BUILD_LIST', 'LIST_TO_TUPLE')
_NAMES = {build.BUILTIN, build.CONTEXT, '__self__', '__dict__', 'get', 'setdefault'}


class Marked:
    """For a while, edits put all that is ours on line `OURS`."""

    def __enter__(self) -> None:
        self._put = build._put

        def put(node: Any, where: Any) -> Any:
            return self._put(node, (OURS, 0, OURS, 0))

        build._put = put

    def __exit__(self, *error: object) -> None:
        build._put = self._put


def differences(
    source: bytes, path: str, wanted: list[Wanted], optimize: int = -1, places: list[int] | None = None
) -> Iterator[str]:
    """What differs between a module and its rewritten self, a line each; nothing if all is well.

    Args:
        source: The module's source.
        path: Its file.
        wanted: The rules.
        optimize: As of `compile`.
        places: Gets the number of places edited.
    """
    from lens_auto.rewrite.edit import rewrite

    plain = compile(source, path, 'exec', dont_inherit=True, optimize=optimize)
    with Marked():
        marked = rewrite(source, path, wanted, optimize)
    # At the end of an except clause its name is deleted: on no line of its own, so on that of what stands before.
    handled = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler)}
    for difference in _code(plain, marked.code, _Calls(source)):
        if not any(f"_FAST', '{name}'" in difference or f"E', '{name}'" in difference for name in handled):
            yield difference
    done = rewrite(source, path, wanted, optimize)
    if places is not None:
        places.append(sum(len(found.places) for found in done.found))
    # As it will run: no line of the file is new.
    for one, other in _pairs(plain, done.code):
        new = _lines(other) - _lines(one)
        if new:
            yield f'{one.co_name} at {one.co_firstlineno}: lines {sorted(new)[:5]} are new'
    try:
        text = ast.unparse(done.tree)
    except (ValueError, RecursionError):
        # A sum of a thousand terms; and before 3.12 an f-string holds no backslash and not all quotes: no source.
        return
    yield from _symbols(
        symtable.symtable(source.decode('utf-8-sig'), path, 'exec'), symtable.symtable(text, path, 'exec')
    )


class _Calls(dict[tuple[int, int], tuple[int, int]]):
    """Calls of methods over several lines: where the method's name is, to where the call begins.

    The edit has them begin at the name, as the compiler does; what is done with the value (it is formatted, put into a
    dict) begins where the call does.

    Attributes:
        crowded: Lines of calls with so many keywords that another function's are packed into a dict.
    """

    def __init__(self, source: bytes) -> None:
        super().__init__()
        self.crowded: set[int] = set()
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            line, end, name = node.func.end_lineno or 0, node.func.end_col_offset or 0, node.func.attr
            if line != node.lineno:
                self[line, end - len(name.encode())] = (node.lineno, node.col_offset)
            if len(node.args) + 2 * len(node.keywords) > 30:
                self.crowded.update(range(node.lineno, (node.end_lineno or 0) + 1))


def _symbols(one: Any, other: Any) -> Iterator[str]:
    def names(table: Any) -> list[tuple[Any, ...]]:
        return sorted(
            (
                s.get_name(),
                s.is_local(),
                s.is_global(),
                s.is_free(),
                s.is_parameter(),
                s.is_assigned(),
                s.is_referenced(),
            )
            for s in table.get_symbols()
            if s.get_name() not in _NAMES
        )

    if names(one) != names(other):
        yield f'{one.get_name()}: symbols {sorted(set(names(one)) ^ set(names(other)))[:4]}'

    if [each.get_name() for each in one.get_children()] != [each.get_name() for each in other.get_children()]:
        yield f'{one.get_name()}: scopes'
        return
    for pair in zip(one.get_children(), other.get_children(), strict=True):
        yield from _symbols(*pair)


def _nested(code: CodeType) -> list[CodeType]:
    found = [const for const in code.co_consts if isinstance(const, CodeType)]
    if sys.version_info < (3, 11):
        # Without columns, two generator expressions of a line may be one and the same; a call in each tells them apart.
        found = list({(each.co_name, each.co_firstlineno): each for each in reversed(found)}.values())[::-1]
    return found


def _pairs(one: CodeType, other: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield one, other
    ours, theirs = _nested(other), _nested(one)
    if [code.co_name for code in ours] == [code.co_name for code in theirs]:
        for pair in zip(theirs, ours, strict=True):
            yield from _pairs(*pair)


def _lines(code: CodeType) -> set[int]:
    return {line for _, _, line in code.co_lines() if line}


def _code(one: CodeType, other: CodeType, calls: _Calls) -> Iterator[str]:
    at = f'{one.co_name} at {one.co_firstlineno}'
    for name in (
        'name',
        'filename',
        'firstlineno',
        'flags',
        'argcount',
        'posonlyargcount',
        'kwonlyargcount',
    ):
        if getattr(one, f'co_{name}') != getattr(other, f'co_{name}'):
            yield f'{at}: co_{name} {getattr(one, f"co_{name}")} {getattr(other, f"co_{name}")}'
    for name in ('varnames', 'cellvars', 'freevars', *(['qualname'] if sys.version_info >= (3, 11) else [])):
        # In 3.12 the globals that a comprehension of a class body reads are among its variables.
        if _without_ours(getattr(one, f'co_{name}')) != _without_ours(getattr(other, f'co_{name}')):
            yield f'{at}: co_{name} {getattr(one, f"co_{name}")} {getattr(other, f"co_{name}")}'
    if one.co_name[0] != '<' and one.co_consts[:1] != other.co_consts[:1] and isinstance([*one.co_consts, 0][0], str):
        yield f'{at}: docstring'
    mine, theirs = Counter(_work(one, calls)), Counter(_work(other, calls))
    for what in sorted(set(mine) - set(theirs), key=str)[:6]:
        yield f'{at}: lost {what}'
    new = [what for what in set(theirs) - set(mine) if what[0] not in _PACKED or _line(what[2]) not in calls.crowded]
    for what in sorted(new, key=str)[:6]:
        yield f'{at}: new {what}'
    names = set(other.co_names) - set(one.co_names) - _NAMES
    if names or set(one.co_names) - set(other.co_names):
        yield f'{at}: names {names or set(one.co_names) - set(other.co_names)}'
    ours, nested = _nested(other), _nested(one)
    if [code.co_name for code in ours] != [code.co_name for code in nested]:
        ours, nested = _loaded(other, ours), _loaded(one, nested)
    if [code.co_name for code in ours] != [code.co_name for code in nested]:
        yield f'{at}: code {[code.co_name for code in nested][:5]} {[code.co_name for code in ours][:5]}'
        return
    for pair in zip(nested, ours, strict=True):
        yield from _code(*pair, calls)


def _loaded(code: CodeType, nested: list[CodeType]) -> list[CodeType]:
    """Without what stands behind a `return`: of constants that nothing loads the compiler leaves out the last ones."""
    loaded = {id(each.argval) for each in dis.get_instructions(code)}
    return [each for each in nested if id(each) in loaded]


def _line(where: Any) -> Any:
    return where[0] if isinstance(where, tuple) else where


def _without_ours(names: Any) -> Any:
    return tuple(name for name in names if name not in _NAMES) if isinstance(names, tuple) else names


def _work(code: CodeType, calls: _Calls) -> Iterator[tuple[Any, ...]]:
    line = None
    for each in dis.get_instructions(code):
        if sys.version_info >= (3, 11):
            where: Any = each.positions
            line = where.lineno
            where = (where.lineno, where.col_offset, where.end_lineno, where.end_col_offset)
            where = (*calls.get(where[:2], where[:2]), *where[2:])
        else:
            line = each.starts_line or line
            where = line
        if line == OURS or line is None or each.opname.startswith(_PLUMBING) or '_JUMP_' in each.opname:
            continue
        value = each.argval
        if isinstance(value, CodeType):
            value = value.co_name
        operation = _SAME.get(each.opname, each.opname)
        if '_FAST' in operation:
            # As of 3.13 two in one instruction, which then has the place of one of them.
            for name in _without_ours(value if isinstance(value, tuple) else (value,)):
                yield 'FAST', name, None
            continue
        yield operation, value if isinstance(value, (str, int, tuple)) else repr(value), where


# One and the same to the program; which of them it is depends on what stands around.
_SAME = {
    'LOAD_METHOD': 'LOAD_ATTR',
    'LOAD_CLOSURE': 'LOAD_FAST',
}
