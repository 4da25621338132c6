# SPDX-License-Identifier: Apache-2.0
"""The methods that programs log metrics with, and classes whose logging is transformers' own."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from . import words
from .calls import CallGraph
from .loops import StepLoop
from .reading import Call, Class, Function, Unit

_MAPPINGS = ('metrics', 'data', 'logs', 'values', 'stats', 'scalars', 'metrics_dict', 'log_dict', 'logs_dict', 'status')
# What a logger rule finds without being told.
_FOUND_ALONE = ('metrics', 'data', 'logs', 'values', 'stats', 'scalars')
_LOGS = re.compile(
    r'_?(log|log_metrics|log_dict|log_scalars?|log_stats|log_train|log_step|log_training_metrics|commit|track|report|write_metrics'
    r'|add_scalars|emit|report_metrics|write_log)'
)
# These log when their class is there to log.
_MAY_LOG = re.compile(r'add|record|update|push|write|put|__call__')
_LOGGER = re.compile(r'(?i).*(log|metric|track|stats|report|board|monitor).*')
_FEWEST = 2


@dataclass(eq=False)
class Logger:
    """A function that is given a mapping of metrics.

    Attributes:
        function: It.
        mapping: The parameter that holds the mapping.
        rest: Whether that is `**mapping`.
        calls: Calls of it near a training loop, each with its file.
    """

    function: Function
    mapping: str
    rest: bool
    calls: list[tuple[Unit, Call]] = field(default_factory=list[tuple[Unit, Call]])

    @property
    def told(self) -> bool:
        """Whether a rule has to name the parameter."""
        first = next((name for name in self.function.parameters if name in _FOUND_ALONE), None)
        return self.rest or first != self.mapping

    @property
    def position(self) -> int:
        """Where the parameter is among those a call gives by position."""
        names = [name for name in self.function.parameters if name not in ('self', 'cls')]
        return names.index(self.mapping) if self.mapping in names else len(names)

    @property
    def score(self) -> tuple[bool, bool, int]:
        """What ranks it among others."""
        return not words.aside(self.function.unit.module), 'log' in self.function.name, len(self.calls)


def find_loggers(graph: CallGraph, steps: list[StepLoop]) -> list[Logger]:
    """The functions that are given metrics near a training loop, the most used first."""
    near = _near(graph, steps)
    found: list[Logger] = []
    for function in graph.functions:
        if function.nested or (function.owner is not None and function.qualname.count('.') != 1):
            continue
        owned = function.owner is not None and _LOGGER.fullmatch(function.owner.name)
        if not (_LOGS.fullmatch(function.name) or (owned and _MAY_LOG.fullmatch(function.name))):
            continue
        calls = [
            (holder.unit if holder else function.unit, call)
            for call in graph.callers(function)
            if (holder := graph.holder(call)) in near or (holder is None and call.loops)
        ]
        mapping = _mapping(function, [call for _, call in calls]) if calls else None
        if mapping is not None:
            found.append(Logger(function, *mapping, calls))
    found.sort(key=lambda one: (one.score, one.function.target), reverse=True)
    # A backend that another one hands the same mapping to would log everything twice.
    return [
        logger
        for logger in found
        if not any(_calls(graph, one, logger) for one in found if one is not logger and not _calls(graph, logger, one))
    ]


# Where libraries take metrics, for programs that call them without a logger of their own: target and parameter.
_LIBRARIES = {
    'wandb.log': ('wandb.sdk.wandb_run:Run.log', 'data'),
    'trackio.log': ('trackio:log', 'metrics'),
    'mlflow.log_metrics': ('mlflow.tracking.fluent:log_metrics', 'metrics'),
}


def library_loggers(graph: CallGraph, steps: list[StepLoop]) -> dict[tuple[str, str], list[tuple[Unit, Call]]]:
    """The calls of logging libraries near a training loop, by the function they end up in and its parameter."""
    near = _near(graph, steps)
    found: dict[tuple[str, str], list[tuple[Unit, Call]]] = {}
    for unit in graph.units:
        for call in graph.calls(unit):
            module, name = unit.imports.get(call.receiver, ('', ''))
            known = _LIBRARIES.get(f'{module}.{call.name}') if module and not name else None
            holder = graph.holder(call)
            if known is not None and (holder in near or (holder is None and call.loops)):
                found.setdefault(known, []).append((unit, call))
    return found


def _mapping(function: Function, calls: list[Call]) -> tuple[str, bool] | None:
    """The parameter with the metrics: by its name, by what calls put there, or `**` where calls name several."""
    named = next((name for name in function.parameters if name in _MAPPINGS), None)
    if named is not None:
        return named, False
    names = [name for name in function.parameters if name not in ('self', 'cls')]
    for call in calls:
        for name, value in (*zip(names, call.arguments, strict=False), *((k.arg, k.value) for k in call.keywords)):
            if name in names and isinstance(value, (ast.Dict, ast.DictComp)):
                return str(name), False
    rest = function.node.args.kwarg
    if rest is not None and any(len([k for k in call.keywords if k.arg not in names]) >= _FEWEST for call in calls):
        return rest.arg, True
    return None


def _calls(graph: CallGraph, outer: Logger, inner: Logger) -> bool:
    return inner.function in graph.below(outer.function, 3)


def _near(graph: CallGraph, steps: list[StepLoop]) -> set[Function | None]:
    near: set[Function | None] = set()
    for step in steps:
        near |= graph.reached(step.loop.calls, step.loop.unit, 3)
        if step.loop.function is not None:
            near.add(step.loop.function)
    return near


def hf_trainers(graph: CallGraph) -> list[Class]:
    """The classes that are built on transformers' Trainer."""
    return [found for unit in graph.units for found in unit.classes if _on_trainer(graph, found)]


def _on_trainer(graph: CallGraph, found: Class) -> bool:
    for one in graph.lineage(found):
        for base in one.bases:
            last = base.rpartition('.')[2]
            origin = one.unit.imports.get(base.partition('.')[0], ('', ''))
            if last in ('Trainer', 'Seq2SeqTrainer') and origin[0].partition('.')[0] == 'transformers':
                return True
    return False
