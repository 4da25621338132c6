# SPDX-License-Identifier: Apache-2.0
"""One rule file: from its text to the validated model, or to all that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable

from . import document, names, places
from .document import Fields, Items, Node, Scalar
from .errors import RuleErrors, nearest, suggestion
from .expression import Tree
from .model import (
    EDGES,
    FILE_KEYS,
    HEALTH,
    HTTP_PLACES,
    INSTRUMENTS,
    KINDS,
    LABEL_KEYS,
    LATER_KINDS,
    MEASURE_KEYS,
    METRIC_KEYS,
    RAY_CALLS,
    SOURCE_KINDS,
    VLLM_PLACES,
    WAYS,
    AnnotateRule,
    Body,
    Bucket,
    FunctionRule,
    HttpRule,
    IntervalRule,
    LoggerRule,
    Measure,
    Metric,
    MetricRule,
    RayRule,
    ResourceRule,
    Rule,
    RuleFile,
    Spanning,
    TimerRule,
    VllmRule,
)
from .reader import Reader, shown

_ANYWHERE = frozenset({'arg', 'self', 'env', 'version'})
_CALL = _ANYWHERE | {'frame', 'caller'}
# Where in a rule of each kind the values of an expression can come from.
_ROOTS = {
    'function': _CALL | {'result'},
    'timer': _CALL | {'label'},
    'interval': _CALL | {'label'},
    'logger': _ANYWHERE | {'key'},
    'metric': _ANYWHERE | {'result', 'elapsed'},
    'annotate': _CALL | {'result'},
    'resource': _ANYWHERE | {'result'},
    'loop': frozenset({'match', 'frame', 'env', 'version'}),
    'block': frozenset({'match', 'frame', 'env', 'version'}),
    'call': frozenset({'match', 'frame', 'env', 'version', 'result'}),
    'http': frozenset[str](),
    'ray': frozenset[str](),
    'vllm': frozenset[str](),
}

# What is known of a call only from outside.
_OF_CALLS = frozenset({'only_from', 'within', 'outside', 'inside_bucket'})


def shown_path(path: str) -> str:
    """A path as a reader recognises it: relative where it lies below the working directory."""
    if os.path.isabs(path):
        try:
            relative = os.path.relpath(path)
        except (OSError, ValueError):
            return path
        return path if relative.startswith('..') else relative
    return path


def read_file(path: str, origin: str = '') -> RuleFile:
    """Read and validate a rule file.

    Args:
        path: The file.
        origin: Who named it, for the error when it cannot be read.

    Raises:
        RuleErrors: All that is wrong with it.
    """
    name = shown_path(path)
    return validate(document.parse(document.read(path, name, origin), name), name, os.path.abspath(path))


def validate(root: Fields, name: str, path: str) -> RuleFile:
    """The model of a parsed file.

    Args:
        root: What `document.parse` returned.
        name: The file, as errors name it.
        path: The file, as the plan names it.

    Raises:
        RuleErrors: All that is wrong with it.
    """
    reader = Reader(name)
    values = reader.fields(root, FILE_KEYS, 'a rule file')
    framework = reader.matching(values, 'framework', names.is_name, 'use letters, digits, `_`, `.`, `-`: `my_trainer`')
    when = names.read_when(reader, values)
    groups = names.read_groups(reader, values)
    presets = names.read_presets(reader, values, groups)
    variables = names.read_vars(reader, values)
    reader.vocabularies = names.read_vocabularies(reader, values)
    native = names.read_native(reader, values)
    rules = _Rules(reader, groups, frozenset(presets)).read(values.get('rules'))
    if reader.errors:
        raise RuleErrors(sorted(reader.errors))
    return RuleFile(path, framework or '', when, groups, presets, variables, tuple(rules), reader.vocabularies, native)


class _Rules:
    """Reads the rules of one file; knows its groups."""

    def __init__(self, reader: Reader, groups: dict[str, Bucket], presets: frozenset[str]) -> None:
        self.reader = reader
        self.groups = groups
        self.presets = presets
        self.kinds: dict[str, Callable[[Fields, dict[str, Node], Spanning], Body]] = {
            'function': self.function,
            'timer': self.timer,
            'interval': self.interval,
            'logger': self.logger,
            'metric': self.metric_rule,
            'annotate': self.annotate,
            'resource': self.resource,
            'ray': self.ray,
            'http': self.http,
            'vllm': self.vllm,
            **dict.fromkeys(SOURCE_KINDS, self.places),
        }

    def read(self, node: Node | None) -> list[Rule]:
        if node is None:
            return []
        if not isinstance(node, Items):
            self.reader.fault(node, f'`rules` must be a list, not {shown(node)}', 'start each rule with `- kind: ...`')
            return []
        rules: list[Rule] = []
        lines: dict[str, int] = {}
        for item in node.items:
            rule = self.rule(item)
            if rule is None:
                continue
            first = lines.setdefault(rule.canonical, rule.line)
            if first != rule.line:
                self.reader.fault(item, f'this rule repeats the one on line {first}', 'remove one of the two')
            rules.append(rule)
        return rules

    def rule(self, node: Node) -> Rule | None:
        reader = self.reader
        if not isinstance(node, Fields):
            reader.fault(node, f'a rule must be a mapping, not {shown(node)}', 'start it with `- kind: function`')
            return None
        kind = self.kind(node)
        if kind is None:
            return None
        article = 'an' if kind[0] in 'aeiou' else 'a'
        values = reader.fields(node, KINDS[kind], f'{article} {kind} rule')
        # In a function's own body there is neither its caller's frame at hand nor yet its result.
        way = values.get('apply')
        roots = _ANYWHERE if isinstance(way, Scalar) and way.text == 'rewrite' else _ROOTS[kind]
        reader.captures = places.captures(reader, values, kind)
        # A name is needed when the span starts, and there is no result yet.
        span = self.span(values, roots - {'result'}, roots)
        body = self.kinds[kind](node, values, span)
        budget, only_from = reader.count(values, 'budget'), reader.globs(values, 'only_from')
        canonical = repr(document.plain(node))
        return Rule(kind, node.place.line, canonical, span, budget, only_from, body)

    def kind(self, node: Fields) -> str | None:
        value = node.get('kind')
        available = f'available: {", ".join(sorted(KINDS))}'
        if value is None:
            self.reader.fault(node, 'a rule needs `kind`', available)
            return None
        kind = self.reader.as_text(value, '`kind`')
        if kind is None or kind in KINDS:
            return kind
        if kind in LATER_KINDS:
            self.reader.fault(value, f'kind `{kind}` is not available in this version', available)
        else:
            self.reader.fault(value, f'unknown kind `{kind}`', suggestion(kind, KINDS, 'Kinds'))
        return None

    def span(self, values: dict[str, Node], name_roots: frozenset[str], roots: frozenset[str]) -> Spanning:
        reader = self.reader
        group = self.group(values)
        bucket = names.read_bucket(reader, values) if 'bucket' in values else self.groups.get(group or '')
        return Spanning(
            group,
            bucket,
            reader.template(values, 'name', name_roots),
            reader.attributes(values, 'attributes', roots),
            reader.flag(values, 'announce', True),
            reader.flag(values, 'root', False),
            reader.flag(values, 'current', False),
            reader.flag(values, 'drop', False),
            reader.flag(values, 'native', False),
            'bucket' in values,
            reader.texts(values, 'continues_over'),
        )

    def group(self, values: dict[str, Node]) -> str | None:
        text = self.reader.text(values, 'group')
        return None if text is None else self.known_group(values['group'], text)

    def known_group(self, node: Node, text: str) -> str | None:
        if text in self.groups:
            return text
        if text in self.presets:
            self.reader.fault(
                node, f'`{text}` is a preset; a rule belongs to one group', f'groups: {self.group_list()}'
            )
        else:
            near = nearest(text, self.groups)
            own = 'a group of your own is declared under `groups:` at the top of the file'
            self.reader.fault(node, f'group `{text}` is not known', near, f'known groups: {self.group_list()}', own)
        return None

    def group_list(self) -> str:
        return ', '.join(sorted(self.groups))

    def function(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        reader = self.reader
        inside = names.read_bucket(reader, values, 'inside_bucket')
        asked = [key for key in ('within', 'outside', 'inside_bucket') if key in values]
        if len(asked) > 1:
            hint = 'write a rule for each'
            reader.fault(values[asked[1]], f'`{asked[0]}` and `{asked[1]}` do not go together in one rule', hint)
        within, outside = reader.targets(values, 'within'), reader.targets(values, 'outside')
        apply, force = reader.choice(values, 'apply', WAYS) or 'wrap', reader.flag(values, 'force', False)
        if force and apply == 'wrap':
            reader.fault(values['force'], '`force` means nothing without `apply: rewrite`', 'remove it')
        if apply == 'rewrite':
            for key in _OF_CALLS & values.keys():
                reader.fault(values[key], f'`{key}` needs `apply: wrap`', 'remove one of the two')
        return FunctionRule(reader.targets(values, 'target'), inside, within, outside, apply, force)

    def places(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        return places.read(self.reader, values)

    def timer(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        reader = self.reader
        if 'with' not in values and 'pair' not in values:
            reader.fault(node, 'a timer rule needs `with` or `pair`', 'with: my_trainer.timer:Timer.time')
        labels: dict[str, Spanning] = {}
        if 'labels' in values:
            fields = reader.named(values, 'labels')
            for label, value in fields.pairs if fields else ():
                labels[label.text] = self.label(label, value, values, span)
        elif 'group' in values and 'name' in values:
            labels['*'] = span
        else:
            hint = 'or `group` and `name` for all labels alike: name: "rl.{label}"'
            reader.fault(node, 'a timer rule needs `labels`', hint)
        return TimerRule(
            reader.targets(values, 'with'), reader.pairs(values, 'pair'), self.parameter(values, 'label_arg'), labels
        )

    def label(self, label: Scalar, value: Node, rule: dict[str, Node], default: Spanning) -> Spanning:
        reader = self.reader
        what = f'the label `{label.text}`'
        if isinstance(value, Scalar):
            text = reader.as_text(value, what)
            if text is None:
                return default
            if text == names.DROP:
                return Spanning(drop=True)
            group = self.known_group(value, text)
            span = default._replace(group=group, bucket=self.groups.get(group or ''), own_bucket=False)
            own: dict[str, Node] = {'group': value}
        else:
            own = reader.fields(value, LABEL_KEYS, what)
            given = self.span(own, _ROOTS['timer'], _ROOTS['timer'])
            if given.drop:
                if len(own) > 1:
                    reader.fault(value, f'{what} is dropped, so its other keys mean nothing', 'write `drop` alone')
                return Spanning(drop=True)
            span = Spanning(
                given.group or default.group,
                given.bucket if {'group', 'bucket'} & own.keys() else default.bucket,
                given.name or default.name,
                {**default.attributes, **given.attributes},
                given.announce if 'announce' in own else default.announce,
                given.root if 'root' in own else default.root,
                given.current,
                native=given.native if 'native' in own else default.native,
                own_bucket=given.own_bucket if {'group', 'bucket'} & own.keys() else default.own_bucket,
                continues_over=given.continues_over,
            )
        for key, example in (('group', 'group: step'), ('name', 'name: "rl.{label}"')):
            if key not in own and key not in rule:
                reader.fault(label, f'{what} needs `{key}`', f'give it one, or the whole rule: {example}')
        return span

    def interval(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        reader = self.reader
        start, stop, lap = (reader.targets(values, key) for key in ('start', 'stop', 'lap'))
        if not {'start', 'stop'} <= values.keys() and 'lap' not in values:
            hint = 'give it `start` and `stop`, or `lap`'
            reader.fault(node, 'an interval rule needs to know where a span starts and where it ends', hint)
        label_arg, current = self.parameter(values, 'label_arg'), reader.flag(values, 'current', False)
        if lap and current:
            # A lap's span is known only when it is over: whatever opened meanwhile has its parent already.
            reader.fault(values['current'], 'a lap cannot be current', 'remove `current`, or use `start` and `stop`')
        stop_at = reader.choice(values, 'stop_at', EDGES) or 'return'
        return IntervalRule(start, stop, lap, label_arg, current, stop_at)

    def logger(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        reader = self.reader
        metrics: dict[str, Metric] = {}
        fields = reader.named(values, 'metrics')
        for key, value in fields.pairs if fields else ():
            metric = self.metric(key, value, span)
            if metric is not None:
                metrics[key.text] = metric
        return LoggerRule(
            reader.targets(values, 'target'),
            self.parameter(values, 'metrics_arg'),
            self.parameter(values, 'prefix_arg'),
            reader.texts(values, 'prefixes'),
            metrics,
        )

    def metric(self, key: Scalar, value: Node, default: Spanning) -> Metric | None:
        reader = self.reader
        what = f'the metric `{key.text}`'
        if isinstance(value, Scalar):
            name = reader.as_template(value, what, _ROOTS['logger'])
            return None if name is None else Metric(name, 'gauge', '', dict(default.attributes))
        own = reader.fields(value, METRIC_KEYS, what)
        name: Tree | None = reader.template(own, 'name', _ROOTS['logger'])
        instrument = reader.choice(own, 'instrument', INSTRUMENTS) or 'gauge'
        unit = reader.text(own, 'unit') or ''
        attributes = {**default.attributes, **reader.attributes(own, 'attributes', _ROOTS['logger'])}
        nonzero = reader.flag(own, 'nonzero', False)
        return None if name is None else Metric(name, instrument, unit, attributes, nonzero)

    def metric_rule(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        reader = self.reader
        listed = values.get('metrics')
        measures: list[Measure] = []
        if listed is not None and not isinstance(listed, Items):
            reader.fault(listed, f'`metrics` must be a list, not {shown(listed)}', 'start each with `- name: ...`')
        for item in listed.items if isinstance(listed, Items) else ():
            own = reader.fields(item, MEASURE_KEYS, 'a metric')
            roots = _ROOTS['metric']
            name, value = reader.template(own, 'name', roots), reader.expression(own, 'value', roots)
            instrument = reader.choice(own, 'instrument', INSTRUMENTS) or 'histogram'
            attributes = {**span.attributes, **reader.attributes(own, 'attributes', roots)}
            if name is not None and value is not None:
                measures.append(Measure(name, value, instrument, reader.text(own, 'unit') or '', attributes))
        return MetricRule(reader.targets(values, 'target'), tuple(measures))

    def annotate(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        return AnnotateRule(self.reader.targets(values, 'target'), self.reader.text(values, 'span') or '')

    def resource(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        if 'attributes' not in values and 'settings' not in values:
            hint = 'attributes: {rl.model: self.model_name}'
            self.reader.fault(node, 'a resource rule needs `attributes` or `settings`', hint)
        settings = self.reader.expression(values, 'settings', _ROOTS['resource'])
        return ResourceRule(self.reader.targets(values, 'target'), settings)

    def ray(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        return RayRule(self.reader.choice(values, 'on', tuple(RAY_CALLS)) or 'get')

    def http(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        reader = self.reader
        exclude, on = reader.texts(values, 'exclude'), reader.choice(values, 'on', tuple(HTTP_PLACES)) or 'server'
        if exclude is not None and on == 'client':
            reader.fault(values['exclude'], '`exclude` is of requests to a server', 'remove it, or write `on: server`')
        return HttpRule(on, HEALTH if exclude is None else exclude)

    def vllm(self, node: Fields, values: dict[str, Node], span: Spanning) -> Body:
        return VllmRule(self.reader.choice(values, 'on', tuple(VLLM_PLACES)) or 'request')

    def parameter(self, values: dict[str, Node], key: str) -> str | None:
        return self.reader.matching(values, key, str.isidentifier, 'write the name of a parameter of the target')
