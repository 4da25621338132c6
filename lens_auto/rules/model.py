# SPDX-License-Identifier: Apache-2.0
"""What a rule file may say: the tables of its keys, and the validated form of a file.

The tables are the one source: validation, error texts and the editors' JSON Schema are made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from .expression import Tree

Bucket: TypeAlias = 'str | None'
Target: TypeAlias = tuple[str, str]
Pair: TypeAlias = tuple[str, str, str]

INSTRUMENTS = ('gauge', 'counter', 'histogram')
EDGES = ('call', 'return')
WAYS = ('wrap', 'rewrite')
SOURCE_KINDS = ('loop', 'block', 'call')
"""Kinds that find their places in the source, by a pattern."""

LATER_KINDS = ('event_pair', 'factory', 'process', 'message')
"""Kinds that are designed and not built: named in an error as such, not as a misspelling."""


class Key(NamedTuple):
    """One key of a mapping in a rule file.

    Attributes:
        holds: The type of its value; `schema.py` has the list.
        doc: A sentence for the reference page and for editors.
        required: Whether the mapping is wrong without it.
        default: What its absence means, for the documentation.
    """

    holds: str
    doc: str
    required: bool = False
    default: str = ''


Keys: TypeAlias = Mapping[str, Key]

FILE_KEYS: Keys = {
    'framework': Key('identifier', 'What the rules are for; the default service name of a run.', required=True),
    'when': Key('when', 'The package these rules need, with an optional version range: `nemo_rl>=0.3,<1`.'),
    'groups': Key('groups', 'Span groups beyond the built-in ones, or other buckets for those.'),
    'presets': Key('presets', 'Names for sets of groups.'),
    'vocabularies': Key(
        'texts', 'Sets of names to choose from with the setting `vocabulary`; the first is the default.'
    ),
    'native': Key('native', "How to tell that the framework's own telemetry records."),
    'vars': Key('vars', 'Named expressions for use in names and attributes.'),
    'rules': Key('rules', 'The rules.', required=True),
}

WHEN_KEYS: Keys = {
    'module': Key('module', 'The package.', required=True),
    'version': Key('version', 'A version range: `>=0.3,<1`.'),
}

NATIVE_KEYS: Keys = {
    'module': Key('module', "The framework's own telemetry module; it must be there.", required=True),
    'library': Key('texts', 'What that needs to record: a module or several, and all must be importable.'),
    'enabled': Key(
        'expression',
        'What says that it is on: an environment variable, or several with `or` of which the first that is set counts.',
        default='on',
    ),
}

GROUP_KEYS: Keys = {
    'bucket': Key('bucket', 'Where its time goes in the goodput account; without one the group is an umbrella.'),
}

VAR_KEYS: Keys = {
    'value': Key('expression', 'What is looked up.', required=True),
    'map': Key('map', 'From values to what they stand for.'),
    'default': Key('text', 'What stands for a value that `map` does not list, that is None, or that cannot be read.'),
}

_SPAN_KEYS: Keys = {
    'group': Key('group', 'The span group that switches this on.'),
    'bucket': Key('bucket', "Instead of the group's bucket.", default="the group's"),
    'name': Key('template', 'The span name; `{...}` holds an expression.'),
    'attributes': Key('attributes', 'Span attributes, each an expression.'),
    'announce': Key(
        'flag',
        'Whether an unfinished span is known if the process dies; `false` for spans by the thousand.',
        default='true',
    ),
    'root': Key('flag', 'Whether each span starts a trace of its own when none encloses it.', default='false'),
    'native': Key(
        'flag',
        "Whether the framework's own telemetry records this too: it then stands down where that does.",
        default='false',
    ),
}
_RULE_KEYS: Keys = {
    'kind': Key('kind', 'What the rule does.', required=True),
    'budget': Key('count', 'The most spans one process records for this rule.', default='no limit'),
    'only_from': Key('globs', 'Record only calls that come from these modules: `my_trainer.*`.', default='all'),
}


def _required(keys: Keys, *names: str) -> Keys:
    return {name: Key(key.holds, key.doc, key.required or name in names, key.default) for name, key in keys.items()}


LABEL_KEYS: Keys = {
    **_SPAN_KEYS,
    'current': Key(
        'flag',
        'Whether spans opened meanwhile nest in one that `pair` opened; those of `with` always do.',
        default='false',
    ),
    'continues_over': Key(
        'texts',
        'A block of this label in which nothing else was timed but these labels goes on in the next one, as one span.',
    ),
    'drop': Key('flag', 'Record nothing for this label.', default='false'),
}

METRIC_KEYS: Keys = {
    'name': Key('template', 'The metric name.', required=True),
    'instrument': Key('instrument', 'How points of it add up.', default='gauge'),
    'unit': Key('text', 'Its unit, as UCUM writes it: `s`, `{token}`, `%`.', default='none'),
    'attributes': Key('attributes', 'Attributes of each point, each an expression.'),
    'nonzero': Key('flag', 'Leave out points whose value is 0.', default='false'),
}

MEASURE_KEYS: Keys = {
    'name': Key('template', 'The metric name.', required=True),
    'value': Key('expression', 'The value of a point.', required=True),
    'instrument': Key('instrument', 'How points of it add up.', default='histogram'),
    'unit': METRIC_KEYS['unit'],
    'attributes': METRIC_KEYS['attributes'],
}

_TARGET: Keys = {
    'target': Key(
        'targets', '`module:qualname`, or a list of alternatives of which the first that exists counts.', required=True
    )
}

_PLACES: Keys = {
    'kind': _RULE_KEYS['kind'],
    'budget': _RULE_KEYS['budget'],
    'target': Key(
        'places',
        'What holds it: `module:qualname`, `train.py:main`, a module or script alone, or a list of alternatives.',
        required=True,
    ),
    'match': Key('pattern', 'The source it is, as a pattern: `for $i in range($$$):`.', required=True),
    'expect': Key('expect', 'How many places there have to be: `2`, `1-3`, `1+`.', default='1'),
    'force': Key('flag', 'Whether functions that torch.compile or TorchScript read are changed too.', default='false'),
    **_required(_SPAN_KEYS, 'group', 'name'),
}

KINDS: dict[str, Keys] = {
    'function': {
        **_RULE_KEYS,
        **_TARGET,
        **_required(_SPAN_KEYS, 'group', 'name'),
        'inside_bucket': Key('bucket', 'The bucket of spans inside that have theirs from their group.'),
        'within': Key('targets', 'Record only calls that one of these functions makes, itself or through others.'),
        'outside': Key('targets', 'Record only calls that none of these functions makes.'),
        'apply': Key('way', 'How: `wrap` puts code around the function, `rewrite` into its body.', default='wrap'),
        'force': Key(
            'flag', 'With `rewrite`: whether a function that torch.compile reads is changed too.', default='false'
        ),
    },
    'timer': {
        **_RULE_KEYS,
        'with': Key('targets', 'Context managers that time a label: their spans enclose what happens meanwhile.'),
        'pair': Key('pairs', 'Start and stop methods that time a label: `module:Timer.start/stop`.'),
        'label_arg': Key('name', 'The parameter that holds the label.', default='the first one'),
        'labels': Key('labels', 'What each label becomes; exact labels win over patterns (`eval/*`).'),
        **_SPAN_KEYS,
    },
    'interval': {
        **_RULE_KEYS,
        'start': Key('targets', 'The call that starts a span.'),
        'stop': Key('targets', 'The call that ends it.'),
        'lap': Key('targets', 'The call that ends one span and starts the next.'),
        'label_arg': Key('name', 'The parameter that tells parallel spans apart.', default='none'),
        'current': Key('flag', 'Whether spans opened meanwhile nest in it.', default='false'),
        'stop_at': Key('edge', 'Whether the span ends when `stop` is called or when it returns.', default='return'),
        **_required(_SPAN_KEYS, 'group', 'name'),
    },
    'logger': {
        'kind': _RULE_KEYS['kind'],
        **_TARGET,
        'group': Key('group', 'The span group that switches this on.', default='always on'),
        'metrics': Key('metrics', 'What each key of the logged mapping becomes.', required=True),
        'metrics_arg': Key('name', 'The parameter that holds the mapping.', default='the first dict'),
        'prefix_arg': Key('name', 'The parameter that holds a prefix of the keys.', default='prefix'),
        'prefixes': Key('texts', 'Log only calls with one of these prefixes.', default='all'),
        'attributes': Key('attributes', 'Attributes of each point of each metric, each an expression.'),
        'native': _SPAN_KEYS['native'],
    },
    'metric': {
        'kind': _RULE_KEYS['kind'],
        **_TARGET,
        'group': Key('group', 'The span group that switches this on.', default='always on'),
        'only_from': _RULE_KEYS['only_from'],
        'metrics': Key('measures', 'A list: what to record of each call that returns.', required=True),
        'attributes': Key('attributes', 'Attributes of each point of each metric, each an expression.'),
        'native': _SPAN_KEYS['native'],
    },
    'annotate': {
        'kind': _RULE_KEYS['kind'],
        **_TARGET,
        'group': Key('group', 'The span group that switches this on.', required=True),
        'span': Key('text', 'The name, or a pattern of names, of the spans that get them.', required=True),
        'attributes': Key('attributes', 'What the span that is current then gets, each an expression.', required=True),
        'only_from': _RULE_KEYS['only_from'],
        'native': _SPAN_KEYS['native'],
    },
    'resource': {
        'kind': _RULE_KEYS['kind'],
        **_TARGET,
        'attributes': Key('attributes', 'Attributes of everything this process records, each an expression.'),
        'settings': Key('expression', 'Gives the `telemetry:` block of a config object.'),
    },
    'loop': _PLACES,
    'block': _PLACES,
    'call': _PLACES,
    'ray': {
        'kind': _RULE_KEYS['kind'],
        'budget': _RULE_KEYS['budget'],
        'on': Key('ray call', 'Which call: `get` or `wait` for their waiting, `call` for submitting.', required=True),
        'group': Key('group', 'The span group that switches this on.', required=True),
        'bucket': _SPAN_KEYS['bucket'],
    },
    'http': {
        'kind': _RULE_KEYS['kind'],
        'budget': _RULE_KEYS['budget'],
        'on': Key('http side', '`server`: requests answered; `client`: requests made.', required=True),
        'exclude': Key('texts', 'Paths of requests to a server that are no spans.', default='health checks'),
        'group': Key('group', 'The span group that switches this on.', required=True),
    },
    'vllm': {
        'kind': _RULE_KEYS['kind'],
        'budget': _RULE_KEYS['budget'],
        'on': Key('vllm part', 'What of an engine; the page on vLLM has the list.', required=True),
        'group': Key('group', 'The span group that switches this on.', default='always on'),
    },
}
"""The keys of each rule kind."""


class Spanning(NamedTuple):
    """How a rule or a label makes spans. `group` and `name` are None only where the label is dropped."""

    group: str | None = None
    bucket: Bucket = None
    name: Tree | None = None
    attributes: dict[str, Tree] = {}  # noqa: RUF012  # replaced, never changed
    announce: bool = True
    root: bool = False
    current: bool = False
    drop: bool = False
    native: bool = False
    own_bucket: bool = False
    continues_over: tuple[str, ...] | None = None


class Metric(NamedTuple):
    """What one logged key becomes."""

    name: Tree
    instrument: str
    unit: str
    attributes: dict[str, Tree]
    nonzero: bool = False


class Measure(NamedTuple):
    """What is recorded of each call of a function."""

    name: Tree
    value: Tree
    instrument: str
    unit: str
    attributes: dict[str, Tree]


class FunctionRule(NamedTuple):
    """A span around each call of a function."""

    targets: tuple[Target, ...]
    inside_bucket: Bucket
    within: tuple[Target, ...] = ()
    outside: tuple[Target, ...] = ()
    apply: str = 'wrap'
    force: bool = False


class PlaceRule(NamedTuple):
    """A span around places in the source: each iteration of a loop, a `with` block, a call.

    Attributes:
        targets: What holds the places; the qualified name is '' for code of the module itself.
        match: The pattern, as written.
        expect: The fewest and the most places, None for no limit.
        force: Whether code that torch.compile or TorchScript read is changed too.
    """

    targets: tuple[Target, ...]
    match: str
    expect: tuple[int, int | None]
    force: bool


class AnnotateRule(NamedTuple):
    """Attributes for the span around a call."""

    targets: tuple[Target, ...]
    span: str


class MetricRule(NamedTuple):
    """Metric points from the calls of a function."""

    targets: tuple[Target, ...]
    measures: tuple[Measure, ...]


class TimerRule(NamedTuple):
    """Spans for the labels of a framework's timer."""

    with_targets: tuple[Target, ...]
    pairs: tuple[Pair, ...]
    label_arg: str | None
    labels: dict[str, Spanning]


