# SPDX-License-Identifier: Apache-2.0
"""Edits the syntax tree of a module at the places found, and compiles it.

The iteration of a loop, a with statement and the body of a function each become the body of a with statement of ours:
what `break`, `continue`, `return` and exceptions mean stays as it is, and the state is on the interpreter's stack
alone. A call gets another function to call. See `build` for what is put in.
"""

from __future__ import annotations

import sys
from _ast import (
    AST,
    AnnAssign,
    Assert,
    AsyncWith,
    Attribute,
    Call,
    Constant,
    Expr,
    Global,
    Nonlocal,
    Return,
    Starred,
    With,
    Yield,
    YieldFrom,
)

from lens_auto.rewrite import build
from lens_auto.rewrite.first import begins
from lens_auto.rewrite.key import LONGEST, Key, written
from lens_auto.rewrite.nodes import dotted, module_of, text_of, walk
from lens_auto.rewrite.places import find
from lens_auto.rewrite.scopes import own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import Module, expr, stmt
    from collections.abc import Callable, Container, Iterator, Sequence
    from types import CodeType
    from typing import Any

    from lens_auto.rewrite.build import At
    from lens_auto.rewrite.key import Captured
    from lens_auto.rewrite.places import Found, Place, Wanted


class Rewritten:
    """A module as it will run.

    Attributes:
        code: Its code.
        tree: Its syntax tree, edited.
        found: What became of each thing wanted. A place whose edit does not compile (blocks nested too deep) is
            refused.
    """

    __slots__ = ('code', 'found', 'tree')

    def __init__(self, code: CodeType, tree: Module, found: list[Found]):
        """See the class.

        Args:
            code: See the class.
            tree: See the class.
            found: See the class.
        """
        self.code = code
        self.tree = tree
        self.found = found


