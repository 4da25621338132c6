# SPDX-License-Identifier: Apache-2.0
"""What of a file rules can be about: functions and classes by qualified name, `with` blocks, loops and calls."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import libcst as cst

from lens_auto.codemod.source import Source, called, dotted

Holder: TypeAlias = 'cst.FunctionDef | cst.ClassDef'

_COMPILED = ('torch.compile', 'compile', 'torch.jit.script', 'jit.script', 'script', 'torch.jit.script_method')
_COMPILERS = ('torch.compile', 'torch.jit.script')
_MANAGERS = ('contextmanager', 'contextlib.contextmanager', 'asynccontextmanager', 'contextlib.asynccontextmanager')


class Scope(NamedTuple):
    """A function, a class, or the module itself.

    Attributes:
        node: Its definition; None for the module.
        qualname: Its qualified name, without `<locals>`; '' for the module.
        name: Its own name.
        up: What it is defined in.
    """

    node: Holder | None
    qualname: str
    name: str
    up: Scope | None

    @property
    def function(self) -> cst.FunctionDef | None:
        """The definition, if it is a function's."""
        return self.node if isinstance(self.node, cst.FunctionDef) else None

    @property
    def is_class(self) -> bool:
        """Whether it is a class."""
        return isinstance(self.node, cst.ClassDef)

    @property
    def nested(self) -> bool:
        """Whether it is defined in a function."""
        up = self.up
        while up is not None:
            if up.function is not None:
                return True
            up = up.up
        return False


class Placed(NamedTuple):
    """A statement and what it is in."""

    node: cst.CSTNode
    scope: Scope


class Call(NamedTuple):
    """A call that is a statement of its own, or the whole right side of one.

    Attributes:
        node: The call.
        line: The line of simple statements that holds it, alone on it.
        scope: What it is in.
        block: The statements it is one of.
    """

    node: cst.Call
    line: cst.SimpleStatementLine
    scope: Scope
    block: tuple[cst.CSTNode, ...]


