# SPDX-License-Identifier: Apache-2.0
"""Which function calls which, as far as names tell: nothing is imported, so what an object is stays a guess."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from . import words
from .reading import Call, Class, Function, Unit, dotted

# A method of one of these names may be anyone's; only a receiver that names the class tells.
_ANYONES = frozenset(
    (
        'get',
        'set',
        'update',
        'append',
        'items',
        'keys',
        'values',
        'step',
        'run',
        'add',
        'put',
        'join',
        'log',
        'close',
        'start',
    )
    + (
        'stop',
        'forward',
        'to',
        'copy',
        'pop',
        'write',
        'read',
        'save',
        'load',
        'reset',
        'train',
        'eval',
        'sample',
        'clear',
        'send',
    )
    + (
        'call',
        'apply',
        'init',
        'wait',
        'submit',
        'split',
        'format',
        'fit',
        'state_dict',
        'load_state_dict',
        'size',
        'mean',
    )
)
_MOST_NAMESAKES = 8


class CallGraph:
    """The functions of a code base and who calls them.

    Attributes:
        units: The files.
        functions: All functions, in the order of the files.
    """

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = units
        self.functions = [function for unit in units for function in unit.functions]
        self.classes: dict[str, list[Class]] = {}
        for unit in units:
            for found in unit.classes:
                self.classes.setdefault(found.name, []).append(found)
        for unit in units:
            for name in _made_actors(unit):
                for found in self.classes.get(name, ()):
                    found.remote = True
        self._modules = {unit.module for unit in units}
        self._methods: dict[str, list[Function]] = {}
        self._plain: dict[str, list[Function]] = {}
        for function in self.functions:
            if function.owner is not None:
                self._methods.setdefault(function.name, []).append(function)
            elif not function.nested:
                self._plain.setdefault(function.name, []).append(function)
        self._named: dict[tuple[str, str], Function] = {
            (function.unit.module, function.qualname): function for function in reversed(self.functions)
        }
        self._held = _Held(units, self.classes)
        self._called: dict[Call, tuple[Function, ...]] = {}
        self._holders: dict[Call, Function | None] = {}
        self._callers: dict[Function, list[Call]] | None = None
        self._below: dict[tuple[Function, int, bool], frozenset[Function]] = {}
        for unit in units:
            for call in unit.calls:
                self._holders[call] = None
        for function in self.functions:
            for call in function.calls:
                self._holders[call] = function

    def bases(self, found: Class) -> list[Class]:
        """The base classes of a class that are in the code base, by name."""
        return [
            base for name in found.bases for base in self.classes.get(name.rpartition('.')[2], ()) if base is not found
        ]

    def lineage(self, found: Class) -> list[Class]:
        """A class and all above it, itself first."""
        line = [found]
        for one in line:
            line += [base for base in self.bases(one) if base not in line]
        return line

    def held(self, unit: Unit, name: str) -> list[Class]:
        """The classes whose objects a name or attribute of a file holds."""
        return self._held.classes(unit, name)

    def holder(self, call: Call) -> Function | None:
        """The function a call stands in; None at module level."""
        return self._holders[call]

    def callees(self, call: Call, unit: Unit) -> tuple[Function, ...]:
        """What a call may call."""
        if call not in self._called:
            self._called[call] = tuple(self._resolve(call, unit, self._holders[call]))
        return self._called[call]

    def callers(self, function: Function) -> list[Call]:
        """The calls that may call a function."""
        if self._callers is None:
            self._callers = {}
            for unit in self.units:
                for call in self.calls(unit):
                    for callee in self.callees(call, unit):
                        self._callers.setdefault(callee, []).append(call)
        return self._callers.get(function, [])

    @staticmethod
    def calls(unit: Unit) -> Iterator[Call]:
        """All calls of a file."""
        yield from unit.calls
        for function in unit.functions:
            yield from function.calls

    def below(self, function: Function, depth: int, remote: bool = True) -> frozenset[Function]:
        """What a function calls, and what that calls, down to a depth; without itself unless it recurses.

        Args:
            function: The function.
            depth: How many calls deep.
            remote: Whether calls on Ray count.
        """
        key = (function, depth, remote)
        if key not in self._below:
            # Recursion: while it is looked into, nothing is below it.
            self._below[key] = frozenset()
            self._below[key] = self.reached(function.calls, function.unit, depth, remote)
        return self._below[key]

    def reached(self, calls: Iterable[Call], unit: Unit, depth: int, remote: bool = True) -> frozenset[Function]:
        """The functions that some calls of a file lead to; see `below`."""
        found: set[Function] = set()
        for call in calls:
            if call.remote and not remote:
                continue
            for callee in self.callees(call, unit):
                found.add(callee)
                if depth > 1:
                    found |= self.below(callee, depth - 1, remote)
        return frozenset(found)

    def _resolve(self, call: Call, unit: Unit, holder: Function | None) -> Iterable[Function]:
        if not call.receiver:
            return self._plain_name(call.name, unit, holder)
        first, _, rest = call.receiver.partition('.')
        if first in ('self', 'cls', 'super') and not rest:
            owner = _owner(holder)
            return self._of_class(owner, call.name, skip=first == 'super') if owner else ()
        imported = unit.imports.get(call.receiver)
        if imported is not None:
            module = '.'.join(part for part in imported if part)
            found = self._named.get((module, call.name))
            if found is not None:
                return (found,)
            if module in self._modules:
                return ()
        classes = self._held.classes(unit, call.receiver.rpartition('.')[2])
        methods = [m for found in classes for one in self.lineage(found)[:8] if (m := one.methods.get(call.name))][:4]
        return dict.fromkeys(methods) if methods else self._anyones_method(call)

    def _plain_name(self, name: str, unit: Unit, holder: Function | None) -> Iterable[Function]:
        scope = holder
        while scope is not None:
            if name in scope.inner:
                return (scope.inner[name],)
            scope = scope.outer
        own = self._named.get((unit.module, name))
        if own is not None:
            return (own,)
        imported = unit.imports.get(name)
        if imported is None:
            return [m for found in self._held.classes(unit, name) if (m := found.methods.get('__call__'))]
        found = self._named.get((imported[0], imported[1]))
        if found is not None:
            return (found,)
        # A re-export, from a package whose name the code base has: whoever defines that name.
        top = imported[0].partition('.')[0]
        namesakes = [one for one in self._plain.get(imported[1], ()) if one.unit.module.partition('.')[0] == top]
        return namesakes if len(namesakes) <= _MOST_NAMESAKES else ()

    def _of_class(self, owner: Class, name: str, skip: bool) -> Iterable[Function]:
        line = self.lineage(owner)
        for found in line[1:] if skip else line:
            if name in found.methods:
                first = found.methods[name]
                break
        else:
            return ()
        if skip:
            return (first,)
        # `self.step()` in a base class may be any subclass's.
        over = [m for m in self._methods.get(name, ()) if m.owner and m is not first and owner in self.lineage(m.owner)]
        return (first, *over) if len(over) <= _MOST_NAMESAKES else (first,)

    def _anyones_method(self, call: Call) -> Iterable[Function]:
        found = self._methods.get(call.name, [])
        last = words.plain(call.receiver.rpartition('.')[2])
        if call.name in _ANYONES or len(found) > _MOST_NAMESAKES:
            told = [method for method in found if method.owner and _alike(last, method.owner.name)]
            return told if len(told) <= _MOST_NAMESAKES else ()
        return found


class _Held:
    """Which classes a variable or attribute holds objects of: by `x = Class(...)`, and by annotations."""

    def __init__(self, units: Sequence[Unit], classes: dict[str, list[Class]]) -> None:
        self._by_unit: dict[tuple[Unit, str], list[Class]] = {}
        self._anywhere: dict[str, list[Class]] = {}
        for unit in units:
            for name, class_name in _bound(unit):
                for found in classes.get(class_name, ()):
                    for table in (self._by_unit.setdefault((unit, name), []), self._anywhere.setdefault(name, [])):
                        if found not in table:
                            table.append(found)

    def classes(self, unit: Unit, name: str) -> list[Class]:
        """The classes, by what this file says of the name, else by what all do."""
        found = self._by_unit.get((unit, name)) or self._anywhere.get(name, [])
        return found if len(found) <= _MOST_NAMESAKES else []


def _bound(unit: Unit) -> Iterator[tuple[str, str]]:
    """Names of a file with the class they are bound to."""
    for node in unit.source.telling:
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
            for target, value in pairs:
                if isinstance(value, ast.Call):
                    made = dotted(value.func).removesuffix('.remote').removesuffix('.options')
                    yield dotted(target).rpartition('.')[2], made.rpartition('.')[2]
        elif isinstance(node, (ast.AnnAssign, ast.arg)):
            target = node.arg if isinstance(node, ast.arg) else dotted(node.target).rpartition('.')[2]
            for part in ast.walk(node.annotation) if node.annotation else ():
                if isinstance(part, (ast.Name, ast.Attribute)):
                    yield target, dotted(part).rpartition('.')[2]
                elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield target, part.value.rpartition('.')[2]


def _made_actors(unit: Unit) -> Iterator[str]:
    """The classes that a file makes Ray actors of: `ray.remote(X)`, `ray.remote(num_gpus=1)(X)`."""
    for node in unit.source.telling:
        if isinstance(node, ast.Call) and node.args and dotted(node.func) == 'ray.remote':
            yield dotted(node.args[0]).rpartition('.')[2]


def _owner(holder: Function | None) -> Class | None:
    while holder is not None and holder.owner is None:
        holder = holder.outer
    return holder.owner if holder else None


def _alike(receiver: str, class_name: str) -> bool:
    """Whether a variable's name speaks of a class: `rollout_manager` of `RolloutManager`, `policy` of `TinyPolicy`."""
    name = words.plain(class_name)
    return receiver == name or f'_{name}_'.endswith(f'_{receiver}_') or f'_{receiver}_'.endswith(f'_{name}_')
