# SPDX-License-Identifier: Apache-2.0
"""The functions that do the phases of a step: generate, score, compute advantages, update, sync weights, save."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from . import words
from .calls import CallGraph
from .loops import StepLoop
from .meaning import Meaning, kinds
from .reading import Call, Class, Function
from .timers import Timer

_DEEPEST = 5
CONTAINS = 4
_PROPOSED = frozenset(
    (
        'rollout',
        'generation',
        'reward',
        'logprob',
        'reference_policy',
        'advantage',
        'refit',
        'policy_update',
        'evaluate',
    )
    + ('checkpoint', 'load_checkpoint', 'setup', 'model_init', 'data_processing', 'forward_backward', 'optimizer')
)
# Decorators under which a function is no seam: it is read by a compiler, looked up as an attribute, or never runs.
_NOT_CALLED = (
    'property',
    'cached_property',
    'abstractmethod',
    'overload',
    'compile',
    'script',
    'jit',
    'setter',
    'triton.jit',
)
# Methods of these do a phase's name no work of that phase: a metric is not collected as a rollout is.
_ASIDE_CLASS = re.compile(
    r'(?i).*(metric|logger|config|dataset|arguments|mock|kernel|tokenizer|parser|filter|sample|function|loss|table|writer|optimizer|scheduler).*'
)
# What is called for each micro-batch, or once, is a seam only right at the loop.
_FARTHEST = {'forward_backward': 2, 'optimizer': 2, 'data_processing': 2, 'setup': 3, 'model_init': 3}
_OTHER_PHASES = {'rollout', 'reward', 'advantage', 'refit'}
# The hooks that transformers' Trainer calls on a subclass.
HF_HOOKS = ('training_step', 'compute_loss', 'prediction_step', 'evaluate', '_save_checkpoint', 'save_model')
HOOKED = "a hook of transformers' Trainer"
INSIDE = 'inside '


@dataclass(eq=False)
class Phase:
    """A function to put a span around.

    Attributes:
        function: It.
        group: Its span group.
        distance: How many calls it is away from a training loop; None where no loop leads to it.
        call: A call of it, for the comment.
        remote: Whether it is called on Ray, so that it runs in another process.
        actor: The Ray actor it is a method of, if it is one.
        score: What ranks it.
    """

    function: Function
    group: str
    distance: int | None
    call: Call | None
    remote: bool
    actor: Class | None
    score: float


@dataclass(frozen=True)
class LeftOut:
    """A function that looked like a phase and is not proposed.

    Attributes:
        why: What is said of it: `inside pkg:collect`.
    """

    function: Function
    group: str
    why: str


def phases(
    meaning: Meaning, steps: list[StepLoop], timers: list[Timer], hf_trainers: list[Class]
) -> tuple[list[Phase], list[LeftOut]]:
    """The functions that do phases, the most telling first, and those that others stand for."""
    graph = meaning.graph
    # Where there is more than experiments and examples, those are no guide.
    main_steps = [step for step in steps if not words.aside(step.loop.unit.module)]
    main_trainers = [found for found in hf_trainers if not words.aside(found.unit.module)]
    only_aside = not main_steps and not main_trainers
    roots = _roots(graph, steps, hf_trainers) if only_aside else _roots(graph, main_steps, main_trainers)
    distances = _distances(graph, roots)
    decorated = {use for timer in timers for label in timer.labels.values() for _, use in label.uses}
    inner = {definition for timer in timers for definition in timer.withs}
    found: list[Phase] = []
    out: list[LeftOut] = []
    for function in graph.functions:
        group = words.of_function(function.name)
        if group not in _PROPOSED or function in inner or not _can_be_called(function):
            continue
        distance, actor = distances.get(function), function.owner
        if actor is not None and not actor.remote:
            actor = None
        if function.name in HF_HOOKS and function.owner in hf_trainers:
            # The Trainer's own is proposed: these run inside it, or call it.
            out.append(LeftOut(function, group, HOOKED))
        elif words.aside(function.unit.module) and not only_aside:
            out.append(LeftOut(function, group, 'in experiments, examples or tools'))
        elif (distance is not None and distance <= _FARTHEST.get(group, _DEEPEST)) or (
            actor and group not in _FARTHEST
        ):
            phase = _phase(meaning, function, group, distances, actor)
            instead = _instead(meaning, phase, decorated)
            if instead:
                out.append(LeftOut(function, group, instead))
            else:
                found.append(phase)
    found.sort(key=lambda phase: (-phase.score, phase.function.unit.shown, phase.function.line))
    return _without_inner(graph, found, out), out


def _phase(
    meaning: Meaning, function: Function, group: str, distances: dict[Function, int], actor: Class | None
) -> Phase:
    callers = meaning.graph.callers(function)
    distance = distances.get(function)
    call = min(
        (one for one in callers if meaning.graph.holder(one) is not function),
        key=lambda one: distances.get(meaning.graph.holder(one) or function, 0 if one.loops else _DEEPEST),
        default=None,
    )
    remote = actor is not None and any(one.remote for one in callers)
    score = 10.0 - 2 * (distance if distance is not None else 3)
    score += 2 * (actor is not None) - 8 * words.aside(function.unit.module) - 3 * (group in _FARTHEST)
    # `train` of a worker may be its whole work; a private helper is less likely a seam than what calls it.
    score -= 0.5 * function.name.startswith('__')
    return Phase(function, group, distance, call, remote, actor, score)


def _roots(graph: CallGraph, steps: list[StepLoop], hf_trainers: list[Class]) -> list[tuple[Function, int]]:
    found: list[tuple[Function, int]] = []
    for step in steps:
        calls = list(step.loop.calls)
        found += [(callee, 1) for call in calls for callee in graph.callees(call, step.loop.unit)]
        if step.loop.function is not None:
            found += [
                (callee, 2) for call in step.loop.function.calls for callee in graph.callees(call, step.loop.unit)
            ]
            for call in graph.callers(step.loop.function):
                holder = graph.holder(call)
                for sibling in holder.calls if holder else ():
                    found += [(callee, 3) for callee in graph.callees(sibling, holder.unit)] if holder else []
    for trainer in hf_trainers:
        found += [(method, 1) for name, method in trainer.methods.items() if name in (*HF_HOOKS, '_prepare_inputs')]
    return found


def _distances(graph: CallGraph, roots: Iterable[tuple[Function, int]]) -> dict[Function, int]:
    """How many calls each function is away from a training loop."""
    known: dict[Function, int] = {}
    waiting = sorted(roots, key=lambda root: root[1])
    while waiting:
        following: list[tuple[Function, int]] = []
        for function, distance in waiting:
            if known.get(function, _DEEPEST + 1) <= distance:
                continue
            known[function] = distance
            if distance < _DEEPEST:
                for call in function.calls:
                    following += [(callee, distance + 1) for callee in graph.callees(call, function.unit)]
        waiting = sorted(following, key=lambda item: item[1])
    return known


def _instead(meaning: Meaning, phase: Phase, decorated: set[Call | Function]) -> str:
    """Why something else stands for a function; empty where nothing does."""
    function, group = phase.function, phase.group
    if function in decorated:
        return 'its timer label is proposed'
    reached = kinds(meaning.reached(function) & words.STRONG) & _OTHER_PHASES
    if group == 'policy_update' and len(reached) > 1:
        return f'does a whole step: {", ".join(sorted(reached))}'
    above = (call for call in function.calls if call.receiver == 'super' and call.name == function.name)
    if any(meaning.graph.callees(call, function.unit) for call in above):
        # What it overrides is called by it, and by the subclasses that do not override it.
        return 'calls the one it overrides'
    own = next((label for call in function.calls if (label := meaning.timed.get(call))), '')
    if own and words.of_label(own) == group:
        return f'times itself by label `{own}`'
    label = _timed_by(meaning, function, group, decorated)
    return f'timed by label `{label}`' if label and not phase.remote else ''


def _can_be_called(function: Function) -> bool:
    """Whether a target reaches a function, and it does something there."""
    owner = function.owner
    if function.nested or (
        owner is not None and (function.qualname.count('.') != 1 or _ASIDE_CLASS.fullmatch(owner.name))
    ):
        return False
    if any(name.rpartition('.')[2] in _NOT_CALLED or name in _NOT_CALLED for name in function.decorators):
        return False
    if function.name in ('backward', 'forward') or not function.calls:
        return False  # of an autograd function or module; or nothing that takes long
    return any(not _says_nothing(node) for node in function.node.body)


def _says_nothing(node: ast.stmt) -> bool:
    """A docstring, `pass`, `...`, `return`, `raise NotImplementedError`: what is left is an interface."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    return isinstance(node, (ast.Pass, ast.Raise))


