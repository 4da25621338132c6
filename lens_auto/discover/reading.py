# SPDX-License-Identifier: Apache-2.0
"""What a file says, as far as seams go: functions, classes, calls, loops, and the blocks that calls stand in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .sources import Source

FunctionNode: TypeAlias = 'ast.FunctionDef | ast.AsyncFunctionDef'
LoopNode: TypeAlias = 'ast.For | ast.AsyncFor | ast.While'
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)

# These take a function and have it called: in a thread, as a task, in another process.
_RUNNERS = frozenset(('to_thread', 'submit', 'run_in_executor', 'partial', 'Thread', 'map', 'run_in_thread'))


@dataclass(eq=False)
class Call:
    """A call.

    Attributes:
        name: The last part of what is called: `generate` of `self.engine.generate.remote(x)`.
        receiver: What stands before it: `self.engine`; empty for a plain name.
        node: The call's node, or the argument that names a function to be called later.
        loops: The loops around it, the outermost first.
        blocks: The calls of the `with` blocks around it, the outermost first.
        remote: Whether it asks a Ray actor or task.
        entered: Whether it makes the context manager of a `with`.
    """

    name: str
    receiver: str
    node: ast.expr
    loops: tuple[Loop, ...]
    blocks: tuple[Call, ...]
    remote: bool = False
    entered: bool = False

    @property
    def line(self) -> int:
        """Where it is."""
        return self.node.lineno

    @property
    def arguments(self) -> list[ast.expr]:
        """Its positional arguments."""
        return self.node.args if isinstance(self.node, ast.Call) else []

    @property
    def keywords(self) -> list[ast.keyword]:
        """Its keyword arguments."""
        return self.node.keywords if isinstance(self.node, ast.Call) else []


@dataclass(eq=False)
class Loop:
    """A loop, with the function it is in; None at module level."""

    node: LoopNode
    unit: Unit
    function: Function | None
    outer: Loop | None

    @property
    def line(self) -> int:
        """Where it starts."""
        return self.node.lineno

    @property
    def calls(self) -> Iterator[Call]:
        """All calls in it, nested loops included."""
        holder = self.function or self.unit
        return (call for call in holder.calls if self in call.loops)


@dataclass(eq=False)
class Class:
    """A class."""

    unit: Unit
    name: str
    node: ast.ClassDef
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    methods: dict[str, Function] = field(default_factory=dict[str, 'Function'])
    remote: bool = False


@dataclass(eq=False)
class Function:
    """A function or method.

    Attributes:
        nested: Whether it is defined in another function, where no target reaches it.
        inner: The functions defined in it, by name.
    """

    unit: Unit
    qualname: str
    node: FunctionNode
    owner: Class | None
    nested: bool
    outer: Function | None
    decorators: tuple[str, ...]
    calls: list[Call] = field(default_factory=list[Call])
    loops: list[Loop] = field(default_factory=list[Loop])
    inner: dict[str, Function] = field(default_factory=dict[str, 'Function'])

    @property
    def name(self) -> str:
        """Its own name."""
        return self.node.name

    @property
    def line(self) -> int:
        """Where its `def` is."""
        return self.node.lineno

    @property
    def target(self) -> str:
        """What a rule calls it."""
        return f'{self.unit.module}:{self.qualname}'

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, `self` included."""
        takes = self.node.args
        return [argument.arg for argument in (*takes.posonlyargs, *takes.args, *takes.kwonlyargs)]


@dataclass(eq=False)
class Unit:
    """One file."""

    source: Source
    functions: list[Function] = field(default_factory=list[Function])
    classes: list[Class] = field(default_factory=list[Class])
    calls: list[Call] = field(default_factory=list[Call])
    loops: list[Loop] = field(default_factory=list[Loop])
    imports: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    @property
    def module(self) -> str:
        """What targets call it."""
        return self.source.module

    @property
    def shown(self) -> str:
        """What comments call it."""
        return self.source.shown


def dotted(node: ast.expr | None) -> str:
    """A dotted name as text; what is not one, as nearly as that goes: `Timer().context` is `Timer.context`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f'{dotted(node.value)}.{node.attr}'.lstrip('.')
    if isinstance(node, (ast.Call, ast.Subscript, ast.Await)):
        return dotted(node.func if isinstance(node, ast.Call) else node.value)
    return ''


def own_nodes(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a body that belong to its own scope."""
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def read_unit(source: Source) -> Unit:
    """What a file says."""
    unit = Unit(source)
    _Walk(unit).block(source.tree.body)
    for node in source.telling:
        if isinstance(node, ast.Import):
            for alias in node.names:
                unit.imports[alias.asname or alias.name.partition('.')[0]] = (alias.name, '')
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(source, node)
            for alias in node.names:
                unit.imports[alias.asname or alias.name] = (origin, alias.name)
    return unit


