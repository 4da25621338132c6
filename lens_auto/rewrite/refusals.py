# SPDX-License-Identifier: Apache-2.0
"""Places that are left alone, and why: code that something other than Python reads, and what an edit could not keep."""

from __future__ import annotations

from _ast import AsyncFunctionDef, Attribute, Call, FunctionDef, Import, ImportFrom, Load, Name, Yield, YieldFrom

from lens_auto.rewrite.build import BUILTIN, CONTEXT
from lens_auto.rewrite.nodes import dotted, walk
from lens_auto.rewrite.scopes import own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import AST, Module

    from lens_auto.rewrite.scopes import Scope

# What reads a function's bytecode, or its source without our edit, and makes something else of it.
_READERS = ('torch.compile', 'torch.jit', 'torch._dynamo', 'torch.export', 'numba', 'triton', 'taichi')
_NOT_RUN = ', which does not run it as it is written; `force: true` edits it'
# Of a call to one of these the caller's frame is an argument: a function around it would be what it sees.
_LOOK_AT_CALLER = frozenset(
    (
        *('super', 'locals', 'globals', 'vars', 'dir', 'eval', 'exec', 'compile', 'breakpoint', '__import__'),
        *('sys._getframe', 'sys._getframemodulename', 'inspect.currentframe', 'inspect.stack', 'traceback.print_stack'),
        *('traceback.extract_stack', 'traceback.format_stack', 'pdb.set_trace', 'sys.exc_info', 'sys.exception'),
        'warnings.warn',
    )
)


class Refusals:
    """Answers for one module.

    Attributes:
        module: Why no place of the module is edited, or ''.
    """

    __slots__ = ('_names', '_read', 'module')

    def __init__(self, tree: Module):
        """See the class.

        Args:
            tree: The module.
        """
        self._names: dict[str, str] = {}
        self._read: dict[str, tuple[str, int]] = {}
        self.module = ''
        calls: list[Call] = []
        for node in walk(tree):
            if isinstance(node, (Import, ImportFrom)):
                self._import(node)
            if isinstance(node, Call):
                calls.append(node)
            elif name := _bound(node):
                self.module = f'the module has a {name} of its own, at line {getattr(node, "lineno", 0)}'
        for node in calls:
            self._passed(node)

    def _import(self, node: Import | ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ImportFrom):
                self._names[alias.asname or alias.name] = f'{"." * node.level}{node.module or ""}.{alias.name}'
            elif alias.asname:
                self._names[alias.asname] = alias.name

    def _full(self, node: AST) -> str:
        """The dotted name of an expression, with what the module imports under another name spelled out."""
        name = dotted(node.func if isinstance(node, Call) else node)
        first, dot, rest = name.partition('.')
        return self._names.get(first, first) + dot + rest

    def _reader(self, node: AST) -> str:
        full = self._full(node)
        return full if any(full == name or full.startswith(f'{name}.') for name in _READERS) else ''

    def _passed(self, node: Call) -> None:
        """Note what is handed to a reader by name: `torch.compile(step)`, `torch.jit.script(Model())`."""
        reader = self._reader(node)
        for value in node.args[:1] if reader else ():
            inner = value.func if isinstance(value, Call) else value
            name = inner.attr if isinstance(inner, Attribute) else inner.id if isinstance(inner, Name) else ''
            if name:
                self._read.setdefault(name, (reader, node.lineno))

    def of(self, scope: Scope, force: bool) -> str:
        """Why nothing in a scope is edited, or ''.

        Args:
            scope: The scope.
            force: The rule asks for an edit of code that is compiled, too.
        """
        if self.module or force:
            return self.module
        for node in scope.path:
            for decorator in node.decorator_list:
                reader = self._reader(decorator)
                if reader:
                    return f'{node.name} is decorated with {reader}{_NOT_RUN}'
            if node.name in self._read:
                reader, line = self._read[node.name]
                return f'{node.name} is given to {reader} at line {line}{_NOT_RUN}'
        return ''

    def of_call(self, node: Call) -> str:
        """Why a call is not edited, or ''.

        Args:
            node: The call.
        """
        full = self._full(node)
        if full in _LOOK_AT_CALLER:
            return f'{full} looks at the frame it is called from'
        return ''

    def of_function(self, node: FunctionDef | AsyncFunctionDef) -> str:
        """Why the body of a function is not edited, or ''.

        Args:
            node: The function.
        """
        names = {inner.id for inner in own(node.body) if isinstance(inner, Name)}
        if names & {'locals', 'vars', 'eval', 'exec'}:
            return f'{node.name} looks at all its variables, and reading an argument might change them (apply: wrap)'
        if any(isinstance(inner, (Yield, YieldFrom)) for inner in own(node.body, lambdas=False)):
            return f'{node.name} is a generator: its span cannot be opened in its own body (apply: wrap)'
        return ''


def _bound(node: AST) -> str:
    """The builtin that we need and that a node may give another meaning, or ''."""
    stored = node.attr if isinstance(node, Attribute) else node.id if isinstance(node, Name) else None
    if stored is not None and isinstance(getattr(node, 'ctx', None), Load):
        stored = None
    for each in (stored, getattr(node, 'arg', None), getattr(node, 'asname', None), getattr(node, 'name', None)):
        if each in (BUILTIN, CONTEXT):
            return each
    return ''
