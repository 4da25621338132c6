# SPDX-License-Identifier: Apache-2.0
"""What a dotted name in a module stands for, told from syntax trees across re-exports, aliases and base classes."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .source_tree import Module, SourceTree

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Found:
    """What a name stands for.

    Attributes:
        state: `found`, `missing`, or `opaque`: it may exist, but only running the program would tell.
        module: Where it is defined.
        detail: For `opaque`, why.
        parameters: Of a function: the names of its parameters. None where they are not known.
        open: Whether it takes further arguments by name.
        node: The class, if it is one.
    """

    state: str
    module: Module | None = None
    detail: str = ''
    parameters: tuple[str, ...] | None = None
    open: bool = False
    node: ast.ClassDef | None = None


_MISSING = Found('missing')


def _made_remote(value: ast.expr | None) -> ast.expr | None:
    """What is inside `ray.remote(X)` and `ray.remote(num_gpus=1)(X)`: that is what will run."""
    if not isinstance(value, ast.Call) or len(value.args) != 1 or value.keywords:
        return None
    maker = value.func
    if isinstance(maker, ast.Call) and not maker.args:
        maker = maker.func
    return value.args[0] if _dotted(maker) == ['ray', 'remote'] else None


@dataclass(slots=True)
class _Scope:
    """The names that a module or class body binds, in all its branches."""

    names: dict[str, list[ast.AST]] = field(default_factory=dict[str, list[ast.AST]])
    stars: list[ast.ImportFrom] = field(default_factory=list[ast.ImportFrom])


class StaticNames:
    """Looks names up in a source tree."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self._scopes: dict[int, _Scope] = {}

    def look_up(self, module: str, qualname: str) -> Found:
        """What `module:qualname` stands for."""
        return self._in_module(module, qualname.split('.'), frozenset())

    def defined(self, module: str, qualname: str) -> bool:
        """Whether the module's own text defines the function or class `qualname`."""
        found = self.tree.module(module)
        body: Sequence[ast.stmt] = found.tree.body if found and found.tree else ()
        *owners, last = qualname.split('.')
        for owner in owners:
            classes = [node for node in _statements(body) if isinstance(node, ast.ClassDef) and node.name == owner]
            body = [statement for node in classes for statement in node.body]
        return any(isinstance(node, (*_FUNCTIONS, ast.ClassDef)) and node.name == last for node in _statements(body))

    def qualnames(self, module: str) -> list[str]:
        """The functions, classes and methods that the module's own text defines."""
        found = self.tree.module(module)
        return list(_qualnames(found.tree.body, '')) if found and found.tree else []

    def manages(self, node: ast.ClassDef) -> bool:
        """Whether a class itself defines what makes it a context manager."""
        return {'__enter__', '__exit__'} <= self._scope(node).names.keys()

    def _in_module(self, name: str, parts: list[str], seen: frozenset[tuple[str, str]]) -> Found:
        step = (name, '.'.join(parts))
        module = self.tree.module(name)
        if module is None or step in seen:
            return _MISSING
        if module.tree is None:
            return Found('opaque', module, f'{name}: {module.opaque}')
        seen |= {step}
        scope = self._scope(module.tree)
        results = [self._bound(module, node, parts, seen) for node in _real(scope.names.get(parts[0], []))]
        if not results:
            results = [self._in_module(_origin(module, star), parts, seen) for star in scope.stars]
            if len(parts) > 1:
                results.append(self._in_module(f'{name}.{parts[0]}', parts[1:], seen))
            if '__getattr__' in scope.names:
                results.append(Found('opaque', module, f'{name} makes its names when they are asked for'))
        return _best(results)

    def _bound(self, module: Module, node: ast.AST, parts: list[str], seen: frozenset[tuple[str, str]]) -> Found:
        first, rest = parts[0], parts[1:]
        if isinstance(node, _FUNCTIONS):
            return Found('opaque', module, f'`{first}` is a function') if rest else _function(module, node)
        if isinstance(node, ast.ClassDef):
            return self._in_class(module, node, rest, seen) if rest else Found('found', module, node=node)
        if isinstance(node, ast.ImportFrom):
            original = next(alias.name for alias in node.names if (alias.asname or alias.name) == first)
            return self._imported(_origin(module, node), original, rest, seen)
        if isinstance(node, ast.Import):
            alias = next(alias for alias in node.names if (alias.asname or alias.name.split('.')[0]) == first)
            name = alias.name if alias.asname else first
            return self._in_module(name, rest, seen) if rest else Found('opaque', module, f'`{first}` is a module')
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        dotted = _dotted(_made_remote(value) or value)
        if dotted and dotted[0] != first:
            found = self._in_module(module.name, [*dotted, *rest], seen)
            if found.state == 'found':
                return found
        if rest:
            return Found('opaque', module, f'`{first}` is made when {module.name} runs')
        return Found('found', module)

    def _imported(self, origin: str, name: str, rest: list[str], seen: frozenset[tuple[str, str]]) -> Found:
        found = self._in_module(origin, [name, *rest], seen)
        if found.state == 'missing' and rest:
            found = self._in_module(f'{origin}.{name}', rest, seen)
        if found.state == 'missing' and self.tree.module(origin) is None:
            return Found('opaque', None, f'it comes from {origin}, which is not installed')
        return found

    def _in_class(
        self, module: Module, node: ast.ClassDef, parts: list[str], seen: frozenset[tuple[str, str]]
    ) -> Found:
        step = (f'{module.name}:{node.name}:{node.lineno}', '.'.join(parts))
        if step in seen:
            return _MISSING
        seen |= {step}
        own = _real(self._scope(node).names.get(parts[0], []))
        if own:
            return _best([self._member(module, node, member, parts, seen) for member in own])
        results: list[Found] = []
        if parts == ['__init__']:
            results.append(_generated(module, node))
        for base in node.bases:
            dotted = _dotted(base.value if isinstance(base, ast.Subscript) else base)
            found = self._in_module(module.name, dotted, seen) if dotted else Found('opaque')
            if found.node is not None and found.module is not None:
                results.append(self._in_class(found.module, found.node, parts, seen))
            elif dotted and len(dotted) == 1 and hasattr(builtins, dotted[0]) and found.state == 'missing':
                inherited = hasattr(getattr(builtins, dotted[0]), parts[0]) and dotted[0] != 'object'
                results.append(Found('found', module) if inherited else _MISSING)
            else:
                results.append(
                    Found('opaque', module, f'the base class `{ast.unparse(base)}` of {node.name} is out of reach')
                )
        return _best(results)

    def _member(
        self, module: Module, owner: ast.ClassDef, node: ast.AST, parts: list[str], seen: frozenset[tuple[str, str]]
    ) -> Found:
        dotted = _dotted(node.value) if isinstance(node, ast.Assign) else None
        if dotted and dotted[0] != parts[0]:
            # `stop = finish` in a class body: the other method, of this class or of the module.
            found = self._in_class(module, owner, [*dotted, *parts[1:]], seen)
            if found.state == 'found':
                return found
        return self._bound(module, node, parts, seen)

    def _scope(self, node: ast.Module | ast.ClassDef) -> _Scope:
        scope = self._scopes.get(id(node))
        if scope is None:
            scope = self._scopes[id(node)] = _Scope()
            for statement in _statements(node.body):
                if isinstance(statement, ast.ImportFrom) and statement.names[0].name == '*':
                    scope.stars.append(statement)
                for name in _binds(statement):
                    scope.names.setdefault(name, []).append(statement)
        return scope


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