class Index(cst.CSTVisitor):
    """Everything in a file that an edit can be made at.

    Attributes:
        definitions: Functions and classes, in order.
        withs: `with` statements.
        loops: `for` and `while` statements.
        calls: Calls that are statements.
        every_call: All calls but those inside f-strings, by where they begin and end.
        names: All names that occur.
        imports: The packages that are imported, wherever that is done.
        made: Of variables and attributes that are set to what a call gives, or annotated: the names of what makes them.
    """

    def __init__(self, source: Source):
        """Walk a file.

        Args:
            source: The file.
        """
        super().__init__()
        self._source = source
        self._scope = Scope(None, '', '<module>', None)
        self.definitions: list[Scope] = []
        self.withs: list[Placed] = []
        self.loops: list[Placed] = []
        self.calls: list[Call] = []
        self.every_call: dict[tuple[int, int], Placed] = {}
        self.names: set[str] = set()
        self.imports: set[str] = set()
        self.made: dict[str, set[str]] = {}
        self._compiled: set[str] = set()
        self._deleted: set[str] = set()
        self._yields: list[int] = []
        self._formatted = 0
        self._blocks: list[tuple[cst.CSTNode, ...]] = [tuple(source.tree.body)]
        source.walk(self)

    def _enter(self, node: Holder) -> None:
        up = self._scope
        self._scope = Scope(node, f'{up.qualname}.{node.name.value}'.lstrip('.'), node.name.value, up)
        self.definitions.append(self._scope)

    def _leave(self) -> None:
        assert self._scope.up is not None
        self._scope = self._scope.up

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """See libcst."""
        self._enter(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        """See libcst."""
        self._leave()

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """See libcst."""
        self._enter(node)

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        """See libcst."""
        self._leave()

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        """See libcst."""
        self._blocks.append(tuple(node.body))

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock) -> None:
        """See libcst."""
        self._blocks.pop()

    def visit_With(self, node: cst.With) -> None:
        """See libcst."""
        self.withs.append(Placed(node, self._scope))

    def visit_For(self, node: cst.For) -> None:
        """See libcst."""
        self.loops.append(Placed(node, self._scope))

    def visit_While(self, node: cst.While) -> None:
        """See libcst."""
        self.loops.append(Placed(node, self._scope))

    def visit_Name(self, node: cst.Name) -> None:
        """See libcst."""
        self.names.add(node.value)

    def visit_Import(self, node: cst.Import) -> None:
        """See libcst."""
        self.imports.update(dotted(each.name).partition('.')[0] for each in node.names)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        """See libcst."""
        if node.module is not None and not node.relative:
            self.imports.add(dotted(node.module).partition('.')[0])

    def visit_Assign(self, node: cst.Assign) -> None:
        """See libcst."""
        for each in node.targets:
            self._makes(each.target, node.value if isinstance(node.value, cst.Call) else None)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        """See libcst."""
        self._makes(node.target, node.annotation.annotation)

    def visit_Param(self, node: cst.Param) -> None:
        """See libcst."""
        if node.annotation is not None:
            self._makes(node.name, node.annotation.annotation)

    def _makes(self, target: cst.BaseExpression, value: cst.BaseExpression | None) -> None:
        maker = '' if value is None else called(value)
        if maker and dotted(target):
            self.made.setdefault(dotted(target), set()).add(maker.rpartition('.')[2])

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        """See libcst."""
        if len(node.body) != 1:
            return
        [statement] = node.body
        value = statement.value if isinstance(statement, (cst.Expr, cst.Assign, cst.AnnAssign)) else None
        if isinstance(value, cst.Await):
            value = value.expression
        if isinstance(value, cst.Call):
            self.calls.append(Call(value, node, self._scope, self._blocks[-1]))

    def visit_Call(self, node: cst.Call) -> None:
        """See libcst."""
        if not self._formatted:
            self.every_call[self._source.span(node)] = Placed(node, self._scope)
        if dotted(node.func) in _COMPILERS and node.args and isinstance(node.args[0].value, cst.Name):
            self._compiled.add(node.args[0].value.value)

    def bound(self, node: cst.CSTNode, scope: Scope) -> frozenset[str]:
        """Names that are bound where something stands: parameters, and the variables of the loops it is in.

        Args:
            node: A definition, of which the parameters count, or a statement.
            scope: What it is in; for a definition, itself.
        """
        found: set[str] = set()
        if scope.function is not None:
            given = scope.function.params
            found.update(each.name.value for each in (*given.posonly_params, *given.params, *given.kwonly_params))
        start = self._source.span(node)[0]
        for loop in self.loops:
            if isinstance(loop.node, cst.For) and loop.scope is scope and isinstance(loop.node.target, cst.Name):
                first, last = self._source.span(loop.node.body)
                if first <= start < last or loop.node is node:
                    found.add(loop.node.target.value)
        return frozenset(found - self._deleted)

    def visit_Del(self, node: cst.Del) -> None:
        """See libcst."""
        targets = node.target.elements if isinstance(node.target, cst.Tuple) else [node.target]
        for each in targets:
            target = each.value if isinstance(each, cst.Element) else each
            if isinstance(target, cst.Name):
                self._deleted.add(target.value)

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        """See libcst. Before Python 3.12 its quotes cannot stand inside it."""
        self._formatted += 1

    def leave_FormattedString(self, original_node: cst.FormattedString) -> None:
        """See libcst."""
        self._formatted -= 1

    def yields_between(self, start: int, end: int) -> bool:
        """Whether there is a `yield` in a range.

        Args:
            start: Where it begins.
            end: Where it ends.
        """
        return any(start <= offset < end for offset in self._yields)

    def visit_Yield(self, node: cst.Yield) -> None:
        """See libcst."""
        self._yields.append(self._source.span(node)[0])

    def compiled(self, scope: Scope | None) -> str:
        """What reads the source or the bytecode of a function, '' for nothing: the function is better left alone.

        Args:
            scope: The function, or what is inside it.
        """
        while scope is not None and scope.node is not None:
            for decorator in scope.node.decorators:
                name = called(decorator.decorator)
                if name in _COMPILED:
                    return f'{name} reads {scope.name}'
            if scope.function is not None and scope.name in self._compiled:
                return f'torch.compile or torch.jit.script reads {scope.name}'
            scope = scope.up
        return ''


def held(node: cst.CSTNode) -> bool:
    """Whether a function is the generator of a context manager.

    Args:
        node: The function or class.
    """
    return isinstance(node, cst.FunctionDef) and any(
        called(decorator.decorator) in _MANAGERS for decorator in node.decorators
    )


class _Yields(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found = False
        self.awaits = False

    def visit_Yield(self, node: cst.Yield) -> None:
        self.found = True

    def visit_Await(self, node: cst.Await) -> None:
        self.awaits = True

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False


def yields(node: cst.CSTNode) -> bool:
    """Whether a block yields, functions inside it left out.

    Args:
        node: The block, or a function's body.
    """
    visitor = _Yields()
    node.visit(visitor)
    return visitor.found
