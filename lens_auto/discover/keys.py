# SPDX-License-Identifier: Apache-2.0
"""The keys of what a program logs: followed from the logging call back to where they are written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from . import words
from .calls import CallGraph
from .reading import Call, Function, Unit, dotted, own_nodes

_HOLDS = re.compile(r'(.*_)?(metrics?|stats|logs?|status|log_dict|logs_dict|scalars|summary)(_.*)?')
_KEY = re.compile(r'[\w./\-() *]{1,64}')
_NO_KEYS = re.compile(
    r'(?!tim)(.*/)?(\w+_)?step|(.*_)?(config|name|path|_ids?|prompt|prompts|text|message|version|date|run|completions?|epoch|args|sources?|uids?|early_stop|done)$'
)
# An empty one of these gathers values of which a mean is logged; a dict of them is itself a holder of holders.
_GATHERS = ('defaultdict', 'deque', 'dict')
_DEEPEST = 4
_MOST = 24
_SHARED = 3
_BESIDE = 6
_ALONE = 12


@dataclass(frozen=True)
class Key:
    """A key of what is logged, or a pattern of keys.

    Attributes:
        text: It.
        name: The metric's name; None for one made from the key.
        unit: Its unit, empty if it has none.
        place: Where it is written, for the comment.
    """

    text: str
    name: str | None
    unit: str
    place: str


class Keys:
    """The keys that some files write.

    Args:
        graph: Who calls whom.
    """

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph

    def of_calls(self, calls: Iterable[tuple[Unit, Call]], mapping: str, position: int, rest: bool) -> dict[str, str]:
        """The keys that calls of a logger give it, each with the place it is written at.

        Args:
            calls: The calls, with their files.
            mapping: The parameter that holds the mapping.
            position: Where that parameter is among the positional ones.
            rest: Whether it is `**mapping`: then keyword arguments are the keys.
        """
        found: dict[str, str] = {}
        for unit, call in calls:
            holder = self.graph.holder(call)
            values: list[ast.expr] = []
            for keyword in call.keywords:
                if keyword.arg is None or keyword.arg == mapping:
                    values.append(keyword.value)
                elif rest:
                    _put(found, keyword.arg, keyword.value, unit)
            if not rest and position < len(call.arguments):
                values.append(call.arguments[position])
            for value in values:
                self._follow(value, unit, holder, found, _DEEPEST)
        return found

    def _follow(self, value: ast.expr, unit: Unit, holder: Function | None, found: dict[str, str], depth: int) -> None:
        """Note the keys of a mapping that an expression makes."""
        if depth == 0:
            return
        if isinstance(value, ast.Dict):
            for key, item in zip(value.keys, value.values, strict=True):
                if key is None:
                    self._follow(item, unit, holder, found, depth - 1)
                else:
                    _put_node(found, key, item, unit)
        elif isinstance(value, ast.DictComp):
            self._follow_comprehension(value, unit, holder, found, depth)
        elif isinstance(value, (ast.BoolOp, ast.BinOp)):
            # `given or {}`, `these | those`
            for part in value.values if isinstance(value, ast.BoolOp) else (value.left, value.right):
                self._follow(part, unit, holder, found, depth - 1)
        elif isinstance(value, ast.Await):
            self._follow(value.value, unit, holder, found, depth)
        elif isinstance(value, ast.Call):
            self._follow_call(value, unit, holder, found, depth)
        elif isinstance(value, (ast.Name, ast.Attribute)):
            self._follow_name(dotted(value), unit, holder, found, depth)

    def _follow_comprehension(
        self, value: ast.DictComp, unit: Unit, holder: Function | None, found: dict[str, str], depth: int
    ) -> None:
        if isinstance(value.key, ast.JoinedStr):
            _put_node(found, value.key, value.value, unit)
            return
        # `{k: mean(v) for k, v in stats.items()}` has the keys of `stats`.
        iterated = value.generators[0].iter
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute):
            self._follow(iterated.func.value, unit, holder, found, depth - 1)

    def _follow_call(
        self, node: ast.Call, unit: Unit, holder: Function | None, found: dict[str, str], depth: int
    ) -> None:
        if dotted(node.func) == 'dict':
            for keyword in node.keywords:
                if keyword.arg:
                    _put(found, keyword.arg, keyword.value, unit)
        call = next((call for call in (holder or unit).calls if call.node is node), None)
        for callee in self.graph.callees(call, unit) if call else ():
            for inner in own_nodes(callee.node.body):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    parts = inner.value.elts if isinstance(inner.value, ast.Tuple) else [inner.value]
                    for part in parts:
                        self._follow(part, callee.unit, callee, found, depth - 1)

    def _follow_name(self, name: str, unit: Unit, holder: Function | None, found: dict[str, str], depth: int) -> None:
        """Note what a scope puts into a variable or attribute; of `self` what the whole file does."""
        scoped = holder is not None and not name.startswith('self.')
        nodes = own_nodes(holder.node.body) if holder is not None and scoped else unit.source.telling
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Subscript) and _same(target.value, name):
                        _put_node(found, target.slice, node.value, unit)
                    elif _same(target, name) or (
                        isinstance(target, ast.Tuple) and any(_same(e, name) for e in target.elts)
                    ):
                        if node.value is not None:
                            self._follow(node.value, unit, holder, found, depth - 1)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == 'update':
                if _same(node.func.value, name):
                    for argument in node.args:
                        self._follow(argument, unit, holder, found, depth - 1)
                    for keyword in node.keywords:
                        if keyword.arg:
                            _put(found, keyword.arg, keyword.value, unit)


def _same(node: ast.expr, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) == name


def anywhere(units: Sequence[Unit]) -> dict[str, str]:
    """The keys that some files put into anything that is called like metrics, each with its place."""
    found: dict[str, str] = {}
    for unit in sorted(units, key=lambda unit: (words.aside(unit.module), unit.shown)):
        for node in unit.source.telling:
            _put_all(found, node, unit)
    return found


def _put_all(found: dict[str, str], node: ast.AST, unit: Unit) -> None:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript) and _holds(target.value) and node.value is not None:
                _put_node(found, target.slice, node.value, unit)
            elif isinstance(node.value, ast.Dict) and _holds(target):
                _put_dict(found, node.value, unit)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        value = node.func.value
        if node.func.attr in ('append', 'extend') and isinstance(value, ast.Subscript) and _holds(value.value):
            _put_node(found, value.slice, node.args[0] if node.args else None, unit)
        elif node.func.attr == 'update' and _holds(value):
            for argument in node.args:
                if isinstance(argument, ast.Dict):
                    _put_dict(found, argument, unit)
    elif isinstance(node, ast.FunctionDef) and _HOLDS.fullmatch(node.name):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return) and isinstance(inner.value, ast.Dict):
                _put_dict(found, inner.value, unit)


def _holds(node: ast.expr) -> bool:
    return _HOLDS.fullmatch(words.plain(dotted(node).rpartition('.')[2])) is not None


def _put_dict(found: dict[str, str], node: ast.Dict, unit: Unit) -> None:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None:
            _put_node(found, key, value, unit)


def _put_node(found: dict[str, str], key: ast.expr, value: ast.expr | None, unit: Unit) -> None:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        _put(found, key.value, value if value is not None else key, unit)
    elif isinstance(key, ast.JoinedStr) and isinstance(key.values[0], ast.Constant):
        # `f"timing/{label}"` is `timing/*`; what begins with a variable could be anything.
        text = ''.join(str(part.value) if isinstance(part, ast.Constant) else '*' for part in key.values)
        _put(found, text, value if value is not None else key, unit)


def _put(found: dict[str, str], key: str, value: ast.expr, unit: Unit) -> None:
    if _KEY.fullmatch(key) and not _NO_KEYS.fullmatch(key) and _number(value):
        found.setdefault(key, f'{unit.shown}:{value.lineno}')


def _number(value: ast.expr) -> bool:
    """Whether a value may be a number, or an empty list that gathers some."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    if isinstance(value, ast.Call):
        return dotted(value.func).rpartition('.')[2] not in (*_GATHERS, 'list', 'str', 'join')
    return not isinstance(value, (ast.JoinedStr, ast.Dict, ast.DictComp, ast.ListComp)) and not (
        isinstance(value, (ast.List, ast.Tuple)) and value.elts
    )


