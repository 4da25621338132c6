# SPDX-License-Identifier: Apache-2.0
"""Expressions of rule files: text to a tree of tuples, against a whitelist.

Python's own parser reads the text; what comes back is walked node by node and everything not named here is refused.
Runs in the launcher only: a traced process interprets the trees and has no parser, no `eval` and no `compile`.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterator
from typing import Any, TypeAlias

Tree: TypeAlias = tuple[Any, ...]

MAX_LENGTH = 500
MAX_DEPTH = 24
# What an OTLP integer holds.
_MAX_INT = 2**63

ROOTS = {
    'arg': 'an argument of the call, by name: `arg.step`',
    'self': 'the object the method is called on: `self.cfg.model_name`',
    'result': 'what the call returned: `len(result)`',
    'frame': 'a local variable of the caller: `frame.total_steps`',
    'match': 'what the pattern captures: `match.i` for `$i`',
    'env': 'an environment variable: `env.RANK`',
    'caller': 'where the call comes from: `caller.module`, `caller.function`',
    'label': "the timer's label",
    'key': "the metric's key",
    'elapsed': 'the seconds the call took',
    'version': 'the version of an installed package: `version.torch`',
}
"""What an expression may start from, besides the names under `vars`."""

FUNCTIONS: dict[str, tuple[int, int]] = {
    'len': (1, 1),
    'min': (1, 8),
    'max': (1, 8),
    'int': (1, 1),
    'float': (1, 1),
    'str': (1, 1),
    'round': (1, 2),
    'total': (1, 1),
    'mean': (1, 1),
    'count': (1, 8),
    'each': (2, 8),
}
"""The callable names, with the fewest and the most arguments each takes."""

_NEEDS_NAME = {'arg', 'frame', 'match', 'env', 'caller', 'version'}
_CALLER = ('module', 'function')
_SECRET_WORDS = {'TOKEN', 'SECRET', 'PASSWORD', 'PASSWD', 'CREDENTIAL', 'CREDENTIALS', 'APIKEY', 'KEY', 'AUTH'}
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: '+',
    ast.Sub: '-',
    ast.Mult: '*',
    ast.Div: '/',
    ast.FloorDiv: '//',
    ast.Mod: '%',
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: '<',
    ast.LtE: '<=',
    ast.Gt: '>',
    ast.GtE: '>=',
    ast.Eq: '==',
    ast.NotEq: '!=',
}
_REFUSED: dict[type[ast.AST], str] = {
    ast.Pow: '`**`',
    ast.MatMult: '`@`',
    ast.LShift: '`<<`',
    ast.RShift: '`>>`',
    ast.BitOr: '`|`',
    ast.BitXor: '`^`',
    ast.BitAnd: '`&`',
    ast.Invert: '`~`',
    ast.In: '`in`',
    ast.NotIn: '`not in`',
    ast.Is: '`is`',
    ast.IsNot: '`is not`',
    ast.Lambda: 'a lambda',
    ast.ListComp: 'a comprehension',
    ast.SetComp: 'a comprehension',
    ast.DictComp: 'a comprehension',
    ast.GeneratorExp: 'a comprehension',
    ast.IfExp: '`if`/`else`',
    ast.JoinedStr: 'an f-string',
    ast.NamedExpr: '`:=`',
    ast.Await: '`await`',
    ast.Yield: '`yield`',
    ast.YieldFrom: '`yield`',
    ast.Starred: 'an unpacked argument',
    ast.Slice: 'a slice',
    ast.List: 'a list',
    ast.Tuple: 'a tuple',
    ast.Dict: 'a dict',
    ast.Set: 'a set',
}
_ALLOWED = (
    'allowed: attributes and items, + - * / // %, comparison, and or not, '
    f'{", ".join(f"{name}()" for name in FUNCTIONS)}'
)


class ExpressionError(ValueError):
    """An expression is not one.

    Attributes:
        message: The fault.
        column: Where in the text, counted from 0, in characters.
        hint: The way out.
    """

    def __init__(self, message: str, column: int, hint: str) -> None:
        super().__init__(f'{message} (column {column + 1})')
        self.message = message
        self.column = column
        self.hint = hint


def parse(text: str) -> Tree:
    """The tree of one expression.

    Args:
        text: For example `frame.total_steps + 1`.

    Raises:
        ExpressionError: The text is no expression, or holds what an expression may not.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f'this expression is longer than {MAX_LENGTH} characters', MAX_LENGTH, 'shorten it')
    body = text.replace('\r', ' ').replace('\n', ' ').lstrip(' \t\f')
    indent = len(text) - len(body)
    if not body.rstrip():
        raise ExpressionError('this expression is empty', 0, 'write for example `arg.step`')
    try:
        with warnings.catch_warnings():
            # The parser warns about odd literals on stderr; that stream is the user's program's.
            warnings.simplefilter('ignore')
            tree = ast.parse(body, mode='eval')
    except SyntaxError as error:
        # Python reports a text that ends too early at 0.
        column = min((error.offset or len(body) + 1) - 1, len(body))
        raise ExpressionError('this is not a complete expression', indent + column, _syntax_hint(body)) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError('this is not an expression', indent, _ALLOWED) from None
    try:
        return _Parser(body, indent).tree(tree.body, 1)
    except RecursionError:
        raise ExpressionError('this expression is nested too deeply', indent, 'simplify it') from None


