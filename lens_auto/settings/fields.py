# SPDX-License-Identifier: Apache-2.0
"""Every field of the `telemetry:` block: kind, default, environment names and the text of its documentation."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    Value: TypeAlias = bool | int | float | str

LENS = 'LENS_'
NEMO_RL = 'NEMO_RL_OTEL_'
NEMO_GYM = 'NEMO_GYM_OTEL_'
NEMO_LENS = 'NEMO_LENS_'

FIRST = 'first'
"""The `vocabulary` that stands for the first of each rule file."""

TRUE = ('1', 'true', 'yes', 'on')
FALSE = ('0', 'false', 'no', 'off')


class Field:
    """One field of the `telemetry:` block.

    Attributes:
        name: The key in the block, and of `--set`.
        kind: 'bool', 'int', 'float', 'choice', 'str', or 'names' (names joined by commas).
        default: The value when no source names the field and nothing else decides it.
        doc: The field's entry on the configuration page, in Markdown.
        suffix: The end of its environment names: `LENS_<suffix>`, `NEMO_RL_OTEL_<suffix>` and so on.
        choices: The valid values of a choice.
        low: The smallest valid number.
        high: The largest valid number.
    """

    __slots__ = ('name', 'kind', 'default', 'doc', 'suffix', 'choices', 'low', 'high')

    def __init__(
        self,
        name: str,
        kind: str,
        default: Value,
        doc: str,
        choices: tuple[str, ...] = (),
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.doc = doc
        self.suffix = name.upper()
        self.choices = choices
        self.low = low
        self.high = high

    @property
    def valid(self) -> str:
        """What the field takes, in the words of an error or of the documentation."""
        if self.kind == 'bool':
            return f'{", ".join(TRUE)}, {", ".join(FALSE)}'
        if self.kind == 'choice':
            return ', '.join(self.choices)
        if self.kind == 'names':
            return 'a preset, group names, or both, joined by commas'
        if self.kind == 'str':
            return 'a line of printable text'
        noun = 'a whole number' if self.kind == 'int' else 'a number'
        if self.low is None:
            return noun
        return f'{noun}, {self.low} or more' if self.high is None else f'{noun} from {self.low} to {self.high}'

    def parse(self, value: object) -> Value:
        """Turn a text, or a value read off a config object, into the field's own type.

        Raises:
            ValueError: The value is none of `valid`. The message names no place: the caller knows it.
        """
        if self.kind == 'bool':
            return _boolean(value)
        if self.kind == 'int' or self.kind == 'float':
            return self._number(value)
        if self.kind == 'names' and isinstance(value, (list, tuple)):
            value = _joined(value)  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(value, str):
            raise ValueError(value)
        text = value.strip()
        if self.kind == 'choice':
            text = text.lower()
            if text not in self.choices:
                raise ValueError(value)
        elif self.kind == 'names':
            text = ','.join(name for name in map(str.strip, text.split(',')) if name)
        # It becomes an environment variable and a line of output: no NUL, no newline.
        if not text or not text.isprintable():
            raise ValueError(value)
        return text

    def _number(self, value: object) -> Value:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ValueError(value)
        number: int | float
        if self.kind == 'float':
            number = float(value)
        elif isinstance(value, float):
            number = int(value) if value.is_integer() else int(str(value))
        else:
            number = int(value)
        # Written so that NaN, which compares with nothing, is out of range too.
        if not (self.low is None or number >= self.low) or not (self.high is None or number <= self.high):
            raise ValueError(value)
        return number


def _joined(items: Iterable[object]) -> str:
    names: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise ValueError(items)
        names.append(item)
    return ','.join(names)


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower() if isinstance(value, (str, int)) else ''
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError(value)


def text(value: Value) -> str:
    """The value as the environment and a `telemetry:` block spell it, booleans as 1 and 0."""
    if isinstance(value, bool):
        return '1' if value else '0'
    return str(value)


FIELDS: tuple[Field, ...] = (
    Field(
        'enabled',
        'bool',
        True,
        'Record anything at all. Under `lens-instrument` the default is true; an explicit false in the config of the '
        'run, which is where NeMo-RL users keep it, wins over that default and is announced.',
    ),
    Field(
        'service_name',
        'str',
        'lens-auto',
        'The `service.name` of every process of the run. One setting with `OTEL_SERVICE_NAME`: the environment wins '
        'over a config. The default is the framework name of the active rule file, `lens-auto` when there is none.',
    ),
    Field(
        'span_groups',
        'names',
        'default',
        'Which spans are recorded: a preset (`default`, `per_step`, `all`), group names, or both, as in '
        '`per_step,generation`; the union counts. A group that is off costs nothing: its functions are not patched. '
        'The default is `per_step,job` with exporter `file`, else `default`.',
    ),
    Field(
        'export_strategy',
        'choice',
        'single_rank',
        'Which ranks record: one (`export_rank`), all, a share of them (`export_sample_rate`), or the first of each '
        'node. The driver and processes that are no rank always record. The default is `all_ranks` with exporter '
        '`file`, else `single_rank`.',
        choices=('single_rank', 'all_ranks', 'sampled', 'first_rank_per_node'),
    ),
    Field('export_rank', 'int', -1, 'The rank that records under `single_rank`; -1 is the last one.', low=-1),
    Field(
        'export_sample_rate',
        'float',
        1.0,
        'The share of ranks that record. No effect but under `sampled` or with `sampler_enabled`. Which ranks these '
        'are follows from run id and rank alone: a restarted rank decides the same.',
        low=0,
        high=1,
    ),
    Field(
        'sampler_enabled',
        'bool',
        False,
        'Apply `export_sample_rate` to the ranks that `export_strategy` chose as well.',
    ),
    Field('traces_enabled', 'bool', True, 'Record spans.'),
    Field('metrics_enabled', 'bool', True, 'Record metrics.'),
    Field(
        'system_metrics',
        'bool',
        True,
        'Record what the operating system says of the processes and the node (CPU, memory, threads, disk), and the '
        'NVIDIA driver of the GPUs (utilisation, memory, power, temperature). The launcher asks, every 1 to 10 s; '
        'traced processes do nothing for it. No effect without `metrics_enabled`.',
    ),
    Field(
        'logs_enabled',
        'bool',
        False,
        "Record what the program writes with Python's `logging`, each record with the span it was written in: logger, "
        'severity, place and the type of an exception; its text only with `log_bodies`. A process records up to 100 a '
        'second of warnings and worse, and as many of all others; what is left out is counted. A span that is open for '
        'over a minute is told by a record as well.',
    ),
    Field(
        'log_bodies',
        'bool',
        False,
        'Record the texts of logs as well. They may hold prompts, completions and names of people; what looks like a '
        'secret is redacted. No effect without `logs_enabled`.',
    ),
    Field(
        'exporter',
        'choice',
        'file',
        'Where the run goes: `file`, a local run folder; `otlp`, an OpenTelemetry backend named by '
        '`OTEL_EXPORTER_OTLP_*`; `console`, one JSON object a line on stdout. The default is `otlp` when an OTLP '
        'endpoint is set in the environment, else `file`.',
        choices=('file', 'otlp', 'console'),
    ),
    Field(
        'vocabulary',
        'str',
        FIRST,
        'Which of the names a rule file has for the same thing. The file for NeMo-RL has `published`, those of its '
        'first published integration, and `label`, where a span is named as the timer label it is made from. A file '
        'that does not have the one chosen keeps its first, which is also the default. Not read from a config object '
        'that the program builds in code.',
    ),
    Field(
        'vllm_native_tracing',
        'bool',
        False,
        'Let vLLM trace its start and its requests with its own tracer as well, below our spans. Its spans go where '
        "the run's go: to the OTLP endpoint, or through 127.0.0.1 into the run folder. Switches vLLM's statistics on, "
        'which its tracer needs.',
    ),
    Field(
        'service_name_per_server',
        'bool',
        True,
        'NeMo Gym: each server is a service of its own, `<service_name>/<server>`. No effect in this version; false is '
        'announced.',
    ),
)

BY_NAME: dict[str, Field] = {field.name: field for field in FIELDS}


def by_exporter(name: str, exporter: Value) -> Value:
    """The default of `span_groups` or `export_strategy`.

    With a local folder the step table, the stragglers and the timeline are there with no flags; a backend gets what
    the frameworks document.
    """
    if exporter == 'file':
        return 'per_step,job' if name == 'span_groups' else 'all_ranks'
    return BY_NAME[name].default
