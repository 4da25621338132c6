# SPDX-License-Identifier: Apache-2.0
"""Timers: context managers, and start and stop methods, that a program gives labels to."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TypeAlias

from .calls import CallGraph
from .reading import Call, Class, Function, Unit, dotted, own_nodes

_CLOCKS = frozenset(
    ('time', 'perf_counter', 'monotonic', 'perf_counter_ns', 'monotonic_ns', 'time_ns', 'Event', 'synchronize')
)
_TIMING = re.compile(
    r'(?i)(^|.*_)(timers?|timed|timing|time|profil\w*|trace\w*|span\w*|stopwatch|phase|section|record_timing|measure|annotate'
    r'|tracked|clock|nvtx|marked\w*|scope)(_.*|$)|.*(Timer|Span|Trace|Profil|Stopwatch|Phase)\w*'
)
# Labels of other things: a file's name, a device, a lock.
_NO_TIMER = re.compile(
    r'(?i).*(open|lock|patch|autocast|no_grad|seed|config|environ|redirect|suppress|cwd|tempdir|session).*'
)
_LABEL = re.compile(r'[\w./:\- ]{1,64}')
_LABEL_NAMES = ('name', 'label', 'key', 'tag', 'phase', 'stage', 'section', 'state_name', 'message', 'msg')
_STOPS = ('stop', 'end', 'finish', 'stop_timer')

Definition: TypeAlias = 'Function | Class'


@dataclass
class Label:
    """A label and where it is used."""

    text: str
    uses: list[tuple[Unit, Call | Function]] = field(default_factory=list[tuple[Unit, 'Call | Function']])


@dataclass(eq=False)
class Timer:
    """A timer of the code base.

    Attributes:
        withs: What is entered: functions that make a context manager, or classes that are one.
        pair: Its class's start and stop methods.
        label_arg: The parameter, or attribute, that holds the label.
        own_label: Whether rules must name it: the label is not the first parameter.
        labels: The labels, by text.
        made: Uses whose label is made at run time.
        clock: Whether it looks at a clock, rather than only being called like one.
    """

    name: str
    withs: list[Definition]
    label_arg: str
    own_label: bool
    clock: bool
    pair: tuple[Function, Function] | None = None
    labels: dict[str, Label] = field(default_factory=dict[str, Label])
    made: list[tuple[Unit, Call]] = field(default_factory=list[tuple[Unit, Call]])
    calls: dict[Call, str] = field(default_factory=dict[Call, str])

    @property
    def uses(self) -> int:
        """How often it is used with a label that is written down."""
        return sum(len(label.uses) for label in self.labels.values())


@dataclass(frozen=True)
class _Way:
    """How a label gets from a function's parameter into a timer: as it is, or as part of a longer one."""

    timer: str
    parameter: str
    pattern: str  # '{}' for the label as it is, '*.{}' where something is put before it


def find_timers(graph: CallGraph) -> list[Timer]:
    """The timers that are used with labels, the most used first."""
    timers = _definitions(graph)
    ways = _facades(graph, timers)
    decorators = _decorators(graph, timers, ways)
    for unit in graph.units:
        for call in graph.calls(unit):
            _use(graph, unit, call, timers, ways, decorators)
        for function in unit.functions:
            for name in function.decorators:
                way = decorators.get(name.rpartition('.')[2])
                if way is not None:
                    label = way.pattern.replace('{}', function.name)
                    timer = timers[way.timer]
                    timer.labels.setdefault(label, Label(label)).uses.append((unit, function))
    found = [timer for timer in timers.values() if timer.labels]
    return sorted(found, key=lambda timer: (-timer.clock, -timer.uses, timer.name))


def _definitions(graph: CallGraph) -> dict[str, Timer]:
    """The context managers that may time, by the name they are called by."""
    found: dict[str, Timer] = {}
    for unit in graph.units:
        for function in unit.functions:
            if function.nested or not any(name.endswith('contextmanager') for name in function.decorators):
                continue
            parameter = _first_parameter(function)
            if parameter is None:
                continue
            clock = _looks_at_clock(function)
            if _NO_TIMER.fullmatch(function.name) or not (clock or _timing_name(function)):
                continue
            # `with watch("rollout"):` calls the watch itself, whatever it is named.
            name = f'{function.owner.name}()' if function.name == '__call__' and function.owner else function.name
            _add(found, name, function, parameter, clock)
        for made in unit.classes:
            enter = made.methods.get('__enter__') or made.methods.get('__aenter__')
            init = made.methods.get('__init__')
            if enter is None or init is None or _NO_TIMER.fullmatch(made.name):
                continue
            held = _held_label(init)
            clock = any(_looks_at_clock(method) for method in made.methods.values())
            if held is not None and (clock or _TIMING.fullmatch(made.name)):
                _add(found, made.name, made, held, clock)
        for made in unit.classes:
            _pair(found, made)
    return found