def rewrite(
    source: bytes,
    filename: str,
    wanted: Sequence[Wanted],
    optimize: int = -1,
    also: Callable[[Module], None] | None = None,
) -> Rewritten:
    """Compile a module with spans at the places wanted.

    Args:
        source: The module's source, as in its file.
        filename: Its path, as the plain loader would give it to `compile`.
        wanted: What to look for.
        optimize: As of `compile`: -1 for the interpreter's own level.
        also: Changes the edited tree once more.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: The source itself does not compile.
    """
    text = _decoded(source)

    def edited(kept: Container[int] | None) -> Rewritten:
        tree = module_of(source, filename)
        found = find(tree, wanted, text)
        places = [(each.wanted, place) for each in found for place in each.places]
        chosen = [pair for index, pair in enumerate(places) if kept is None or index in kept]
        Edit(tree, text, filename, optimize).apply(chosen)
        if also is not None:
            also(tree)
        # The recursion limit of the program's own stack at this point may be what fails.
        return Rewritten(compile(tree, filename, 'exec', dont_inherit=True, optimize=optimize), tree, found)

    try:
        return edited(None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        plain = edited(())
    count = sum(len(each.places) for each in plain.found)
    kept = _compiling(edited, list(range(count)), set())
    done = edited(kept)
    index = 0
    for each in done.found:
        for place in list(each.places):
            if index not in kept:
                place.refused = 'with the edit it does not compile: blocks nested too deep'
                each.places.remove(place)
                each.problem = '; '.join(filter(None, (each.problem, f'line {place.lineno}: {place.refused}')))
            index += 1
    return done


def _compiling(edited: Callable[[set[int]], Rewritten], more: list[int], kept: set[int]) -> set[int]:
    """The places that compile together, found by halves: nearly all of them do."""
    if not more:
        return kept
    try:
        edited(kept | set(more))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        if len(more) == 1:
            return kept
        half = len(more) // 2
        return _compiling(edited, more[half:], _compiling(edited, more[:half], kept))
    return kept | set(more)


def _decoded(source: bytes) -> str:
    """The source as text, for messages and captures; its encoding as `compile` finds it, or else something close."""
    head = b'\n'.join(source.split(b'\n', 2)[:2])
    if b'coding' not in head:
        return source.decode('utf-8-sig', 'replace')
    name = head.partition(b'coding')[2][1:].strip()
    length = 0
    while length < len(name) and (chr(name[length]).isalnum() or name[length] in b'-_.'):
        length += 1
    try:
        return source.decode(name[:length].decode('ascii'), 'replace')
    except (LookupError, UnicodeDecodeError):
        return source.decode('utf-8-sig', 'replace')


class Edit:
    """Edits one tree, in place."""

    __slots__ = ('_file', '_holders', '_lines', '_no_code', '_returns', '_tree')

    def __init__(self, tree: Module, source: str, filename: str, optimize: int = -1):
        """See the class.

        Args:
            tree: The module.
            source: Its source.
            filename: Its path.
            optimize: As of `compile`.
        """
        self._tree = tree
        level = sys.flags.optimize if optimize < 0 else optimize
        self._no_code = (Global, Nonlocal, Assert) if level else (Global, Nonlocal)
        self._lines = source.splitlines()
        self._file = filename.rpartition('/')[2]
        self._holders: dict[int, list[stmt]] = {}
        self._returns: dict[int, Return] = {}

    def apply(self, places: Sequence[tuple[Wanted, Place]]) -> None:
        """Put spans at places.

        Args:
            places: What was wanted, and where it was found.
        """
        if not places:
            return
        ordered = sorted(places, key=lambda pair: (pair[1].lineno, pair[1].col_offset))
        keys = [written(self._key(wanted, place)) for wanted, place in ordered]
        if any(place.kind == 'block' for _, place in ordered):
            self._hold()
        if any(place.kind == 'call' for _, place in ordered):
            self._returns = dict(_leaving(self._tree))
        self._yields([(key, place) for key, (_, place) in zip(keys, ordered, strict=True)])
        # From the last to the first: of two rules at one place, the first one's span is around the other's.
        for key, (_, place) in reversed(list(zip(keys, ordered, strict=True))):
            if place.kind == 'call':
                self._call(key, place)
            elif place.kind == 'block':
                self._block(key, place)
            else:
                self._body(key, place)

    def _key(self, wanted: Wanted, place: Place) -> Key:
        where = f'{self._file}:{place.qualname}:{place.lineno}:{place.col_offset}'
        captures = {name: self._captured(value) for name, value in place.captures.items()}
        return Key(wanted.key, place.kind, where, captures)

    def _captured(self, value: expr | tuple[AST, ...]) -> Captured:
        if isinstance(value, tuple):
            return 'value', ', '.join(text_of(each, self._lines) for each in value)[:LONGEST]
        if isinstance(value, Constant) and type(value.value) in (str, bool, int, float):
            known: Any = value.value
            if type(known) is int and abs(known) >= 1 << 63:
                return 'value', text_of(value, self._lines)[:LONGEST]
            return 'value', known[:LONGEST] if type(known) is str else known
        name = dotted(value)
        if name and '.' not in name:
            return 'name', name
        return 'value', text_of(value, self._lines)[:LONGEST]

    def _hold(self) -> None:
        for node in walk(self._tree):
            for name in node._fields:
                value: Any = getattr(node, name, None)
                if type(value) is list:
                    for each in value:  # pyright: ignore[reportUnknownVariableType]
                        if isinstance(each, AST):
                            self._holders[id(each)] = value

    def _call(self, key: bytes, place: Place) -> None:
        node: Call = place.node
        where = build.start(begins(node))
        after = _after(node.func)
        if _is_method_call(node) and after[0] != node.lineno:
            # The compiler puts a method call on the line of the method's name; this will no longer be one to it.
            left = self._returns.get(id(node))
            if left is not None and left.lineno == node.lineno:
                left.lineno, left.col_offset = after[:2]
            node.lineno, node.col_offset = after[:2]
        node.func = build.function_of(key, node, place.awaited, where, after)

    def _block(self, key: bytes, place: Place) -> None:
        holder = self._holders[id(place.node)]
        index = next(at for at, each in enumerate(holder) if each is place.node)
        made = build.block(key, [place.node], self._beginning([place.node]))
        holder[index] = made
        self._holders[id(place.node)] = made.body

    def _body(self, key: bytes, place: Place) -> None:
        body: list[stmt] = place.node.body
        documented = place.kind == 'function' and _is_text(body[0])
        rest = body[1:] if documented else body
        if not rest:
            return
        place.node.body = [*body[: len(body) - len(rest)], build.block(key, rest, self._beginning(rest))]

    def _beginning(self, body: Sequence[stmt]) -> At:
        for node in body:
            if isinstance(node, self._no_code) or (isinstance(node, AnnAssign) and node.value is None):
                continue
            return build.start(begins(node))
        return build.NOWHERE

    def _yields(self, places: Sequence[tuple[bytes, Place]]) -> None:
        """Leave the spans of places at each yield inside them, and take them up again after it."""
        keys: dict[int, list[bytes]] = {}
        nodes: dict[int, Yield | YieldFrom] = {}
        for key, place in places:
            if place.kind not in ('loop', 'block') or _is_held(place):
                continue
            for node in own([place.node] if place.kind == 'block' else place.node.body, lambdas=False):
                if isinstance(node, (Yield, YieldFrom)):
                    nodes[id(node)] = node
                    keys.setdefault(id(node), []).append(key)
        if nodes:
            for parent in list(walk(self._tree)):
                _replace(parent, nodes, keys)


def _replace(parent: AST, nodes: dict[int, Yield | YieldFrom], keys: dict[int, list[bytes]]) -> None:
    def new(node: Any) -> Any:
        found = nodes.get(id(node))
        if found is None:
            return node
        if isinstance(found, Yield):
            return build.yielding(keys[id(node)], found)
        return build.delegating(keys[id(node)], found)

    for name in parent._fields:
        value: Any = getattr(parent, name, None)
        if type(value) is list:
            value[:] = [new(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        elif id(value) in nodes:
            setattr(parent, name, new(value))


def _is_held(place: Place) -> bool:
    """True in the generator of a context manager: its yield is the with block, where the span shall be current."""
    path = place.scope.path
    names = [dotted(each) for each in path[-1].decorator_list] if path else []
    return any(name.rpartition('.')[2] in ('contextmanager', 'asynccontextmanager') for name in names)


def _is_text(node: stmt) -> bool:
    return isinstance(node, Expr) and isinstance(node.value, Constant) and isinstance(node.value.value, str)


def _leaving(tree: Module) -> Iterator[tuple[int, Return]]:
    """The `return CALL` that leave a block which does something as it is left, by the call.

    Where the value is on another line the compiler goes through that of the `return` first, and so would be traced.
    """
    for node in walk(tree):
        parts: list[Any] = []
        if isinstance(node, (With, AsyncWith)):
            parts = node.body
        elif type(node).__name__ in ('Try', 'TryStar'):
            block: Any = node
            parts = [*block.body, *block.handlers, *block.orelse] if block.finalbody else []
        for inner in own(parts):
            if isinstance(inner, Return) and isinstance(inner.value, Call):
                yield id(inner.value), inner


def _after(node: expr) -> At:
    """Where the compiler puts the last instruction that evaluates an expression."""
    last, end = node.end_lineno, node.end_col_offset
    if not isinstance(node, Attribute) or last is None or end is None or last == node.lineno:
        return build.start(node)
    start = max(0, end - len(node.attr.encode()))
    return last, start, last, start


def _is_method_call(node: Call) -> bool:
    if node.keywords and sys.version_info < (3, 11):
        return False
    return (
        isinstance(node.func, Attribute)
        and not any(isinstance(each, Starred) for each in node.args)
        and not any(each.arg is None for each in node.keywords)
    )
