# SPDX-License-Identifier: Apache-2.0
"""The pattern language: a loop header, a with header or a call in Python syntax, with wildcards (docs/patterns.md).

`$name` stands for one expression and captures it, `$_` for one that is not captured; `$$$` for any run of arguments, of
elements or of with items, and alone for any one expression; `$$$name` captures the run. All else must be there as
written, but for formatting, quotes and the order of keyword arguments.

A pattern is parsed by Python itself: each `$` becomes a letter that no one writes, so that columns stay what they are.
"""

from __future__ import annotations

from _ast import (
    AST,
    AsyncFor,
    AsyncWith,
    Await,
    Call,
    Constant,
    For,
    List,
    Name,
    Pass,
    Set,
    Tuple,
    While,
    With,
    withitem,
)

from lens_auto.rewrite.nodes import expression_of, module_of, parts, same, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import expr, keyword
    from collections.abc import Callable
    from typing import Any

    # What a name captured: an expression, or the nodes of a run (expressions, keywords, with items).
    Captured = expr | tuple[AST, ...]
    Captures = dict[str, Captured]
    Then = Callable[[Captures], Captures | None]

KINDS = ('loop', 'block', 'call')
LONGEST = 1000  # characters
_MARK = '\u01c3'  # a letter to Python, which its normalisation of names leaves as it is
_HEADERS = {'loop': (For, AsyncFor, While), 'block': (With, AsyncWith)}
_SHAPES = {
    'loop': 'a loop pattern is the header of one loop, like `for $i in range($$$):`',
    'block': 'a block pattern is the header of one with statement, like `with timer.time("step"):`',
    'call': 'a call pattern is one call, like `ray.get($X)`',
}


class PatternError(Exception):
    """A text is no pattern.

    Attributes:
        message: What is wrong.
        column: Where in the text, from 0.
    """

    def __init__(self, message: str, column: int):
        """See the class.

        Args:
            message: See the class.
            column: See the class.
        """
        super().__init__(message)
        self.message = message
        self.column = column


class Pattern:
    """One pattern, parsed.

    Attributes:
        kind: One of `KINDS`.
        text: As written.
        captures: The names it captures, in the order they are written.
    """

    __slots__ = ('_awaited', '_shape', 'captures', 'kind', 'text')

    def __init__(self, kind: str, text: str, shape: AST, captures: tuple[str, ...]):
        """See the class; patterns are made by `parse`.

        Args:
            kind: See the class.
            text: See the class.
            shape: The syntax tree of the text.
            captures: See the class.
        """
        self.kind = kind
        self.text = text
        self.captures = captures
        self._awaited = isinstance(shape, Await)
        self._shape = shape.value if isinstance(shape, Await) else shape

    def match(self, node: AST, awaited: bool = False) -> Captures | None:
        """What the pattern captures of a node, or None where it does not match.

        Args:
            node: A loop, with statement or call.
            awaited: The node is what an `await` waits for.
        """
        found = self.match_at(node, awaited)
        return None if found is None else found[1]

    def match_at(self, node: AST, awaited: bool = False) -> tuple[int, Captures] | None:
        """As `match`, with the index of the first with item that matched (0 for loops and calls).

        Args:
            node: See `match`.
            awaited: See `match`.
        """
        shape = self._shape
        if type(node) is not type(shape) or (self._awaited and not awaited):
            return None
        if isinstance(shape, (With, AsyncWith)):
            items: list[withitem] = getattr(node, 'items', [])
            for at in range(len(items)):
                for end in range(len(items), at, -1):
                    found = _list(shape.items, items[at:end], {}, _done)
                    if found is not None:
                        return at, found
            return None
        if isinstance(shape, Call):
            pairs: list[Any] = [(shape, node)]
        elif isinstance(shape, While):
            pairs = [(shape.test, getattr(node, 'test', None))]
        else:
            pairs = [(getattr(shape, name), getattr(node, name)) for name in ('target', 'iter')]
        found = _pairs(pairs, {}, _done)
        return None if found is None else (0, found)