def walk(tree: Tree) -> Iterator[Tree]:
    """The tree and every tree in it."""
    yield tree
    head = tree[0]
    if head == 'call':
        inner: tuple[Any, ...] = tree[2]
    elif head == 'fmt':
        inner = tree[1]
    elif head in ('c', 'arg', 'frame', 'match', 'env', 'caller', 'version', 'var'):
        inner = ()
    elif head == '.':
        inner = tree[1:2]
    else:
        inner = tree[1:]
    for part in inner:
        yield from walk(part)


def show(tree: Tree) -> str:
    """The tree as an expression again, for people to read."""
    head = tree[0]
    if head == 'c':
        return repr(tree[1])
    if head in ('arg', 'frame', 'match', 'env', 'caller', 'version'):
        return f'{head}.{tree[1]}'
    if head in ('self', 'result', 'label', 'key', 'elapsed'):
        return head
    if head == 'var':
        return tree[1]
    if head == '.':
        return f'{_operand(tree[1])}.{tree[2]}'
    if head == '[]':
        return f'{_operand(tree[1])}[{show(tree[2])}]'
    if head == 'neg':
        return f'-{_operand(tree[1])}'
    if head == 'not':
        return f'not {_operand(tree[1])}'
    if head == 'call':
        return f'{tree[1]}({", ".join(show(part) for part in tree[2])})'
    if head == 'fmt':
        return repr(show_template(tree))
    return f'{_operand(tree[1])} {head} {_operand(tree[2])}'


def show_template(tree: Tree) -> str:
    """The tree of a name as the template it was written as."""
    if tree[0] == 'c':
        return str(tree[1]).replace('{', '{{').replace('}', '}}')
    parts = tree[1] if tree[0] == 'fmt' else (tree,)
    return ''.join(show_template(part) if part[0] == 'c' else f'{{{show(part)}}}' for part in parts)


def _operand(tree: Tree) -> str:
    text = show(tree)
    atom = tree[0] in ROOTS or tree[0] in ('c', 'var', '.', '[]', 'call')
    return text if atom and not text.startswith('-') else f'({text})'


def _syntax_hint(body: str) -> str:
    if '=' in body.replace('==', '').replace('!=', '').replace('<=', '').replace('>=', ''):
        return 'compare with `==`'
    return _ALLOWED