class IntervalRule(NamedTuple):
    """A span from one call to another."""

    start: tuple[Target, ...]
    stop: tuple[Target, ...]
    lap: tuple[Target, ...]
    label_arg: str | None
    current: bool
    stop_at: str


class LoggerRule(NamedTuple):
    """Metric points from what a program logs."""

    targets: tuple[Target, ...]
    metrics_arg: str | None
    prefix_arg: str | None
    prefixes: tuple[str, ...] | None
    metrics: dict[str, Metric]


class ResourceRule(NamedTuple):
    """Run attributes and settings read off an object when it is built."""

    targets: tuple[Target, ...]
    settings: Tree | None


class VllmRule(NamedTuple):
    """What a process's vLLM engine does, measured or traced by itself."""

    on: str


VLLM_PLACES: dict[str, tuple[Target, ...]] = {
    'tracing': (
        ('vllm.engine.arg_utils', 'EngineArgs.create_engine_config'),
        ('vllm.tracing.otel', 'init_otel_tracer'),
        ('vllm.v1.engine.llm_engine', 'LLMEngine.__init__'),
        ('vllm.v1.engine.async_llm', 'AsyncLLM.__init__'),
        ('vllm.v1.engine.output_processor', 'OutputProcessor.add_request'),
    ),
    'start': (
        ('vllm.v1.engine.llm_engine', 'LLMEngine.__init__'),
        ('vllm.v1.engine.async_llm', 'AsyncLLM.__init__'),
        ('vllm.v1.engine.core', 'EngineCoreProc.__init__'),
        ('vllm.v1.executor.multiproc_executor', 'WorkerProc.__init__'),
        ('vllm.v1.engine.coordinator', 'DPCoordinatorProc.__init__'),
        ('vllm.v1.worker.gpu_worker', 'Worker.compile_or_warm_up_model'),
        ('vllm.v1.worker.cpu_worker', 'CPUWorker.compile_or_warm_up_model'),
    ),
    'statistics': (('vllm.engine.arg_utils', 'EngineArgs.create_engine_config'),),
    'request': (
        ('vllm.v1.engine.output_processor', 'OutputProcessor.add_request'),
        ('vllm.v1.engine.output_processor', 'OutputProcessor._update_stats_from_finished'),
        ('vllm.v1.engine.output_processor', 'OutputProcessor.abort_requests'),
        ('vllm.v1.engine.output_processor', 'OutputProcessor.propagate_error'),
        ('vllm.v1.engine.llm_engine', 'LLMEngine.__init__'),
        ('vllm.v1.engine.async_llm', 'AsyncLLM.__init__'),
    ),
    'finish': (
        ('vllm.v1.engine.output_processor', 'OutputProcessor._update_stats_from_finished'),
        ('vllm.v1.engine.output_processor', 'OutputProcessor.abort_requests'),
        ('vllm.v1.engine.output_processor', 'OutputProcessor.propagate_error'),
        ('vllm.v1.engine.llm_engine', 'LLMEngine.__init__'),
        ('vllm.v1.engine.async_llm', 'AsyncLLM.__init__'),
    ),
    'http': (('starlette.applications', 'Starlette.__call__'),),
    'call': (
        ('vllm.v1.engine.core_client', 'SyncMPClient._send_input'),
        ('vllm.v1.engine.core_client', 'AsyncMPClient._send_input_message'),
        ('vllm.v1.engine.core', 'EngineCoreProc._handle_client_request'),
        ('vllm.v1.executor.multiproc_executor', 'MultiprocExecutor.collective_rpc'),
        ('vllm.v1.executor.multiproc_executor', 'WorkerProc._execute_worker_rpc'),
    ),
    'batch': (('vllm.entrypoints.llm', 'LLM.generate'), ('vllm.entrypoints.llm', 'LLM.chat')),
    'scheduler': (('vllm.v1.metrics.loggers', 'StatLoggerManager.record'),),
    'step': (
        ('vllm.v1.engine.core', 'EngineCore.step'),
        ('vllm.v1.engine.core', 'EngineCore.step_with_batch_queue'),
        ('vllm.v1.engine.core', 'EngineCoreProc._process_input_queue'),
    ),
    'execute': (('vllm.v1.worker.worker_base', 'WorkerWrapperBase.execute_model'),),
}
"""Where vLLM does what a `vllm` rule names."""