def _add(found: dict[str, Timer], name: str, definition: Definition, parameter: str, clock: bool) -> None:
    known = found.get(name)
    if known is None:
        takes = (
            [one for one in definition.parameters if one not in ('self', 'cls')]
            if isinstance(definition, Function)
            else []
        )
        found[name] = Timer(name, [definition], parameter, takes[:1] != [parameter], clock)
    elif known.label_arg == parameter and isinstance(known.withs[0], Function) == isinstance(definition, Function):
        known.withs.append(definition)
        known.clock = known.clock or clock


def _pair(found: dict[str, Timer], made: Class) -> None:
    """Start and stop methods that take a label, in a class that times."""
    start = made.methods.get('start') or made.methods.get('start_timer')
    stop = next((made.methods[name] for name in _STOPS if name in made.methods), None)
    if start is None or stop is None or not any(_looks_at_clock(method) for method in made.methods.values()):
        return
    parameter = _first_parameter(start)
    if parameter is None or _first_parameter(stop) is None:
        return
    entered = next((t for t in found.values() if any(d in made.methods.values() for d in t.withs)), None)
    if entered is not None:
        entered.pair = (start, stop)
        entered.clock = True
    else:
        name = f'{made.name}.{start.name}'
        found[name] = Timer(name, [], parameter, False, True, (start, stop))


def _timing_name(function: Function) -> bool:
    return bool(_TIMING.fullmatch(function.name) or (function.owner and _TIMING.fullmatch(function.owner.name)))


def _looks_at_clock(function: Function) -> bool:
    for node in ast.walk(function.node):
        if isinstance(node, ast.Call) and dotted(node.func).rpartition('.')[2] in (*_CLOCKS, 'Timer'):
            return True
    return False


def _first_parameter(function: Function) -> str | None:
    names = [name for name in function.parameters if name not in ('self', 'cls')]
    # A label goes by one of these names; else it is what comes first.
    return next((name for name in _LABEL_NAMES if name in names), names[0] if names else None)


def _held_label(init: Function) -> str | None:
    """The attribute in which a context manager keeps its label."""
    first = next((name for name in init.parameters[1:]), None)
    for node in own_nodes(init.node.body):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Name):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Attribute) and node.value.id in (*_LABEL_NAMES, first):
                return target.attr
    return None


def _facades(graph: CallGraph, timers: dict[str, Timer]) -> dict[str, _Way]:
    """Functions that only make or enter a timer, for a label they were given."""
    ways: dict[str, _Way] = {}
    for function in graph.functions:
        if function.nested:
            continue
        for call in function.calls:
            timer = _timer_of(call, function.unit, timers, graph)
            if timer is None or function in (*timer.withs, *(timer.pair or ())):
                continue
            argument = _label_argument(call, timer)
            if argument is None or isinstance(argument, ast.Constant):
                continue
            way = _way(function, argument, timer.name) if _hands_on(function, call) else None
            if way is not None and function.name not in ('__init__', '__enter__'):
                ways.setdefault(function.name, way)
    # Timers that pass their label on to another are themselves no seam: the other one sees it.
    for name in list(ways):
        if name in timers and ways[name].timer != name:
            inner = timers[ways[name].timer]
            if inner.pair and any(part in timers[name].withs for part in inner.pair):
                del ways[name]
            else:
                del timers[name]
    return {name: way for name, way in ways.items() if way.timer in timers}


def _hands_on(function: Function, call: Call) -> bool:
    """Whether a function is there to make or enter a timer for its caller: it returns it, or yields inside it."""
    for node in own_nodes(function.node.body):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, ast.Return) and node.value is not None:
            if any(inner is call.node for inner in ast.walk(node.value)):
                return True
    return False


def _way(function: Function, argument: ast.expr, timer: str) -> _Way | None:
    """How a function's parameter becomes the label."""
    parameters = set(function.parameters) - {'self', 'cls'}
    pattern = _pattern(argument, parameters, function)
    if pattern is None:
        return None
    return _Way(timer, *pattern)


def _pattern(argument: ast.expr, parameters: set[str], function: Function) -> tuple[str, str] | None:
    if isinstance(argument, ast.Name):
        if argument.id in parameters:
            return argument.id, '{}'
        for node in own_nodes(function.node.body):
            if isinstance(node, ast.Assign) and dotted(node.targets[0]) == argument.id:
                return _pattern(node.value, parameters, function)
        return None
    if isinstance(argument, ast.JoinedStr):
        named, text = '', ''
        for part in argument.values:
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                if isinstance(part.value, ast.Name) and part.value.id in parameters and not named:
                    named, text = part.value.id, text + '{}'
                else:
                    text += '*'
        return (named, text) if named else None
    return None


