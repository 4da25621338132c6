# SPDX-License-Identifier: Apache-2.0
"""What is proposed of all that was found: no more than an engineer would read, and a word on the rest."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence

from lens_auto.rules.registry import GROUPS

from . import metric_rules, phase_rules, step_rules, timer_rules, words
from .buckets import settle
from .inline import inner_updates, library_calls
from .phases import INSIDE, LeftOut, Phase
from .rules import Proposal, Proposed
from .sources import CodeBase
from .survey import BUCKETS, DECLARED, Survey, some

LIMIT = 40
"""How many rules are proposed unless another number is asked for."""

_PER_GROUP = 6
_PER_NAME = 4
_MOST_ACTORS = 10
_MOST_LEFT_OUT = 24
_MOST_NAMED = 6
_SECTIONS = ('job', 'step', timer_rules.SECTION, phase_rules.SECTION, metric_rules.SECTION)


def propose(code: CodeBase, paths: Sequence[str], limit: int = LIMIT) -> Proposal:
    """The rule file for a code base.

    Args:
        code: What was read.
        paths: Where it was read from, as the user gave it.
        limit: The most rules.
    """
    survey = Survey(code, paths)
    rules = _rules(survey, limit)
    used = {group for rule in rules for group in _groups_of(rule)}
    groups: dict[str, str | None] = {name: bucket for name, bucket in DECLARED.items() if name in used}
    when = _when(survey, rules)
    actors = list(_actors(survey))
    return Proposal(survey.framework, when, groups, rules, actors, survey.left_out, list(paths), len(survey.units))


def _rules(survey: Survey, limit: int) -> list[Proposed]:
    """The rules: first what makes steps and phases of one place, functions as far as there is room."""
    rules = [*step_rules.jobs(survey), *step_rules.loops(survey), *step_rules.trainer_rules(survey)]
    timers = [timer for timer in survey.timers if timer_rules.worth(timer)]
    for timer in survey.timers:
        if timer not in timers:
            labels = some(sorted(timer.labels))
            survey.left_out.append(f'timer {timer_rules.definition(timer)}: its labels ({labels}) mean nothing here')
    loggers = list(metric_rules.logger_rules(survey))
    updates = list(inner_updates(survey.meaning, survey.steps))
    inline = [*updates, *library_calls(survey.meaning, survey.steps, updates)]
    chosen = _chosen(survey, max(0, limit - len(rules) - len(timers) - len(loggers) - len(inline)))
    of_inline = {one: phase_rules.inline_seam(survey, one) for one in inline}
    of_phases = {phase: phase_rules.phase_seam(survey, phase) for phase in chosen}
    of_labels = {
        (timer, label.text): timer_rules.label_seam(survey, label)
        for timer in timers
        for label in timer.labels.values()
    }
    settle([*of_labels.values(), *of_phases.values(), *of_inline.values()], BUCKETS)
    rules += [timer_rules.timer_rule(survey, timer, of_labels) for timer in timers]
    rules += loggers
    rules += [phase_rules.inline_rule(survey, one, seam) for one, seam in of_inline.items()]
    rules += [phase_rules.phase_rule(survey, phase, seam) for phase, seam in of_phases.items()]
    _tell_left_out(survey, chosen)
    if len(rules) > limit:
        survey.left_out.insert(0, f'{len(rules) - limit} more rules than the {limit} asked for: see --limit')
    return sorted(rules[:limit], key=lambda rule: _SECTIONS.index(rule.section))


def _chosen(survey: Survey, room: int) -> list[Phase]:
    chosen: list[Phase] = []
    groups: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for phase in survey.phases:
        name = phase.function.name
        if len(chosen) >= room or groups[phase.group] >= _PER_GROUP or names[name] >= _PER_NAME:
            survey.instead.append(LeftOut(phase.function, phase.group, 'further from the loop than others like it'))
            continue
        groups[phase.group] += 1
        names[name] += 1
        chosen.append(phase)
    order = list(GROUPS)
    return sorted(chosen, key=lambda one: (order.index(one.group) if one.group in order else len(order), -one.score))


def _when(survey: Survey, rules: list[Proposed]) -> str | None:
    """The package, where every rule on the code base, rather than on a library, lies in one."""
    targets = [target for rule in rules for target in _targets_of(rule)]
    read = {unit.module.partition('.')[0] for unit in survey.units}
    modules = (target.partition(':')[0] for target in targets)
    own = [module for module in modules if module.endswith('.py') or module.partition('.')[0] in read]
    tops = {module.partition('.')[0] for module in own}
    if len(tops) != 1 or any(module.endswith('.py') for module in own):
        return None
    top = tops.pop()
    return top if any(unit.module.startswith(f'{top}.') for unit in survey.units) else None


def _actors(survey: Survey) -> Iterator[str]:
    found = [one for unit in survey.units for one in unit.classes if one.remote]
    found.sort(key=lambda one: (words.aside(one.unit.module), one.unit.shown, one.node.lineno))
    for one in found[:_MOST_ACTORS]:
        yield f'{one.unit.module}:{one.name}, line {one.node.lineno}'
    if len(found) > _MOST_ACTORS:
        yield f'and {len(found) - _MOST_ACTORS} more'


def _tell_left_out(survey: Survey, chosen: list[Phase]) -> None:
    proposed = {phase.function for phase in chosen}
    reasons: dict[str, list[str]] = {}
    for one in survey.instead:
        if one.function not in proposed:
            inside = one.why.startswith(INSIDE)
            named = f'{one.function.qualname} ({one.why})' if inside else one.function.qualname
            reasons.setdefault('inside one that is proposed' if inside else one.why, []).append(named)
    if survey.more_steps:
        survey.left_out.append(f'{survey.more_steps} more loops that may train, further down')
    ordered = sorted(reasons.items(), key=lambda item: -len(item[1]))
    lines = [f'{why}: {some(names, _MOST_NAMED)}' for why, names in ordered]
    room = max(0, _MOST_LEFT_OUT - len(survey.left_out))
    survey.left_out += lines[:room]
    if len(lines) > room:
        survey.left_out.append(f'and functions for {len(lines) - room} more reasons of that kind')
    if survey.code.unread:
        unread = [f'{os.path.basename(path)} ({why})' for path, why in survey.code.unread]
        survey.left_out.append(f'not read: {some(unread)}')


def _targets_of(rule: Proposed) -> Iterator[str]:
    for key in ('target', 'with', 'pair', 'start', 'stop'):
        value = rule.fields.get(key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from value


def _groups_of(rule: Proposed) -> Iterator[str]:
    labels = rule.fields.get('labels')
    for holder in (rule.fields, *(labels.values() if isinstance(labels, dict) else ())):
        group = holder.get('group') if isinstance(holder, dict) else None
        if isinstance(group, str):
            yield group