VLLM_METRICS = ('batch', 'finish', 'scheduler', 'step', 'execute')
"""Those that make points rather than spans."""


class HttpRule(NamedTuple):
    """Spans of requests over HTTP."""

    on: str
    exclude: tuple[str, ...]


HTTP_PLACES: dict[str, tuple[Target, ...]] = {
    'server': (
        ('starlette.applications', 'Starlette.__call__'),
        ('uvicorn.protocols.http.h11_impl', 'RequestResponseCycle.send'),
        ('uvicorn.protocols.http.httptools_impl', 'RequestResponseCycle.send'),
        ('flask.app', 'Flask.full_dispatch_request'),
    ),
    'client': (
        ('httpx._client', 'Client.send'),
        ('httpx._client', 'AsyncClient.send'),
        ('requests.sessions', 'Session.send'),
        ('aiohttp.client', 'ClientSession._request'),
        ('aiohttp.client_reqrep', 'ClientRequest.__init__'),
    ),
}
"""Where requests pass that an `http` rule names."""

HEALTH = ('/health', '/healthz', '/health_check', '/livez', '/readyz', '/ready', '/ping', '/metrics')
"""Paths that are asked every few seconds by whoever watches a server."""


class RayRule(NamedTuple):
    """Spans of what a process asks of Ray."""

    on: str