def _timed_by(meaning: Meaning, function: Function, group: str, decorated: set[Call | Function]) -> str:
    """The timer label of the same phase around a call of a function; empty if there is none."""
    for call in meaning.graph.callers(function):
        holder = meaning.graph.holder(call)
        if holder is not None and holder in decorated and words.of_label(holder.name) == group:
            return holder.name
        for block in call.blocks:
            label = meaning.timed.get(block)
            if label is not None and kinds(frozenset((words.of_label(label) or '',))) == kinds(frozenset((group,))):
                return label
    return ''


def _without_inner(graph: CallGraph, found: list[Phase], out: list[LeftOut]) -> list[Phase]:
    """Without the functions that another one of the same phase calls in the same process."""
    kept: list[Phase] = []
    for phase in found:
        outer = next((one for one in kept if _stands_for(graph, one, phase)), None)
        if outer is not None:
            out.append(LeftOut(phase.function, phase.group, INSIDE + outer.function.qualname))
            continue
        for one in [one for one in kept if _stands_for(graph, phase, one)]:
            kept.remove(one)
            out.append(LeftOut(one.function, one.group, INSIDE + phase.function.qualname))
        kept.append(phase)
    return kept


def _stands_for(graph: CallGraph, outer: Phase, inner: Phase) -> bool:
    if outer.group != inner.group and not {outer.group, inner.group} <= {*words.TRAINING}:
        return False
    if inner.remote or inner.function is outer.function:
        return False
    below = graph.below(outer.function, CONTAINS)
    # Where each seems to call the other, only names did: neither stands for the other.
    return inner.function in below and outer.function not in graph.below(inner.function, CONTAINS)
