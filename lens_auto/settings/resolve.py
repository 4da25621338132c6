# SPDX-License-Identifier: Apache-2.0
"""All sources of the settings -> one value a field, with the place it came from."""

from __future__ import annotations

from lens_auto.settings import arguments, block
from lens_auto.settings.fields import BY_NAME, FIELDS, LENS, NEMO_GYM, NEMO_LENS, NEMO_RL, Field, by_exporter
from lens_auto.settings.interpolation import interpolate
from lens_auto.settings.nearest import nearest
from lens_auto.settings.source import (
    ARGUMENT,
    CONFIG,
    CONFIG_OBJECT_STRENGTH,
    DEFAULT,
    ENVIRONMENT,
    FLAG,
    TELEMETRY_FILE,
    SettingError,
    Source,
    invalid,
    unknown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from lens_auto.settings.block import Entry
    from lens_auto.settings.fields import Value

    Said: TypeAlias = tuple[Source, str]

# The shapes of a value in a file (see `document`, which the warm path must not import).
_NULL, _LIST, _OTHER = 1, 2, 3

_NAMES = tuple(field.name for field in FIELDS)
_FLAGS = {'span_groups': '--span-groups', 'exporter': '--exporter', 'service_name': '--service-name'}
_ENDPOINTS = (
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
    'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT',
)


class Resolved:
    """The settings of a run.

    Attributes:
        values: field -> value, every field.
        sources: field -> where that value came from.
        announcements: What the user has to be told once, one line each.
    """

    __slots__ = ('values', 'sources', 'announcements')

    def __init__(self, values: dict[str, Value], sources: dict[str, Source], announcements: list[str]) -> None:
        self.values = values
        self.sources = sources
        self.announcements = announcements

    def value(self, name: str) -> Value:
        """The value of a field."""
        return self.values[name]

    def source(self, name: str) -> Source:
        """Where the value of a field came from."""
        return self.sources[name]

    @property
    def changed(self) -> list[str]:
        """The fields somebody set, and the exporter where an endpoint in the environment chose it."""
        return [
            name
            for name, source in self.sources.items()
            if source.kind != DEFAULT or (name == 'exporter' and self.values[name] != BY_NAME[name].default)
        ]

    @property
    def off(self) -> bool:
        """Whether the user has told us, and not the program, that nothing is to be recorded."""
        source = self.sources['enabled']
        return not self.values['enabled'] and source.ours and source.kind in (FLAG, ENVIRONMENT)

    def ignore(self, name: str, reason: str) -> None:
        """Take the default of a field after all, and announce it.

        Args:
            name: The field.
            reason: What is wrong with its value.
        """
        self.announcements.append(f'{self.sources[name].where}: {reason}: ignored')
        self.values[name] = by_exporter(name, self.values['exporter'])
        self.sources[name] = Source(DEFAULT, f'exporter is {self.values["exporter"]}')

    @property
    def provisional(self) -> list[str]:
        """The fields that a `telemetry:` block on the program's config object still decides, once that is built."""
        return [
            name
            for name, source in self.sources.items()
            if source.strength < CONFIG_OBJECT_STRENGTH and name != 'vocabulary'
        ]


def resolve(
    flags: Mapping[str, str | Sequence[str] | None],
    environ: Mapping[str, str],
    command: list[str],
    telemetry_file: str | None,
    frameworks: Sequence[str],
    cache_dir: str | None,
) -> Resolved:
    """Find the value of every field.

    Args:
        flags: `lens-instrument`'s own: field -> text, and under `set` a list of `field=value`.
        environ: The environment of the launcher.
        command: The program and its arguments.
        telemetry_file: The file of `--telemetry`, or None.
        frameworks: The frameworks of the active rule files, most specific first.
        cache_dir: Where parsed config files are kept, or None.

    Raises:
        SettingError: A value that its field does not take, a flag or a `--telemetry` file that is wrong.
    """
    announcements: list[str] = []
    given = _flags(flags)
    overrides = _overrides(command, announcements)
    config = _config(command, cache_dir, announcements)
    own = _telemetry_file(telemetry_file, cache_dir)
    values: dict[str, Value] = {}
    sources: dict[str, Source] = {}
    # Two defaults hang on the exporter.
    for field in sorted(FIELDS, key=lambda field: field.name != 'exporter'):
        name = field.name
        said = _said(
            field,
            given.get(name, ()),
            _environment(field, environ, frameworks),
            overrides.get(name),
            config.get(name),
            own.get(name),
            environ,
            announcements,
        )
        for source, text in said:
            try:
                values[name], sources[name] = field.parse(text), source
                break
            except (ValueError, OverflowError):
                if source.refuses:
                    raise invalid(field, text, source.where) from None
                announcements.append(_not_taken(field, text, source))
        else:
            values[name], sources[name] = _default(field, values, environ, frameworks)
    _announce_without_effect(values, sources, announcements)
    resolved = Resolved(
        {name: values[name] for name in _NAMES}, {name: sources[name] for name in _NAMES}, announcements
    )
    if not resolved.value('enabled') and not resolved.off:
        way_out = '`--set enabled=true` overrides it'
        announcements.append(f'telemetry is off ({resolved.source("enabled").where}): nothing is recorded; {way_out}')
    return resolved


def _said(
    field: Field,
    flags: Sequence[Said],
    environment: Iterator[Said],
    override: Said | None,
    config: Entry | None,
    own: Entry | None,
    environ: Mapping[str, str],
    announcements: list[str],
) -> Iterator[Said]:
    """What each source says, strongest first."""
    yield from flags
    yield from environment
    if override is not None:
        text = _filled(override[0].where.partition('=')[0], override[1], environ, announcements)
        if text:
            yield override[0], text
    if config is not None:
        source = Source(CONFIG, config.place)
        shape = _shape(field, config)
        if shape:
            announcements.append(_not_taken(field, shape, source))
        else:
            text = _filled(config.place, _text(config), environ, announcements)
            if text:
                yield source, text
    if own is not None:
        shape = _shape(field, own)
        if shape:
            raise invalid(field, shape, own.place)
        text = _filled(own.place, _text(own), environ, None)
        if text:
            yield Source(TELEMETRY_FILE, own.place, ours=True), text


def _not_taken(field: Field, value: str, source: Source) -> str:
    place = source.where if source.kind == CONFIG else source.name
    return f'{place}: {field.name} cannot be `{value}` (valid: {field.valid}): ignored'


def _shape(field: Field, entry: Entry) -> str:
    """What stands in the file instead of a value the field could take; empty if it may be one."""
    if entry.shape == _OTHER or (entry.shape == _LIST and field.kind != 'names'):
        return 'a list' if entry.shape == _LIST else 'a mapping'
    return ''


def _text(entry: Entry) -> str:
    return '' if entry.shape == _NULL else entry.text.strip()


def _filled(place: str, text: str, environ: Mapping[str, str], announcements: list[str] | None) -> str:
    """The text with its interpolations filled in.

    Empty, which counts as unset, when that cannot be done before the program runs.
    """
    if '${' not in text:
        return text
    filled = interpolate(text, environ)
    if filled is not None:
        return filled.strip()
    # The text is not shown: a default inside it may be a secret.
    message = f'{place} is an interpolation that cannot be resolved before the program runs'
    if announcements is None:
        raise SettingError(f'{message}\n    here only ${{oc.env:VAR}} and ${{oc.env:VAR,default}} can be')
    announcements.append(f'{message}: ignored')
    return ''


def _flags(flags: Mapping[str, str | Sequence[str] | None]) -> dict[str, list[Said]]:
    given: dict[str, list[Said]] = {}
    pairs: list[tuple[str, str, str]] = []
    for name, value in flags.items():
        if name != 'set' and isinstance(value, str):
            pairs.append((name, value, f'{_FLAGS[name]} {value}' if name in _FLAGS else f'--set {name}={value}'))
    assignments = flags.get('set') or ()
    # The last one of a field counts.
    for assignment in reversed([assignments] if isinstance(assignments, str) else assignments):
        name, equals, value = assignment.partition('=')
        name, where = name.strip(), f'--set {assignment}'
        if name in BY_NAME and not equals:
            raise SettingError(f'{name} needs a value\n    from {where}\n    valid: {BY_NAME[name].valid}')
        pairs.append((name, value, where))
    for name, value, where in pairs:
        if name not in BY_NAME:
            raise unknown(name, where, _NAMES)
        given.setdefault(name, []).append((Source(FLAG, where, ours=True), value))
    return given


def _environment(field: Field, environ: Mapping[str, str], frameworks: Sequence[str]) -> Iterator[Said]:
    names = [LENS + field.suffix]
    if field.name == 'service_name':
        names.append('OTEL_SERVICE_NAME')
    names.extend(prefix + field.suffix for prefix in _prefixes(frameworks))
    for name in names:
        value = environ.get(name, '')
        # The specification of OpenTelemetry: an empty value is an unset one.
        if value.strip():
            yield Source(ENVIRONMENT, f'{name}={value}', ours=name.startswith(LENS)), value
    if field.name == 'service_name':
        for attribute in environ.get('OTEL_RESOURCE_ATTRIBUTES', '').split(','):
            key, _, value = attribute.partition('=')
            if key.strip() == 'service.name' and value.strip():
                yield Source(ENVIRONMENT, f'OTEL_RESOURCE_ATTRIBUTES service.name={value}'), _unescaped(value)


def _prefixes(frameworks: Sequence[str]) -> list[str]:
    known = {'nemo_rl': NEMO_RL, 'nemo_gym': NEMO_GYM}
    active = [known[name] for name in (framework.replace('-', '_') for framework in frameworks) if name in known]
    # With neither active the user still said it: a trainer of one's own often keeps the job scripts it grew from.
    return [*(active or (NEMO_RL, NEMO_GYM)), NEMO_LENS]


def _unescaped(text: str) -> str:
    if '%' not in text:
        return text.strip()
    from urllib.parse import unquote

    return unquote(text.strip())


def _overrides(command: list[str], announcements: list[str]) -> dict[str, Said]:
    found, unread = arguments.overrides(command)
    for argument in unread:
        place = argument.partition('=')[0]
        announcements.append(f'{place}=... is not read: name the fields one by one, as in {place}.exporter=console')
    said: dict[str, Said] = {}
    for name, (value, argument) in found.items():
        if name in BY_NAME:
            said[name] = (Source(ARGUMENT, argument), value)
        else:
            announcements.append(_ignored(name, argument.partition('=')[0]))
    return said


def _config(command: list[str], cache_dir: str | None, announcements: list[str]) -> dict[str, Entry]:
    path = arguments.config_file(command)
    if path is None or not block.looks_like_a_file(path):
        return {}
    entries, problems = block.read(path, cache_dir)
    for problem in problems:
        announcements.append(f'the telemetry settings in the config of the run were not read: {problem}')
    for name, entry in entries.items():
        if name not in BY_NAME and name != '_override_':
            announcements.append(_ignored(name, entry.place))
    return entries


def _telemetry_file(path: str | None, cache_dir: str | None) -> dict[str, Entry]:
    if path is None:
        return {}
    entries, problems = block.read(path, cache_dir, whole=True)
    for problem in problems:
        raise SettingError(f'{problem}\n    from --telemetry {path}')
    for name, entry in entries.items():
        if name not in BY_NAME and name != '_override_':
            raise unknown(name, entry.place, _NAMES)
    return entries


def _ignored(name: str, place: str) -> str:
    meant = nearest(name, _NAMES)
    hint = f' (did you mean `{meant}`?)' if meant else ''
    return f'{place} is not a setting of lens-auto: ignored{hint}'


def _default(
    field: Field, values: dict[str, Value], environ: Mapping[str, str], frameworks: Sequence[str]
) -> tuple[Value, Source]:
    name = field.name
    if name == 'enabled':
        return True, Source(DEFAULT, 'under lens-instrument')
    if name == 'exporter':
        for endpoint in _ENDPOINTS:
            if environ.get(endpoint, '').strip():
                return 'otlp', Source(DEFAULT, f'{endpoint} is set')
        return 'file', Source(DEFAULT, 'no OTLP endpoint is set')
    if name == 'service_name' and frameworks:
        return frameworks[0], Source(DEFAULT, 'the active rule file')
    if name in ('span_groups', 'export_strategy'):
        exporter = values['exporter']
        return by_exporter(name, exporter), Source(DEFAULT, f'exporter is {exporter}')
    return field.default, Source(DEFAULT, '')


def _announce_without_effect(values: dict[str, Value], sources: dict[str, Source], announcements: list[str]) -> None:
    for name in ('service_name_per_server',):
        if values[name] != BY_NAME[name].default:
            announcements.append(f'{sources[name].where}: no effect in this version')