class _Parser:
    """Walks Python's syntax tree; every method returns a tree of ours or raises at the node's column."""

    def __init__(self, body: str, indent: int) -> None:
        self.body = body.encode()
        self.indent = indent

    def fault(self, message: str, node: ast.AST, hint: str) -> ExpressionError:
        # The syntax tree counts UTF-8 bytes; people and editors count characters.
        start: int = getattr(node, 'col_offset', 0)
        if isinstance(node, ast.Attribute) and node.end_col_offset is not None:
            # The node starts where its base starts; what is wrong is the name at its end.
            start = self.body.rfind(b'.', 0, node.end_col_offset) + 1
        return ExpressionError(message, self.indent + len(self.body[:start].decode(errors='replace')), hint)

    def refused(self, what: ast.AST, node: ast.AST) -> ExpressionError:
        name = _REFUSED.get(type(what)) or f'`{type(what).__name__.lower()}`'
        hint = 'an attribute is an expression already: write it without `{...}`' if name == 'a set' else _ALLOWED
        return self.fault(f'{name} is not allowed in an expression', node, hint)

    def tree(self, node: ast.expr, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise self.fault(f'this expression is nested deeper than {MAX_DEPTH} levels', node, 'simplify it')
        depth += 1
        if isinstance(node, ast.Constant):
            return ('c', self.constant(node))
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.Attribute):
            return self.attribute(node, depth)
        if isinstance(node, ast.Subscript):
            return self.item(node, depth)
        if isinstance(node, ast.BinOp):
            return self.binary(node, depth)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node, depth)
        if isinstance(node, ast.BoolOp):
            return self.boolean(node, depth)
        if isinstance(node, ast.Compare):
            return self.comparison(node, depth)
        if isinstance(node, ast.Call):
            return self.call(node, depth)
        raise self.refused(node, node)

    def constant(self, node: ast.Constant) -> str | int | float | bool | None:
        value = node.value
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            # A lone surrogate has no UTF-8 form, so no journal and no backend could hold it.
            if any('\ud800' <= character <= '\udfff' for character in value):
                raise self.fault('this text holds half a character', node, 'remove the `\\ud...` escape')
            return value
        if isinstance(value, int) and abs(value) < _MAX_INT:
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        what = 'a number this large' if isinstance(value, (int, float)) else f'a {type(value).__name__} literal'
        raise self.fault(f'{what} is not allowed in an expression', node, 'use text, a number, True, False or None')

    def name(self, node: ast.Name) -> Tree:
        name = node.id
        if name in _NEEDS_NAME:
            raise self.fault(f'`{name}` needs a name after it', node, f'{name}: {ROOTS[name]}')
        if name in FUNCTIONS:
            raise self.fault(f'`{name}` is a function and must be called', node, f'write `{name}(...)`')
        self.check(name, node)
        return (name,) if name in ROOTS else ('var', name)

    def check(self, name: str, node: ast.AST) -> None:
        if name.startswith('__'):
            raise self.fault(f'`{name}`: names that start with `__` are not allowed', node, 'name a public attribute')

    def attribute(self, node: ast.Attribute, depth: int) -> Tree:
        name = node.attr
        self.check(name, node)
        base = node.value
        if not isinstance(base, ast.Name) or base.id not in _NEEDS_NAME:
            inner = self.tree(base, depth)
            if inner[0] in ('c', 'env', 'caller', 'version', 'label', 'key', 'elapsed'):
                raise self.fault(f'`.{name}`: text and numbers have no attributes here', node, _ALLOWED)
            return ('.', inner, name)
        if base.id == 'caller' and name not in _CALLER:
            raise self.fault(f'`caller.{name}` is not known', node, f'{ROOTS["caller"]}')
        if base.id == 'env' and _SECRET_WORDS.intersection(name.upper().split('_')):
            raise self.fault(f'`env.{name}` looks like a secret, and secrets are never recorded', node, 'remove it')
        return (base.id, name)

    def item(self, node: ast.Subscript, depth: int) -> Tree:
        base = node.value
        if isinstance(base, ast.Name) and base.id in _NEEDS_NAME:
            raise self.fault(f'`{base.id}` takes a name, not an item', node, f'{base.id}: {ROOTS[base.id]}')
        return ('[]', self.tree(base, depth), self.tree(node.slice, depth))

    def binary(self, node: ast.BinOp, depth: int) -> Tree:
        operator = _BINARY.get(type(node.op))
        if operator is None:
            raise self.refused(node.op, node)
        left, right = self.tree(node.left, depth), self.tree(node.right, depth)
        for side, tree in ((node.left, left), (node.right, right)):
            # `'x' * arg.n` builds as much text as the program's data says.
            if operator != '+' and tree[0] == 'c' and isinstance(tree[1], str):
                raise self.fault(f'`{operator}` does not take text', side, 'join texts with `+`')
        return (operator, left, right)

    def unary(self, node: ast.UnaryOp, depth: int) -> Tree:
        if isinstance(node.op, ast.Invert):
            raise self.refused(node.op, node)
        inner = self.tree(node.operand, depth)
        if isinstance(node.op, ast.Not):
            return ('not', inner)
        if inner[0] == 'c' and (isinstance(inner[1], (str, bool)) or inner[1] is None):
            raise self.fault('only a number can have a sign', node, _ALLOWED)
        if isinstance(node.op, ast.UAdd):
            return inner
        return ('c', -inner[1]) if inner[0] == 'c' else ('neg', inner)

    def boolean(self, node: ast.BoolOp, depth: int) -> Tree:
        operator = 'and' if isinstance(node.op, ast.And) else 'or'
        # One level for the whole chain would let its tree grow as deep as the text is long.
        if depth + len(node.values) > MAX_DEPTH:
            raise self.fault(f'this expression is nested deeper than {MAX_DEPTH} levels', node, 'simplify it')
        trees = [self.tree(value, depth + len(node.values) - 1) for value in node.values]
        result = trees[0]
        for tree in trees[1:]:
            result = (operator, result, tree)
        return result

    def comparison(self, node: ast.Compare, depth: int) -> Tree:
        operator = _COMPARE.get(type(node.ops[0]))
        if operator is None:
            raise self.refused(node.ops[0], node)
        if len(node.ops) > 1:
            raise self.fault('comparisons cannot be chained', node, 'write `a < b and b < c`')
        return (operator, self.tree(node.left, depth), self.tree(node.comparators[0], depth))

    def call(self, node: ast.Call, depth: int) -> Tree:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in FUNCTIONS:
            shown = f'`{ast.unparse(node.func)}()`' if depth < MAX_DEPTH else 'this'
            raise self.fault(f'{shown} cannot be called in an expression', node, _ALLOWED)
        fewest, most = FUNCTIONS[name]
        if node.keywords or not fewest <= len(node.args) <= most:
            many = f'{fewest}' if fewest == most else f'{fewest} to {most}'
            takes = f'`{name}()` takes {many} argument{"s" if most > 1 else ""}, none of them by name'
            raise self.fault(takes, node, f'write `{name}(...)`')
        if name == 'each':
            self.names(node.args[1:])
        return ('call', name, tuple(self.tree(argument, depth) for argument in node.args))

    def names(self, nodes: list[ast.expr]) -> None:
        for node in nodes:
            name = node.value if isinstance(node, ast.Constant) else None
            if not isinstance(name, str) or not name.isidentifier():
                raise self.fault('`each()` takes names here', node, "write `each(result, 'outputs', 'finish_reason')`")
            self.check(name, node)