def parse(kind: str, text: str) -> Pattern:
    """The pattern that a text is.

    Args:
        kind: One of `KINDS`.
        text: A header that ends in a colon (loop, block), or a call.

    Raises:
        PatternError: It is none.
        KeyError: There is no such kind.
    """
    shape_of = _SHAPES[kind]
    if len(text) > LONGEST:
        raise PatternError(f'longer than {LONGEST} characters', LONGEST)
    lead = len(text) - len(text.lstrip())
    marked = _marked(text)[lead:].rstrip()
    if kind != 'call' and not marked.endswith(':'):
        raise PatternError(f'{shape_of}; it ends in a colon', lead + len(marked))
    try:
        if kind == 'call':
            shape: AST = expression_of(marked).body
        else:
            body = module_of(marked + ' pass', '<pattern>').body
            shape = body[0]
            if len(body) != 1 or not _bare_header(kind, shape):
                raise PatternError(shape_of, lead)
    except SyntaxError as error:
        column = lead + min(max((error.offset or 1) - 1, 0), max(len(marked) - 1, 0))
        raise PatternError((error.msg or 'invalid syntax').replace(_MARK, '$'), column) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise PatternError(f'Python cannot parse it ({error})', lead) from None
    if kind == 'call' and not isinstance(shape.value if isinstance(shape, Await) else shape, Call):
        raise PatternError(shape_of, lead)
    return Pattern(kind, text, shape, _captures(shape, lead, marked))


def _bare_header(kind: str, node: AST) -> bool:
    return (
        isinstance(node, _HEADERS[kind])
        and len(node.body) == 1
        and isinstance(node.body[0], Pass)
        and not getattr(node, 'orelse', None)
    )


def _marked(text: str) -> str:
    """The text with each wildcard's `$` as a letter, and line ends outside of strings as spaces."""
    done: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in '"\'':
            end = _string_end(text, at)
            done.append(text[at:end])
            at = end
        elif char == '#':
            raise PatternError('a pattern has no comments', at)
        elif char == _MARK:
            raise PatternError(f'a pattern has no {_MARK}', at)
        elif char == '$':
            end = _wildcard_end(text, at)
            done.append(text[at:end].replace('$', _MARK))
            at = end
        else:
            done.append(' ' if char in '\r\n\f' else char)
            at += 1
    return ''.join(done)


def _string_end(text: str, at: int) -> int:
    quote = text[at] * 3 if text.startswith(text[at] * 3, at) else text[at]
    here = at + len(quote)
    while here < len(text):
        if text[here] == '\\':
            here += 2
        elif text.startswith(quote, here):
            return here + len(quote)
        else:
            here += 1
    return len(text)


def _wildcard_end(text: str, at: int) -> int:
    if at and (text[at - 1].isalnum() or text[at - 1] == '_'):
        raise PatternError('a wildcard stands for a whole expression: nothing is written right before its $', at)
    here = at
    while here < len(text) and text[here] == '$':
        here += 1
    dollars = here - at
    while here < len(text) and (text[here].isalnum() or text[here] == '_'):
        here += 1
    name = text[at + dollars : here]
    if dollars not in (1, 3) or (dollars == 1 and not name):
        raise PatternError('a wildcard is $name, $_, $$$ or $$$name', at)
    if name and not _is_name(name):
        raise PatternError(f'{name!r} is no name that can be captured', at + dollars)
    return here


def _is_name(text: str) -> bool:
    if not text.isidentifier():
        return False
    try:
        return isinstance(expression_of(text).body, Name)  # a keyword is none
    except SyntaxError:
        return False


def _captures(shape: AST, lead: int, marked: str) -> tuple[str, ...]:
    found: list[tuple[int, str]] = []
    for node in walk(shape):
        # In characters; a node's own column counts bytes.
        column = len(marked.encode()[: getattr(node, 'col_offset', 0)].decode('utf-8', 'ignore'))
        if isinstance(node, Name):
            if _is_wild(node) and _name_of(node):
                found.append((column, _name_of(node)))
            continue
        for name, value in parts(node):
            if name != 'value' and isinstance(value, str) and value.startswith(_MARK):
                raise PatternError(
                    f'{value.replace(_MARK, "$")} stands where only a name can stand; a wildcard is an expression',
                    lead + column,
                )
    return tuple(dict.fromkeys(name for _, name in sorted(found)))


def _is_wild(node: object) -> bool:
    return isinstance(node, Name) and node.id.startswith(_MARK)


def _name_of(node: Name) -> str:
    name = node.id.lstrip(_MARK)
    return '' if name == '_' else name


