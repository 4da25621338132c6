# SPDX-License-Identifier: Apache-2.0
"""Rules for the training itself and its steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from . import words
from .loops import StepLoop, counter, fitting
from .reading import Function, Loop
from .rules import LIKELY, SURE, Proposed, Value
from .survey import CALLBACKS, Survey, place, some

_MANY = 3


def jobs(survey: Survey) -> Iterator[Proposed]:
    """Rules for the functions that hold a training loop."""
    seen: set[Function] = set()
    for step in survey.steps:
        function = step.loop.function
        while function is not None and function.outer is not None:
            function = function.outer
        if function is None or function in seen or not _reachable(function):
            continue
        seen.add(function)
        why = f'{place(function)} holds the training loop of line {step.loop.line}'
        yield Proposed('job', SURE if step.sure else LIKELY, [why], survey.function_rule(function, 'job', 'job'))


def loops(survey: Survey) -> Iterator[Proposed]:
    """Rules for the training loops that no timer times."""
    for step in survey.steps:
        loop = step.loop
        where = f'{loop.unit.shown}:{loop.line}'
        if step.timed_by is not None:
            label = survey.meaning.timed[step.timed_by]
            survey.left_out.append(f'loop {where}: timer label `{label}` is its step')
            continue
        header = fitting(loop)
        if header is None:
            survey.left_out.append(f'loop {where} `{_source(loop)}`: the same header stands twice in its function')
            continue
        fields: dict[str, Value] = {
            'kind': 'loop',
            'target': loop.unit.module + (f':{loop.function.qualname}' if loop.function else ''),
            'match': header.text,
            'group': 'step',
            'root': True,
            'name': survey.span('step'),
        }
        counted = counter(loop)
        # Inside a loop of epochs the header counts from nought in each.
        iteration = counted if counted and (loop.outer is not None or not header.iteration) else header.iteration
        if iteration:
            fields['attributes'] = {'rl.iteration': iteration}
        why = [f'{where} `{_source(loop)}`', *_evidence(step)]
        yield Proposed('step', SURE if step.sure and len(step.evidence) > _MANY else LIKELY, why, fields)


def trainer_rules(survey: Survey) -> Iterator[Proposed]:
    """The seams of transformers' Trainer, whose loop is not in the code base."""
    trainers = [found for found in survey.hf if not found.name.startswith('_')]
    if not trainers:
        return
    named = f'{some([one.name for one in trainers if not words.aside(one.unit.module)] or [trainers[0].name])}'
    built = (
        f"{named} are built on transformers' Trainer"
        if len(trainers) > 1
        else f"{named} is built on transformers' Trainer"
    )
    yield Proposed(
        'job',
        SURE,
        [f'{built}, which has the loop ({trainers[0].unit.shown}:{trainers[0].node.lineno})'],
        {
            'kind': 'function',
            'target': 'transformers.trainer:Trainer.train',
            'group': 'job',
            'name': survey.span('job'),
        },
    )
    yield Proposed(
        'step',
        SURE,
        ['the same loop: the Trainer tells its callbacks when an optimizer step begins and ends'],
        {
            'kind': 'interval',
            'start': f'{CALLBACKS}.on_step_begin',
            'stop': f'{CALLBACKS}.on_step_end',
            'current': True,
            'group': 'step',
            'root': True,
            'name': survey.span('step'),
            'attributes': {'rl.iteration': 'arg.state.global_step + 1'},
        },
    )
    generates = any(phase.group in ('rollout', 'generation') for phase in survey.phases)
    hooks = (('training_step', 'policy_update'), ('evaluate', 'evaluate'), ('_save_checkpoint', 'checkpoint'))
    for hook, group in hooks:
        fields: dict[str, Value] = {
            'kind': 'function',
            'target': f'transformers.trainer:Trainer.{hook}',
            'group': group,
            'name': survey.span(words.plain(hook)),
        }
        why = ["the Trainer's own, which the trainers here inherit or call"]
        if hook == 'training_step' and generates:
            fields['bucket'] = 'none'
            why.append('bucket: trainers here generate inside it; what is productive has spans of its own')
        elif hook == 'evaluate':
            fields['inside_bucket'] = 'overhead'
        yield Proposed('phases', LIKELY, why, fields)


def _evidence(step: StepLoop) -> list[str]:
    calls = sorted(step.evidence.items(), key=lambda item: item[1].line)
    found = [f'{group} by {call.name}() :{call.line}' for group, call in calls if group != 'log']
    return [f'leads to {", ".join(found[:6])}'] if found else []


def _source(loop: Loop) -> str:
    return ast.unparse(loop.node).partition('\n')[0][:90]


def _reachable(function: Function) -> bool:
    return not function.nested and (function.owner is None or function.qualname.count('.') == 1)