def _origin(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ''
    package = source.module if source.path.endswith('__init__.py') else source.module.rpartition('.')[0]
    parts = package.split('.')
    return '.'.join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


class _Walk:
    """Walks one scope; a new one for each function and class body."""

    def __init__(self, unit: Unit, function: Function | None = None, owner: Class | None = None) -> None:
        self.unit = unit
        self.function = function
        self.owner = owner
        self.loops: tuple[Loop, ...] = ()
        self.blocks: tuple[Call, ...] = ()

    def block(self, body: Sequence[ast.AST]) -> None:
        for node in body:
            self.node(node)

    def node(self, node: ast.AST) -> None:
        if isinstance(node, FUNCTIONS):
            self.define(node)
        elif isinstance(node, ast.ClassDef):
            self.define_class(node)
        elif isinstance(node, LOOPS):
            self.loop(node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            self.enter(node)
        elif isinstance(node, ast.expr):
            # Not by recursion: a sum of a thousand terms is a thousand deep.
            for part in ast.walk(node):
                if isinstance(part, ast.Call):
                    self.call(part)
        else:
            self.block(list(ast.iter_child_nodes(node)))

    def qualified(self, name: str) -> str:
        outer = self.function.qualname if self.function else ''
        if self.owner is not None:
            outer = f'{outer}.{self.owner.name}'.lstrip('.')
        return f'{outer}.{name}'.lstrip('.')

    def define(self, node: FunctionNode) -> None:
        decorators = tuple(dotted(decorator) for decorator in node.decorator_list)
        owner = self.owner
        qualname = self.qualified(node.name)
        outer = self.function if owner is None else None
        function = Function(self.unit, qualname, node, owner, self.function is not None, outer, decorators)
        self.unit.functions.append(function)
        if owner is not None:
            # Of a property's getter and setter, or of two branches, the first counts.
            owner.methods.setdefault(node.name, function)
        elif self.function is not None:
            self.function.inner[node.name] = function
        self.block(node.decorator_list)
        _Walk(self.unit, function).block(node.body)

    def define_class(self, node: ast.ClassDef) -> None:
        decorators = tuple(dotted(decorator) for decorator in node.decorator_list)
        found = Class(self.unit, node.name, node, tuple(dotted(base) for base in node.bases), decorators)
        found.remote = any(name in ('ray.remote', 'remote') for name in decorators)
        self.unit.classes.append(found)
        self.block(node.decorator_list)
        _Walk(self.unit, self.function, found).block(node.body)

    def loop(self, node: LoopNode) -> None:
        loop = Loop(node, self.unit, self.function, self.loops[-1] if self.loops else None)
        (self.function or self.unit).loops.append(loop)
        if isinstance(node, ast.While):
            self.node(node.test)
        else:
            self.node(node.iter)
        before, self.loops = self.loops, (*self.loops, loop)
        self.block(node.body)
        self.loops = before
        self.block(node.orelse)

    def enter(self, node: ast.With | ast.AsyncWith) -> None:
        before = self.blocks
        for item in node.items:
            call = self.node_call(item.context_expr)
            if call is not None:
                call.entered = True
                self.blocks = (*self.blocks, call)
        self.block(node.body)
        self.blocks = before

    def node_call(self, node: ast.expr) -> Call | None:
        self.block(list(ast.iter_child_nodes(node)))
        return self.call(node) if isinstance(node, ast.Call) else None

    def call(self, node: ast.Call) -> Call | None:
        function, remote = node.func, False
        if isinstance(function, ast.Attribute) and function.attr == 'remote':
            inner = function.value
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == 'options':
                inner = inner.func.value
            if isinstance(inner, (ast.Name, ast.Attribute)) and dotted(inner) != 'ray':
                function, remote = inner, True
        noted = self.note(function, node, remote)
        if noted is not None and noted.name in _RUNNERS:
            for argument in (*node.args, *(k.value for k in node.keywords if k.arg in ('target', 'func'))):
                if isinstance(argument, (ast.Name, ast.Attribute)):
                    self.note(argument, argument, False)
        return noted

    def note(self, function: ast.expr, node: ast.expr, remote: bool) -> Call | None:
        if isinstance(function, ast.Attribute):
            name, receiver = function.attr, dotted(function.value)
        elif isinstance(function, ast.Name):
            name, receiver = function.id, ''
        else:
            return None
        call = Call(name, receiver, node, self.loops, self.blocks, remote)
        (self.function or self.unit).calls.append(call)
        return call
