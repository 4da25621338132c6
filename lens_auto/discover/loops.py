# SPDX-License-Identifier: Apache-2.0
"""The loops that train: those whose every iteration is a step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lens_auto.rewrite import pattern

from . import words
from .meaning import Meaning, kinds
from .reading import Call, Function, Loop, own_nodes

_DEPTH = 4
_JOBS = ('fit', 'train', 'main', 'run', 'run_training', 'train_loop', 'training_loop')
_PLAIN = re.compile(r'(self\.)?[A-Za-z_]\w*')
_COUNTERS = ('step', 'iteration', 'iter', 'rollout', 'update', 'episode', 'epoch', 'round', 'it')


@dataclass(eq=False)
class StepLoop:
    """A loop that trains.

    Attributes:
        loop: It.
        evidence: The calls that say so, by group.
        timed_by: The call of a labelled timer that times each iteration already, if there is one.
        sure: Whether its body generates and trains, rather than trains alone.
    """

    loop: Loop
    evidence: dict[str, Call] = field(default_factory=dict[str, Call])
    timed_by: Call | None = None
    sure: bool = False

    @property
    def score(self) -> tuple[bool, int]:
        """What ranks it among others, the most likely highest."""
        return not words.aside(self.loop.unit.module), len(kinds(frozenset(self.evidence)))


def step_loops(meaning: Meaning) -> list[StepLoop]:
    """The loops that train, the most likely first."""
    found: list[StepLoop] = []
    for unit in meaning.graph.units:
        for holder in (unit, *unit.functions):
            for loop in holder.loops:
                # An inner loop of one that was taken is a part of its step.
                if any(_around(taken.loop, loop) for taken in found):
                    continue
                step = _step(meaning, loop)
                if step is not None:
                    found.append(step)
    found = [one for one in found if not any(_part_of(meaning, one, other) for other in found)]
    # A function that is named for an update has a loop over its mini-batches.
    steps = [one for one in found if not _updates(one)]
    found = steps or found
    found = [one for one in found if not any(_only_calls(meaning, one, other) for other in found)]
    return sorted(found, key=lambda step: step.score, reverse=True)


def _around(outer: Loop, inner: Loop | None) -> bool:
    while inner is not None:
        if inner is outer:
            return True
        inner = inner.outer
    return False


def _step(meaning: Meaning, loop: Loop) -> StepLoop | None:
    calls = list(loop.calls)
    direct: set[str] = set()
    everything: set[str] = set()
    evidence: dict[str, Call] = {}
    for call in calls:
        own = meaning.own(call)
        if own in words.STRONG | words.WEAK:
            evidence.setdefault(own, call)
        groups = meaning.work(call, loop.unit)
        everything |= groups
        if call.loops[-1] is loop:
            direct |= groups
            for group in sorted(groups & words.STRONG):
                evidence.setdefault(group, call)
    strong = kinds(frozenset(everything & words.STRONG))
    if 'train' not in strong or not direct & words.STRONG or not _named(meaning, loop, calls):
        return None
    for inner in _inner(loop):
        if _step(meaning, inner) is not None and _adds_nothing(meaning, loop, inner):
            return None
    sure = bool(strong & {'rollout', 'reward', 'advantage', 'refit'})
    if not sure and not everything & {'checkpoint', 'evaluate'} and not ('log' in everything and _over_data(loop)):
        return None
    return StepLoop(loop, evidence, _timed_step(meaning, calls, loop), sure)


def _named(meaning: Meaning, loop: Loop, calls: list[Call]) -> bool:
    """Whether a call of the loop, or of what it calls, is named for a phase: what is far away may be a namesake."""
    if any(meaning.own(call) in words.STRONG for call in calls):
        return True
    reached = meaning.graph.reached(calls, loop.unit, 1)
    return any(meaning.own(call) in words.STRONG for function in reached for call in function.calls)


def _adds_nothing(meaning: Meaning, outer: Loop, inner: Loop) -> bool:
    """Whether a loop is one of epochs around the real one: besides that it trains nothing, and does nothing new."""
    besides: set[str] = set()
    for call in outer.calls:
        if inner not in call.loops:
            own = meaning.own(call)
            besides |= (meaning.work(call, outer.unit) - {*words.TRAINING}) | ({own} if own else set())
    return kinds(frozenset(besides & words.STRONG)) <= kinds(_groups(meaning, inner)) - {'train'}


def _groups(meaning: Meaning, loop: Loop) -> frozenset[str]:
    found: set[str] = set()
    for call in loop.calls:
        found |= meaning.work(call, loop.unit)
    return frozenset(found)


def _inner(loop: Loop) -> Iterator[Loop]:
    holder = loop.function or loop.unit
    return (one for one in holder.loops if one.outer is loop)


def _over_data(loop: Loop) -> bool:
    node = loop.node
    return not isinstance(node, ast.While) and any(
        word in ast.unparse(node.iter).lower() for word in ('loader', 'dataset', 'batches')
    )


def _timed_step(meaning: Meaning, calls: list[Call], loop: Loop) -> Call | None:
    """The timer that times the iteration: entered in its own statements, or in what they call."""
    reached = meaning.graph.reached((call for call in calls if call.loops[-1] is loop), loop.unit, 2)
    for call in (*calls, *(call for function in sorted(reached, key=_place) for call in function.calls)):
        label = meaning.timed.get(call)
        if label is not None and words.of_label(label) == words.STEP:
            return call
    return None


def _place(function: Function) -> tuple[str, int]:
    return function.unit.shown, function.line


def _updates(step: StepLoop) -> bool:
    function = step.loop.function
    return function is not None and words.of_function(function.name) in words.TRAINING


def _part_of(meaning: Meaning, step: StepLoop, other: StepLoop) -> bool:
    """Whether a loop is over the mini-batches of another one's step: that one calls it, and does more."""
    function = step.loop.function
    # What is called `fit` holds a whole training, whatever seems to call it.
    if function is None or function is other.loop.function or function.name in _JOBS or not other.sure:
        return False
    calls = list(other.loop.calls)
    there = [call for call in calls if function in meaning.graph.reached((call,), other.loop.unit, _DEPTH)]
    besides = (meaning.work(call, other.loop.unit) for call in calls if call not in there)
    return bool(there) and any(groups & words.STRONG for groups in besides)