# Decorators that keep the parameters, or that the hook looks through.
_TRANSPARENT = frozenset(
    ('staticmethod', 'classmethod', 'property', 'contextmanager', 'asynccontextmanager', 'cached_property', 'cache')
    + ('lru_cache', 'abstractmethod', 'override', 'final')
)


def _best(results: Sequence[Found]) -> Found:
    """Of several branches, the one that exists; else one that may."""
    found = [result for result in results if result.state == 'found']
    if len(found) > 1 and all(result.parameters is not None for result in found):
        # Which branch runs is not known here: a parameter that any of them takes is not held against the rule.
        names = tuple(dict.fromkeys(name for result in found for name in result.parameters or ()))
        return Found('found', found[-1].module, parameters=names, open=any(result.open for result in found))
    opaque = [result for result in results if result.state == 'opaque']
    return (found[-1:] or opaque or [_MISSING])[0]


def _function(module: Module, node: _Function) -> Found:
    names = {(_dotted(_called(decorator)) or ['?'])[-1] for decorator in node.decorator_list}
    if not names <= _TRANSPARENT:
        return Found('found', module)
    takes = node.args
    parameters = [argument.arg for argument in (*takes.posonlyargs, *takes.args, *takes.kwonlyargs)]
    parameters += [argument.arg for argument in (takes.vararg, takes.kwarg) if argument]
    return Found('found', module, parameters=tuple(parameters), open=takes.kwarg is not None)


def _generated(module: Module, node: ast.ClassDef) -> Found:
    """The `__init__` that a class decorator writes from the annotated names of the class."""
    if not node.decorator_list:
        return _MISSING
    fields = [
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]
    names = {(_dotted(_called(decorator)) or ['?'])[-1] for decorator in node.decorator_list}
    if 'dataclass' in names:
        return Found('found', module, parameters=('self', *fields), open=bool(node.bases))
    return Found('opaque', module, f'a decorator of {node.name} may write its __init__')


def _real(nodes: list[ast.AST]) -> list[ast.AST]:
    """The definitions without those that only describe a call to type checkers, and without a property's setter."""
    return [node for node in nodes if not (isinstance(node, _FUNCTIONS) and _RETOLD.search(_decorators(node)))]


_RETOLD = re.compile(r'\boverload\b|\.(setter|deleter|register)\b')


def _decorators(node: _Function) -> str:
    return ' '.join(ast.unparse(decorator) for decorator in node.decorator_list)


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _origin(module: Module, node: ast.ImportFrom) -> str:
    """The full name of the module that an import statement names."""
    if not node.level:
        return node.module or ''
    parts = module.package.split('.')
    base = parts[: len(parts) - (node.level - 1)]
    return '.'.join([*base, *([node.module] if node.module else [])])


def _dotted(node: ast.expr | None) -> list[str] | None:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return [*inner, node.attr] if inner else None
    return None


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of its branches: `if`, `try`, `with` and loops bind in the same scope."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and 'TYPE_CHECKING' in ast.unparse(node.test):
            # Those names exist for type checkers alone.
            yield from _statements(node.orelse)
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            for name in ('body', 'orelse', 'finalbody'):
                yield from _statements(getattr(node, name, ()))
            for handler in getattr(node, 'handlers', ()):
                yield from _statements(handler.body)


def _binds(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names if alias.name != '*')
    elif isinstance(node, ast.Import):
        yield from (alias.asname or alias.name.split('.')[0] for alias in node.names)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
    elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
        yield node.target.id


def _qualnames(body: Sequence[ast.stmt], prefix: str) -> Iterator[str]:
    for node in _statements(body):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from _qualnames(node.body, f'{prefix}{node.name}.')
