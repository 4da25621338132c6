# SPDX-License-Identifier: Apache-2.0
"""Validated rule files to the plan: plain values that every process can read, with all defaults filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .merging import merge
from .model import (
    HTTP_PLACES,
    RAY_CALLS,
    VLLM_METRICS,
    VLLM_PLACES,
    AnnotateRule,
    Body,
    FunctionRule,
    HttpRule,
    IntervalRule,
    LoggerRule,
    Measure,
    Metric,
    MetricRule,
    PlaceRule,
    RayRule,
    Rule,
    RuleFile,
    Spanning,
    TimerRule,
    VllmRule,
)
from .plan import FORMAT, sha256_hex


def compile_files(files: Sequence[RuleFile], agent: str) -> dict[str, Any]:
    """The plan of some rule files; see `merge`.

    Args:
        files: The files, the one that counts most first.
        agent: The agent's version.
    """
    return merge([compile_file(file) for file in files], agent)


def compile_file(file: RuleFile) -> dict[str, Any]:
    """The plan of one rule file alone.

    Args:
        file: The file.
    """
    rules = [
        {'key': rule_key(file.framework, rule), 'file': 0, 'line': rule.line, 'kind': rule.kind, **_rule(rule)}
        for rule in file.rules
    ]
    return {'format': FORMAT, 'files': [_file(file)], 'rules': rules}


def rule_key(framework: str, rule: Rule) -> str:
    """The identity of a rule: 12 hex digits of what it says, whatever its line, its layout or its file."""
    return sha256_hex(f'{framework}\n{rule.canonical}'.encode())[:12]


def _file(file: RuleFile) -> dict[str, Any]:
    return {
        'path': file.path,
        'framework': file.framework,
        'when': {'module': file.when.module, 'version': file.when.version} if file.when else None,
        'groups': {name: {'bucket': bucket} for name, bucket in file.groups.items()},
        'presets': file.presets,
        'vars': {name: {'value': var.value, 'map': var.map, 'default': var.default} for name, var in file.vars.items()},
        'vocabularies': file.vocabularies,
        'native': file.native and file.native._asdict(),
    }


def _rule(rule: Rule) -> dict[str, Any]:
    # What a label or a metric inherits is already in it: the fields of the timer or logger would only repeat it.
    span = Spanning(announce=rule.span.announce, root=rule.span.root) if isinstance(rule.body, TimerRule) else rule.span
    return {
        'group': span.group,
        'bucket': span.bucket,
        'name': span.name,
        'attributes': {} if isinstance(rule.body, (LoggerRule, MetricRule)) else span.attributes,
        'announce': span.announce,
        'root': span.root,
        'native': span.native,
        'own_bucket': span.own_bucket,
        'budget': rule.budget,
        'only_from': rule.only_from,
        **_body(rule.body),
    }


def _body(body: Body) -> dict[str, Any]:
    if isinstance(body, FunctionRule):
        return body._asdict()
    if isinstance(body, PlaceRule):
        # Of a function rule too: a span is the same whichever way it was found.
        return {**body._asdict(), 'inside_bucket': None, 'within': (), 'outside': ()}
    if isinstance(body, AnnotateRule):
        return {'targets': body.targets, 'span': body.span}
    if isinstance(body, MetricRule):
        return {'targets': body.targets, 'measures': [_measure(measure) for measure in body.measures]}
    if isinstance(body, TimerRule):
        labels = sorted(body.labels.items(), key=lambda item: _is_glob(item[0]))
        return {
            'with': body.with_targets,
            'pair': body.pairs,
            'label_arg': body.label_arg,
            'labels': {label: _label(span) for label, span in labels},
        }
    if isinstance(body, IntervalRule):
        return {
            'start': body.start,
            'stop': body.stop,
            'lap': body.lap,
            'label_arg': body.label_arg,
            'current': body.current,
            'stop_at': body.stop_at,
        }
    if isinstance(body, LoggerRule):
        return {
            'targets': body.targets,
            'metrics_arg': body.metrics_arg,
            'prefix_arg': body.prefix_arg,
            'prefixes': body.prefixes,
            'metrics': {key: _metric(metric) for key, metric in body.metrics.items()},
        }
    if isinstance(body, RayRule):
        return {'on': body.on, 'targets': RAY_CALLS[body.on], 'name': ('c', f'ray.{body.on}')}
    if isinstance(body, HttpRule):
        return {
            'on': body.on,
            'targets': HTTP_PLACES[body.on],
            'exclude': body.exclude,
            'name': ('c', f'http.{body.on}'),
        }
    if isinstance(body, VllmRule):
        points = body.on in VLLM_METRICS
        return {'on': body.on, 'targets': VLLM_PLACES[body.on], 'points': points, 'name': ('c', f'rl.vllm.{body.on}')}
    return {'targets': body.targets, 'settings': body.settings}


def _is_glob(label: str) -> bool:
    return any(sign in label for sign in '*?')


def _label(span: Spanning) -> dict[str, Any]:
    return {
        'group': span.group,
        'bucket': span.bucket,
        'name': span.name,
        'attributes': span.attributes,
        'drop': span.drop,
        'current': span.current,
        'root': span.root,
        'announce': span.announce,
        'native': span.native,
        'own_bucket': span.own_bucket,
        'continues_over': span.continues_over,
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        'name': metric.name,
        'instrument': metric.instrument,
        'unit': metric.unit,
        'attributes': metric.attributes,
        'nonzero': metric.nonzero,
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return dict(measure._asdict())
