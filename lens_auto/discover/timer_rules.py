# SPDX-License-Identifier: Apache-2.0
"""Rules for the timers a program has."""

from __future__ import annotations

import ast
import re

from lens_auto.rules.registry import GROUPS

from . import words
from .buckets import NEAR, Seam
from .loops import counter
from .meaning import kinds
from .phases import CONTAINS, HF_HOOKS
from .reading import Call, Class, Function, Loop, own_nodes
from .rules import LIKELY, SURE, Proposed, Value
from .survey import Survey
from .timers import Label, Timer

SECTION = 'phases that are timed already'

_MANY = 4
_MOST_LABELS = 40


def worth(timer: Timer) -> bool:
    """Whether a timer is proposed: some of its labels are phases."""
    known = [label for label in timer.labels if words.of_label(_last(label))]
    return bool(known) and (timer.clock or len(known) > 1)


def label_seam(survey: Survey, label: Label) -> Seam:
    """A label as a span."""
    calls = frozenset(use for _, use in label.uses if isinstance(use, Call))
    functions = frozenset(use for _, use in label.uses if isinstance(use, Function))
    holders = frozenset(holder for call in calls if (holder := survey.graph.holder(call)))
    below: set[Function] = set()
    near: set[Function] = set()
    for unit, use in label.uses:
        if isinstance(use, Function):
            below |= survey.graph.below(use, CONTAINS)
            near |= survey.graph.below(use, NEAR, remote=False)
        else:
            holder = survey.graph.holder(use)
            inside = [call for call in (holder or unit).calls if use in call.blocks]
            below |= survey.graph.reached(inside, unit, CONTAINS)
            near |= survey.graph.reached(inside, unit, NEAR, remote=False)
    group = _label_group(survey, label, frozenset(below)) or ''
    name = f'label `{label.text}`'
    return Seam(name, group, functions, calls, holders - functions, frozenset(below), frozenset(near))


def _label_group(survey: Survey, label: Label, below: frozenset[Function]) -> str | None:
    text = _last(label.text)
    group = words.of_label(text)
    if survey.hf and text in HF_HOOKS and text != 'compute_loss':
        return None
    if group == 'policy_update' and words.plain(text).endswith(('step', 'iteration')):
        reached: set[str] = set()
        for function in below:
            own = words.of_function(function.name)
            reached |= {own} if own else set()
        return words.STEP if kinds(frozenset(reached)) & {'rollout', 'reward'} else group
    return group


def timer_rule(survey: Survey, timer: Timer, seams: dict[tuple[Timer, str], Seam]) -> Proposed:
    """The rule for a timer.

    Args:
        survey: What was found.
        timer: The timer.
        seams: Its labels as spans, among those of others.
    """
    fields: dict[str, Value] = {'kind': 'timer'}
    if timer.withs:
        targets = [f'{one.unit.module}:{one.name if isinstance(one, Class) else one.qualname}' for one in timer.withs]
        fields['with'] = targets[0] if len(targets) == 1 else targets
    if timer.pair:
        start, stop = timer.pair
        fields['pair'] = f'{start.target}/{stop.name}'
    if timer.own_label:
        fields['label_arg'] = timer.label_arg
    what = 'enters' if timer.withs else 'starts and stops'
    count = len(timer.labels)
    why = f'a timer: the code {what} it with {count} label{"" if count == 1 else "s"}, {timer.uses} times'
    rule = Proposed(SECTION, SURE if timer.clock or len(timer.labels) >= _MANY else LIKELY, [why], fields)
    labels: dict[str, Value] = {}
    unknown: list[str] = []
    for label in sorted(timer.labels.values(), key=_rank):
        seam = seams[timer, label.text]
        place = _use_place(label)
        if not seam.group or len(labels) >= _MOST_LABELS:
            unknown.append(f'{label.text} ({place})')
            continue
        # A folder of one's own in a label (`timing_s/param_sync`) says nothing that the last part does not.
        value: dict[str, Value] = {'group': seam.group}
        if seam.bucket or seam.group == 'efficiency':
            value['bucket'] = seam.bucket or 'idle'
        name = seam.group if seam.group in ('step', 'evaluate') else words.plain(_last(label.text).rpartition('/')[2])
        value['name'] = survey.span(name)
        if seam.group == 'step':
            value['root'] = True
            iteration = _iteration(survey, label)
            started = all(isinstance(use, Call) and not use.entered for _, use in label.uses) and timer.pair
            if started:
                # Nothing nests in what start and stop time, unless it is asked for.
                value['current'] = True
            if iteration:
                value['attributes'] = {'rl.iteration': iteration}
        labels[label.text] = value
        more = len(label.uses) - 1
        rule.notes[label.text] = place + (f' and {more} more' if more else '') + (f'; {seam.why}' if seam.why else '')
    fields['labels'] = labels
    for text in unknown[:_MOST_LABELS]:
        rule.remarks.append(f'a label that means nothing here: {text}')
    for unit, call in timer.made[:4]:
        rule.remarks.append(f'a label made at run time: {unit.shown}:{call.line} {ast.unparse(call.node)[:60]}')
    return rule


def _iteration(survey: Survey, label: Label) -> str:
    """Where the step's number is read from at the block of a timer: the loop around it, or an attribute that counts."""
    for _, use in sorted(label.uses, key=lambda item: words.aside(item[0].module)):
        if not isinstance(use, Call):
            continue
        if use.loops:
            counted = counter(use.loops[-1])
            node = use.loops[-1].node
            if (
                not counted
                and not isinstance(node, ast.While)
                and _ranged(use.loops[-1])
                and isinstance(node.target, ast.Name)
            ):
                counted = f'frame.{node.target.id}'
            if counted:
                return counted
        holder = survey.graph.holder(use)
        for node in own_nodes(holder.node.body) if holder else ():
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
                named = ast.unparse(node.target)
                if re.fullmatch(r'self\.(global_|train_|current_)?(steps?|iterations?)', named):
                    return f'frame.{named}'
    return ''


def _ranged(loop: Loop) -> bool:
    node = loop.node
    return not isinstance(node, ast.While) and 'range' in ast.unparse(node.iter)


def _last(label: str) -> str:
    """The part of a label that says what it is: `*.sync_weights` is `sync_weights`."""
    return label.rpartition('*.')[2] if label.startswith('*') else label


def _rank(label: Label) -> tuple[bool, int, str]:
    group = words.of_label(_last(label.text))
    order = ['step', *GROUPS, 'refit']
    return group is None, order.index(group) if group in order else len(order), label.text


def _use_place(label: Label) -> str:
    uses = sorted(label.uses, key=lambda item: (words.aside(item[0].module), item[0].shown, item[1].line))
    return f'{uses[0][0].shown}:{uses[0][1].line}'


def definition(timer: Timer) -> str:
    """Where a timer is defined."""
    one = timer.withs[0] if timer.withs else timer.pair[0] if timer.pair else None
    return f'{one.unit.module}:{one.name}' if one else timer.name
