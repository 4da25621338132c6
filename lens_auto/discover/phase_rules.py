# SPDX-License-Identifier: Apache-2.0
"""Rules for the phases of a step that no timer times."""

from __future__ import annotations

from . import words
from .buckets import NEAR, Seam
from .inline import InlineCalls, InlineLoop
from .phases import CONTAINS, Phase
from .reading import Function
from .rules import GUESS, LIKELY, Proposed, Value
from .survey import Survey

SECTION = 'phases'


def inline_seam(survey: Survey, one: InlineLoop | InlineCalls) -> Seam:
    """What a training loop does itself, as a span."""
    loop = one.loop if isinstance(one, InlineLoop) else one.step.loop
    holders = frozenset((loop.function,)) if loop.function else frozenset[Function]()
    if isinstance(one, InlineCalls):
        nothing = frozenset[Function]()
        return Seam(f'`{one.match}`', one.group, nothing, frozenset(one.calls), holders, nothing, nothing)
    below = survey.graph.reached(loop.calls, loop.unit, CONTAINS)
    near = survey.graph.reached(loop.calls, loop.unit, NEAR, remote=False)
    name = f'the loop of line {loop.line}'
    seam = Seam(name, 'policy_update', frozenset(), frozenset(), holders, below, near)
    seam.loop = loop
    return seam


def inline_rule(survey: Survey, one: InlineLoop | InlineCalls, seam: Seam) -> Proposed:
    """The rule for what a training loop does itself."""
    loop = one.loop if isinstance(one, InlineLoop) else one.step.loop
    fields: dict[str, Value] = {
        'kind': 'loop' if isinstance(one, InlineLoop) else 'call',
        'target': loop.unit.module + (f':{loop.function.qualname}' if loop.function else ''),
    }
    if isinstance(one, InlineLoop):
        fields |= {'match': one.header.text, 'group': 'policy_update', 'name': survey.span('policy_update')}
        why = [f'line {loop.line}: the update is written out here, see {one.call.name}() in line {one.call.line}']
    else:
        name = one.match.partition('(')[0].rpartition('.')[2] if one.group != 'checkpoint' else 'save_checkpoint'
        fields |= {
            'match': one.match,
            'expect': '1+',
            'group': one.group,
            'name': survey.span(words.plain(name)),
        }
        why = [f'line {", ".join(str(call.line) for call in one.calls[:4])}: called right in the training loop']
    if seam.bucket:
        fields['bucket'] = seam.bucket
        why.append(f'bucket: {seam.why}')
    return Proposed(SECTION, LIKELY, why, fields)


def phase_seam(survey: Survey, phase: Phase) -> Seam:
    """A phase's function as a span."""
    below = survey.graph.below(phase.function, CONTAINS)
    own = frozenset((phase.function,))
    near = survey.graph.below(phase.function, NEAR, remote=False)
    return Seam(phase.function.qualname, phase.group, own, frozenset(), frozenset(), below, near, phase.remote)


def phase_rule(survey: Survey, phase: Phase, seam: Seam) -> Proposed:
    """The rule for a phase's function."""
    function = phase.function
    why = [f'line {function.line}']
    if phase.call is not None:
        holder = survey.graph.holder(phase.call)
        unit = holder.unit if holder else next((one for one in survey.units if phase.call in one.calls), function.unit)
        how = 'asked on Ray' if phase.call.remote else 'called'
        where = f'in line {phase.call.line}' if unit is function.unit else f'at {unit.shown}:{phase.call.line}'
        why[0] += f', {how} {where}'
    if phase.distance is not None:
        why[0] += f', {phase.distance} call{"" if phase.distance == 1 else "s"} from a training loop'
    elif phase.actor is not None:
        why[0] += f'; no loop was seen to lead here, but {phase.actor.name} is a Ray actor'
    fields = survey.function_rule(function, phase.group)
    if seam.bucket:
        fields['bucket'] = seam.bucket
        why.append(f'bucket: {seam.why}')
    if phase.group == 'evaluate':
        fields['inside_bucket'] = 'overhead'
    if seam.group == 'efficiency':
        fields['bucket'] = 'idle'
    near = phase.distance is not None and phase.distance <= 2
    return Proposed(SECTION, LIKELY if near and not words.aside(function.unit.module) else GUESS, why, fields)
