# SPDX-License-Identifier: Apache-2.0
"""All that was found in a code base, for those that make rules of it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence

from lens_auto.rules.registry import GROUPS

from . import words
from .calls import CallGraph
from .loggers import find_loggers, hf_trainers
from .loops import step_loops
from .meaning import Meaning
from .phases import phases
from .reading import Function, Unit, read_unit
from .rules import Value
from .sources import CodeBase
from .timers import find_timers

# Weights on their way to the generation engine have no group of their own everywhere; built-in rules declare this one.
DECLARED = {'refit': 'overhead'}
BUCKETS: dict[str, str | None] = {**GROUPS, **DECLARED}
CALLBACKS = 'transformers.trainer_callback:CallbackHandler'
"""Whom transformers' Trainer tells of steps and logs."""

_MOST_LOOPS = 8


class Survey:
    """What was found.

    Attributes:
        code: What was read.
        units: The files.
        own: Those of them that are more than examples and experiments; all, if none is.
        timers: The labelled timers, the most used first.
        steps: The training loops, the most likely first.
        more_steps: How many more loops there are that look like it.
        hf: The classes built on transformers' Trainer.
        phases: The functions that do phases, the most telling first.
        instead: Functions that others stand for.
        loggers: The functions that log metrics.
        framework: What the rules are for.
        left_out: What is not proposed, a line each; added to as rules are made.
    """

    def __init__(self, code: CodeBase, paths: Sequence[str]) -> None:
        """See the class.

        Args:
            code: What was read.
            paths: Where it was read from, as the user gave it.
        """
        self.units: list[Unit] = []
        unread: list[tuple[str, str]] = []
        for source in code.sources:
            try:
                self.units.append(read_unit(source))
            except RecursionError as error:  # an `elif` is an `if` in the `else` of the one before
                unread.append((source.path, type(error).__name__))
        self.code = CodeBase(code.sources, (*code.unread, *unread))
        self.own = [unit for unit in self.units if not words.aside(unit.module)] or self.units
        self.graph = CallGraph(self.units)
        self.meaning = Meaning(self.graph)
        self.timers = find_timers(self.graph)
        for timer in self.timers:
            self.meaning.timed.update(timer.calls)
        loops = step_loops(self.meaning)
        self.steps = loops[:_MOST_LOOPS]
        self.more_steps = len(loops) - len(self.steps)
        self.hf = hf_trainers(self.graph)
        self.phases, self.instead = phases(self.meaning, self.steps, self.timers, self.hf)
        self.loggers = find_loggers(self.graph, self.steps)
        self.framework = _framework(self.units, paths)
        self.left_out: list[str] = []

    def function_rule(self, function: Function, group: str, name: str = '') -> dict[str, Value]:
        """The keys of a function rule."""
        called = name or ('evaluate' if group == 'evaluate' else words.plain(function.name))
        return {'kind': 'function', 'target': function.target, 'group': group, 'name': self.span(called)}

    def span(self, name: str) -> str:
        """A span's name."""
        return f'rl.{self.framework}.{name}'


def _framework(units: list[Unit], paths: Sequence[str]) -> str:
    """The name: the package with most of the code, else the folder or script that was given."""
    packages = [unit.module for unit in units if '.' in unit.module or unit.source.path.endswith('__init__.py')]
    tops = Counter(module.partition('.')[0] for module in packages if not module.endswith('.py'))
    package = tops.most_common(1)
    if package and 2 * package[0][1] > len(units):
        name = package[0][0]
    else:
        path = os.path.abspath(paths[0])
        name = os.path.basename(path).removesuffix('.py')
        if len(paths) > 1 or name in ('src', 'main', 'train', 'run'):
            name = os.path.basename(os.path.dirname(path)) or name
    name = re.sub(r'[^\w]+', '_', name, flags=re.ASCII).strip('_').lower()
    return name if re.match(r'[a-z]', name) else f'trainer_{name}'.rstrip('_')


def some(names: Sequence[str], most: int = 4) -> str:
    """The first few of some names, and how many more there are."""
    distinct = list(dict.fromkeys(names))
    shown = ', '.join(distinct[:most])
    return f'{shown} and {len(distinct) - most} more' if len(distinct) > most else shown


def place(function: Function) -> str:
    """Where a function is, for a comment."""
    return f'{function.unit.shown}:{function.line}'