def _decorators(graph: CallGraph, timers: dict[str, Timer], ways: dict[str, _Way]) -> dict[str, _Way]:
    """Decorators that enter a timer with the decorated function's name."""
    found: dict[str, _Way] = {}
    for function in graph.functions:
        outermost = _outermost(function)
        for call in function.calls:
            named = call.name if call.name in ways or call.name in timers else ''
            if named and any(ast.unparse(argument).endswith('.__name__') for argument in call.arguments):
                inner = ways.get(named) or _Way(named, '', '{}')
                found.setdefault(outermost.name, inner)
    return found


def _outermost(function: Function) -> Function:
    while function.outer is not None:
        function = function.outer
    return function


def _timer_of(call: Call, unit: Unit, timers: dict[str, Timer], graph: CallGraph) -> Timer | None:
    timer = timers.get(call.name)
    if timer is None and call.entered:
        timer = next((t for made in graph.held(unit, call.name) if (t := timers.get(f'{made.name}()'))), None)
        if timer is not None:
            return timer
    if timer is None or not timer.withs:
        return next(
            (
                t
                for t in timers.values()
                if t.pair and call.name in (part.name for part in t.pair) and _of_pair(call, t)
            ),
            None,
        )
    own = unit.imports.get(call.name)
    definition = timer.withs[0]
    if isinstance(definition, Function) and definition.owner is not None:
        return timer if call.receiver else None
    # A plain name must be the code base's own: `Timer` may as well be imported from elsewhere.
    defined_here = any(one.unit is unit for one in timer.withs)
    if call.receiver and own is None:
        return timer if unit.imports.get(call.receiver) or call.entered else None
    if own is None:
        return timer if defined_here else None
    tops = {one.unit.module.partition('.')[0] for one in timer.withs}
    return timer if own[0].partition('.')[0] in tops and own[1] == call.name else None


def _of_pair(call: Call, timer: Timer) -> bool:
    """Whether `x.start("label")` is the timer's: it has a label, and what it is called on is called like a timer."""
    label = next(iter(call.arguments), None)
    literal = isinstance(label, (ast.Constant, ast.Name, ast.JoinedStr))
    owner = timer.pair[0].owner if timer.pair else None
    last = call.receiver.rpartition('.')[2].lower().strip('_')
    return literal and bool(last) and owner is not None and (last in owner.name.lower() or 'timer' in last)


def _label_argument(
    call: Call, timer: Timer, parameter: str = '', definition: Definition | None = None
) -> ast.expr | None:
    """The argument that is the label."""
    definition = definition or (timer.withs[0] if timer.withs else timer.pair[0] if timer.pair else None)
    if definition is None:
        return None
    if isinstance(definition, Class):
        names = definition.methods['__init__'].parameters[1:]
        wanted = parameter or _parameter_of(definition.methods['__init__'], timer.label_arg)
    else:
        bound = definition.owner is not None and 'staticmethod' not in definition.decorators
        names = definition.parameters[1:] if bound else definition.parameters
        wanted = parameter or timer.label_arg
    for keyword in call.keywords:
        if keyword.arg == wanted:
            return keyword.value
    if wanted in names and names.index(wanted) < len(call.arguments):
        return call.arguments[names.index(wanted)]
    return None


def _parameter_of(init: Function, attribute: str) -> str:
    for node in own_nodes(init.node.body):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Name):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Attribute) and target.attr == attribute:
                return node.value.id
    return attribute


def _use(
    graph: CallGraph,
    unit: Unit,
    call: Call,
    timers: dict[str, Timer],
    ways: dict[str, _Way],
    decorators: dict[str, _Way],
) -> None:
    """Note the label a call gives a timer, if it does."""
    way = ways.get(call.name)
    if way is not None:
        callees = [one for one in graph.callees(call, unit) if one.name == call.name]
        definition = callees[0] if callees else None
        if definition is None:
            return
        timer = timers[way.timer]
        argument = _label_argument(call, timer, way.parameter, definition)
        pattern = way.pattern
    else:
        found = _timer_of(call, unit, timers, graph)
        if found is None:
            return
        timer, argument, pattern = found, _label_argument(call, found), '{}'
        if timer.pair and call.name == timer.pair[1].name:
            return
    holder = graph.holder(call)
    if argument is None or (holder is not None and (holder in timer.withs or holder.name in ways)):
        return
    text = _text(argument)
    if text is None or not _LABEL.fullmatch(text.replace('*', 'x')) or not text.strip('*_/. '):
        # A function that is there for it hands a label on; others make one.
        if holder is None or not (_hands_on(holder, call) or _outermost(holder).name in decorators):
            timer.made.append((unit, call))
        return
    label = pattern.replace('{}', text)
    timer.labels.setdefault(label, Label(label)).uses.append((unit, call))
    timer.calls[call] = text


def _text(argument: ast.expr) -> str | None:
    """A label as written, with `*` for what is filled in."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    if isinstance(argument, ast.JoinedStr):
        parts = [str(part.value) if isinstance(part, ast.Constant) else '*' for part in argument.values]
        return ''.join(parts)
    return None