RAY_CALLS: dict[str, tuple[Target, ...]] = {
    'get': (('ray._private.worker', 'get'),),
    'wait': (('ray._private.worker', 'wait'),),
    'call': (('ray.actor', 'ActorHandle._actor_method_call'), ('ray.remote_function', 'RemoteFunction._remote')),
}
"""Where Ray does what a `ray` rule names."""


Body: TypeAlias = (
    FunctionRule
    | PlaceRule
    | TimerRule
    | IntervalRule
    | LoggerRule
    | MetricRule
    | AnnotateRule
    | ResourceRule
    | HttpRule
    | RayRule
    | VllmRule
)


class Rule(NamedTuple):
    """One validated rule.

    Attributes:
        kind: A key of `KINDS`.
        line: Where it starts.
        canonical: The rule as written, without layout and comments: what its identity is made of.
        span: The keys that all kinds share; for a timer those of its labels count.
        body: The keys of its kind.
    """

    kind: str
    line: int
    canonical: str
    span: Spanning
    budget: int | None
    only_from: tuple[str, ...] | None
    body: Body


class When(NamedTuple):
    """The package a file needs."""

    module: str
    version: str | None


class Native(NamedTuple):
    """A framework's own telemetry."""

    module: str
    library: tuple[str, ...]
    enabled: Tree | None


class Var(NamedTuple):
    """A named expression."""

    value: Tree
    map: dict[str, str | int | float | bool] | None
    default: str | None


class RuleFile(NamedTuple):
    """One validated file; groups and presets include the built-in ones."""

    path: str
    framework: str
    when: When | None
    groups: dict[str, Bucket]
    presets: dict[str, tuple[str, ...] | str]
    vars: dict[str, Var]
    rules: tuple[Rule, ...]
    vocabularies: tuple[str, ...] = ()
    native: Native | None = None