def named(places: dict[str, str]) -> list[Key]:
    """The keys as metrics: known ones by their known names first, then patterns, then the rest, as many as are read."""
    known: list[Key] = []
    per_name: dict[str, int] = {}
    others: list[str] = []
    for key, place in places.items():
        metric = None if '*' in key else words.of_metric(key)
        if metric is None:
            others.append(key)
        elif per_name.get(metric[0], 0) < _SHARED:
            per_name[metric[0]] = per_name.get(metric[0], 0) + 1
            known.append(Key(key, metric[0], metric[1], place))
    order = {name: index for index, name in enumerate(dict.fromkeys(key.name for key in known))}
    known.sort(key=lambda key: order[key.name])
    beside = {key.text.partition('/')[0] for key in known if '/' in key.text}
    return [*known, *_patterns(others, places, beside)][:_MOST]


def _patterns(keys: list[str], places: dict[str, str], beside: set[str]) -> Iterator[Key]:
    """Keys that share what stands before a slash as a pattern, the largest first.

    Args:
        keys: The keys.
        places: Where each is written.
        beside: What stands before the slash in keys of known names: a pattern would record those twice.
    """
    shared: dict[str, list[str]] = {}
    for key in keys:
        prefix, slash, _ = key.partition('/')
        shared.setdefault(prefix + slash if slash else '', []).append(key)
    alone = shared.pop('', [])
    for prefix, members in sorted(shared.items(), key=lambda item: (-len(item[1]), item[0])):
        if prefix.rstrip('/') in beside:
            alone += members[:_BESIDE]
        elif '*' not in prefix and (len(members) >= _SHARED or f'{prefix}*' in members):
            yield Key(f'{prefix}*', None, _unit(prefix), places[members[0]])
        else:
            alone += members
    for key in [key for key in alone if '*' not in key][:_ALONE]:
        yield Key(key, None, _unit(key), places[key])


def _unit(key: str) -> str:
    if re.search(r'_ms(/|$)', key):
        return 'ms'
    return 's' if re.search(r'(^|[_/])(time|times|timing|seconds|secs?|s)([_/].*)?/?$', key) else ''