def _only_calls(meaning: Meaning, step: StepLoop, other: StepLoop) -> bool:
    """Whether a loop is one of epochs that does nothing but call the function with the other one."""
    function = other.loop.function
    if function is None or function is step.loop.function:
        return False
    calls = list(step.loop.calls)
    there = [call for call in calls if function in meaning.graph.reached((call,), step.loop.unit, _DEPTH)]
    besides = (meaning.work(call, step.loop.unit) for call in calls if call not in there)
    return bool(there) and not any(groups & words.STRONG for groups in besides)


@dataclass(frozen=True)
class Header:
    """A way to write a loop's header as a pattern.

    Attributes:
        text: The pattern.
        iteration: What an attribute reads the iteration's number from; empty if nothing tells it.
    """

    text: str
    iteration: str = ''


def headers(loop: Loop) -> Iterator[Header]:
    """The patterns for a loop, the one that outlives most edits of the program first, the exact text last."""
    node = loop.node
    if isinstance(node, ast.While):
        counter = _counter_in(node.test) or ''
        exact = f'while {ast.unparse(node.test)}:'
        if isinstance(node.test, ast.Compare) and isinstance(node.test.left, ast.Name) and len(node.test.ops) == 1:
            operator = ast.unparse(node.test).removeprefix(node.test.left.id).split()[0]
            if operator in ('<', '<=', '!='):
                yield Header(f'while ${node.test.left.id} {operator} $_:', f'match.{node.test.left.id}')
        yield Header(exact, f'frame.{counter}' if counter else '')
        return
    start = 'async for' if isinstance(node, ast.AsyncFor) else 'for'
    iterated = node.iter
    if isinstance(node.target, ast.Name) and isinstance(iterated, ast.Call):
        called = ast.unparse(iterated.func)
        ranged = any(
            isinstance(part, ast.Name) and part.id in ('range', 'trange', 'count') for part in ast.walk(iterated)
        )
        if called.rpartition('.')[2] in ('range', 'trange', 'tqdm', 'count'):
            iteration = f'match.{node.target.id}' if ranged else ''
            target = f'${node.target.id}' if ranged else '$_'
            yield Header(f'{start} {target} in {called}($$$):', iteration)
            if ranged:
                yield Header(f'{start} {node.target.id} in {called}($$$):', f'frame.{node.target.id}')
                yield Header(f'{start} {target} in {_shortened(iterated)}:', iteration)
    elif isinstance(node.target, ast.Tuple) and isinstance(iterated, ast.Call):
        first = node.target.elts[0]
        if ast.unparse(iterated.func) == 'enumerate' and isinstance(first, ast.Name) and len(node.target.elts) == 2:
            counted = first.id != '_'
            name = f'${first.id}' if counted else '$_'
            yield Header(f'{start} {name}, $_ in enumerate($$$):', f'match.{first.id}' if counted else '')
    if isinstance(node.target, ast.Name) and not isinstance(iterated, ast.Call):
        yield Header(f'{start} $_ in {ast.unparse(iterated)}:')
    if isinstance(iterated, ast.Call):
        yield Header(f'{start} $_ in {_shortened(iterated)}:')
    yield Header(f'{start} {ast.unparse(node.target)} in {ast.unparse(iterated)}:')