def _run(node: object) -> Name | None:
    """The wildcard for a run that an element of a pattern's list is, or None."""
    if isinstance(node, withitem) and node.optional_vars is None:
        node = node.context_expr
    return node if isinstance(node, Name) and node.id.startswith(_MARK * 3) else None


def _done(found: Captures) -> Captures:
    return found


def _bind(wild: Name, value: Captured, found: Captures, then: Then) -> Captures | None:
    name = _name_of(wild)
    if not name:
        return then(found)
    before = found.get(name)
    if before is None:
        return then({**found, name: value})
    if isinstance(before, tuple) and isinstance(value, tuple):
        equal = same(list(before), list(value))
    else:
        equal = same(before, value)
    return then(found) if equal else None


def _pairs(pairs: list[tuple[Any, Any]], found: Captures, then: Then) -> Captures | None:
    if not pairs:
        return then(found)
    (shape, node), rest = pairs[0], pairs[1:]
    return _value(shape, node, found, lambda after: _pairs(rest, after, then))


def _value(shape: Any, node: Any, found: Captures, then: Then) -> Captures | None:
    """Match a pattern's part against a module's; what follows in the pattern decides between several ways."""
    if _is_wild(shape):
        run = _run(shape)
        if not isinstance(node, AST):
            return None
        value: Any = (node,) if run is not None and _name_of(run) else node
        return _bind(shape, value, found, then)
    if type(shape) is not type(node):
        return None
    if not isinstance(shape, AST):
        return then(found) if same(shape, node) else None
    if isinstance(shape, Constant):
        return then(found) if same(shape, node) else None
    if isinstance(shape, withitem) and shape.optional_vars is None:
        return _value(shape.context_expr, node.context_expr, found, then)
    if isinstance(shape, Call):
        return _call(shape, node, found, then)
    if isinstance(shape, (Tuple, List, Set)):
        return _list(shape.elts, node.elts, found, then)
    # Elsewhere a list is of a fixed length: operands, comparisons, the keys of a dict.
    pairs: list[tuple[Any, Any]] = []
    for name, mine in parts(shape):
        theirs: Any = getattr(node, name, None)
        if isinstance(mine, list) and isinstance(theirs, list):
            if len(mine) != len(theirs):  # pyright: ignore[reportUnknownArgumentType]
                return None
            pairs += zip(mine, theirs, strict=True)  # pyright: ignore[reportUnknownArgumentType]
        else:
            pairs.append((mine, theirs))  # pyright: ignore[reportUnknownArgumentType]
    return _pairs(pairs, found, then)


def _call(shape: Call, node: Call, found: Captures, then: Then) -> Captures | None:
    left = list(node.keywords)
    pairs: list[tuple[Any, Any]] = [(shape.func, node.func)]
    for wanted in shape.keywords:
        # Of several `**mapping` each takes the first that is left.
        given = next((each for each in left if each.arg == wanted.arg), None)
        if given is None:
            return None
        left.remove(given)
        pairs.append((wanted.value, given.value))
    if left and not any(_run(each) for each in shape.args):
        return None
    return _pairs(pairs, found, lambda after: _list(shape.args, node.args, after, then, left))


def _list(
    shapes: list[Any], nodes: list[Any], found: Captures, then: Then, keywords: list[keyword] | None = None
) -> Captures | None:
    """Match a list in which wildcards may stand for runs; keywords that are left over go to the last of those."""
    if not shapes:
        return None if nodes else then(found)
    shape, rest = shapes[0], shapes[1:]
    run = _run(shape)
    if run is None:
        if not nodes:
            return None
        return _value(shape, nodes[0], found, lambda after: _list(rest, nodes[1:], after, then, keywords))
    more = tuple(keywords or ()) if not any(_run(each) for each in rest) else ()
    longest = len(nodes) - sum(_run(each) is None for each in rest)
    lengths = range(longest + 1) if any(_run(each) for each in rest) else (longest,)
    for length in lengths:
        if length < 0:
            return None

        def go_on(after: Captures, length: int = length) -> Captures | None:
            return _list(rest, nodes[length:], after, then, keywords)

        answer = _bind(run, (*nodes[:length], *more), found, go_on)
        if answer is not None:
            return answer
    return None
