# SPDX-License-Identifier: Apache-2.0
"""Rules for the metrics that a program logs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from . import words
from .keys import Key, Keys, anywhere, named
from .loggers import library_loggers
from .reading import Call
from .rules import LIKELY, SURE, Proposed, Value
from .survey import CALLBACKS, Survey, place

SECTION = 'metrics'

_TRAINERS = ('loss', 'grad_norm', 'learning_rate')


def logger_rules(survey: Survey) -> Iterator[Proposed]:
    """Rules for the loggers, each with keys of its own."""
    if survey.hf:
        keys = named({**dict.fromkeys(_TRAINERS, 'logged by the Trainer'), **anywhere(survey.own)})
        if keys:
            why = ['the Trainer reports what it logs to its callbacks']
            yield _logger_rule(survey, why, f'{CALLBACKS}.on_log', 'logs', SURE, keys)
        return
    finder = Keys(survey.graph)
    followed = [(one, finder.of_calls(one.calls, one.mapping, one.position, one.rest)) for one in survey.loggers]
    if followed and not any(words.of_metric(key) for _, places in followed for key in places):
        # What is logged could not be followed: whatever is put into something called like metrics may be it.
        followed[0][1].update(anywhere(survey.own))
    if not any(places for _, places in followed):
        for (target, mapping), calls in library_loggers(survey.graph, survey.steps).items():
            places = finder.of_calls(calls, mapping, 0, False)
            unit, call = calls[0]
            why = [f'{unit.shown}:{call.line} logs with the library itself']
            if places:
                yield _logger_rule(survey, why, target, mapping, LIKELY, named(places))
    seen: set[str] = set()
    for logger, places in followed:
        fresh = {key: place for key, place in places.items() if key not in seen}
        if not fresh or len(fresh) < len(places) // 2:
            reason = 'the same keys as another one' if places else 'no key was found'
            survey.left_out.append(f'logger {logger.function.target}: {reason}')
            continue
        seen |= places.keys()
        unit, call = logger.calls[0]
        more = len(logger.calls) - 1
        why = [f'{place(logger.function)}, called near a training loop at {unit.shown}:{call.line}']
        why[0] += f' and {more} more' if more else ''
        prefixes = sorted({word for _, one in logger.calls if (word := _prefix(one))})
        if len(prefixes) > 1:
            why.append(f'It is called with the prefixes {", ".join(prefixes)}: `prefixes` would tell them apart.')
        mapping = logger.mapping if logger.told else ''
        yield _logger_rule(survey, why, logger.function.target, mapping, LIKELY, named(fresh))


def _logger_rule(survey: Survey, why: list[str], target: str, mapping: str, sureness: str, keys: list[Key]) -> Proposed:
    fields: dict[str, Value] = {'kind': 'logger', 'target': target}
    if mapping:
        fields['metrics_arg'] = mapping
    metrics: dict[str, Value] = {}
    rule = Proposed(SECTION, sureness, [*why, 'Only the keys listed are read; these were found in the source.'], fields)
    for key in keys:
        name = key.name or (survey.span('{key}') if '*' in key.text else survey.span(_metric_name(key.text)))
        metrics[key.text] = {'name': name, 'unit': key.unit} if key.unit else name
        rule.notes[key.text] = key.place
    fields['metrics'] = metrics
    return rule


def _prefix(call: Call) -> str:
    values = [keyword.value for keyword in call.keywords if keyword.arg == 'prefix']
    value = values[0].value if values and isinstance(values[0], ast.Constant) else ''
    return value if isinstance(value, str) else ''


def _metric_name(key: str) -> str:
    return re.sub(r'[^\w.]+', '_', key.replace('/', '.')).strip('._').lower()