def fitting(loop: Loop) -> Header | None:
    """The most general header that fits this loop alone, of those of its function."""
    siblings = (loop.function or loop.unit).loops
    for header in headers(loop):
        try:
            parsed = pattern.parse('loop', header.text)
        except pattern.PatternError:
            continue
        if [one for one in siblings if parsed.match(one.node) is not None] == [loop]:
            return header
    return None


def _shortened(node: ast.expr) -> str:
    """A call by what it is called and its first argument: `tqdm(loader, desc='x')` is `tqdm(loader, $$$)`."""
    if not isinstance(node, ast.Call):
        return ast.unparse(node)
    if not node.args:
        return f'{ast.unparse(node.func)}($$$)'
    more = ', $$$' if len(node.args) > 1 or node.keywords else ''
    return f'{ast.unparse(node.func)}({_shortened(node.args[0])}{more})'


def counter(loop: Loop) -> str:
    """The expression for the number of the step, where a loop counts its steps by hand; empty if it does not."""
    for node in own_nodes(loop.node.body):
        if (
            isinstance(node, ast.AugAssign)
            and isinstance(node.op, ast.Add)
            and _PLAIN.fullmatch(ast.unparse(node.target))
        ):
            name = ast.unparse(node.target)
            named = set(words.plain(name.rpartition('.')[2]).split('_'))
            last = name.rpartition('.')[2].rpartition('_')[2].removesuffix('s').lower()
            if last in _COUNTERS and not named & {'epoch', 'micro', 'total'}:
                return f'frame.{name}' + (' + 1' if _counted_first(loop, node, name) else '')
    return ''


def _counted_first(loop: Loop, counts: ast.AugAssign, name: str) -> bool:
    """Whether a step is called by the number it is counted to, rather than by the one it begins with."""
    before = True
    for statement in loop.node.body:
        if any(node is counts for node in ast.walk(statement)):
            before = False
            continue
        if any(_reads(node, name) for node in ast.walk(statement)):
            return not before
    return False


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == name


def _counter_in(test: ast.expr) -> str:
    for node in ast.walk(test):
        if isinstance(node, ast.Name) and set(words.plain(node.id).split('_')) & set(_COUNTERS):
            return node.id
    return ''
