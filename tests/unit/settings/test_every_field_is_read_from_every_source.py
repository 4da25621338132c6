# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from pathlib import Path

import pytest

from lens_auto.settings.fields import FIELDS
from lens_auto.settings.resolve import Resolved, resolve

# A value of each field that is not its default, as text and as the field's own type.
VALUES: dict[str, tuple[str, bool | int | float | str]] = {
    'enabled': ('No', False),
    'service_name': ('grpo-7b', 'grpo-7b'),
    'span_groups': ('per_step, generation', 'per_step,generation'),
    'export_strategy': ('first_rank_per_node', 'first_rank_per_node'),
    'export_rank': ('3', 3),
    'export_sample_rate': ('0.25', 0.25),
    'sampler_enabled': ('YES', True),
    'traces_enabled': ('false', False),
    'metrics_enabled': ('off', False),
    'system_metrics': ('no', False),
    'logs_enabled': ('1', True),
    'log_bodies': ('on', True),
    'exporter': ('console', 'console'),
    'vocabulary': ('label', 'label'),
    'vllm_native_tracing': ('on', True),
    'service_name_per_server': ('0', False),
}


def by_set(folder: Path, name: str, text: str) -> tuple[Resolved, str]:
    return resolve({'set': [f'{name}={text}']}, {}, ['x'], None, [], None), f'--set {name}={text}'


def by_variable(prefix: str, framework: str) -> Callable[[Path, str, str], tuple[Resolved, str]]:
    def read(folder: Path, name: str, text: str) -> tuple[Resolved, str]:
        variable = prefix + name.upper()
        return resolve({}, {variable: text}, ['x'], None, [framework], None), f'{variable}={text}'

    return read


def by_override(plus: str) -> Callable[[Path, str, str], tuple[Resolved, str]]:
    def read(folder: Path, name: str, text: str) -> tuple[Resolved, str]:
        argument = f'{plus}telemetry.{name}={text}'
        return resolve({}, {}, ['python', 'train.py', argument], None, [], None), argument

    return read


def by_config(folder: Path, name: str, text: str) -> tuple[Resolved, str]:
    file = folder / 'grpo.yaml'
    file.write_text(f'policy:\n  model_name: tiny\ntelemetry:\n  {name}: {text}\n')
    resolved = resolve({}, {}, ['python', 'train.py', '--config', str(file)], None, [], None)
    return resolved, f'{file}:4 telemetry.{name}'


def by_telemetry_block(folder: Path, name: str, text: str) -> tuple[Resolved, str]:
    file = folder / 'telemetry.yaml'
    file.write_text(f'telemetry:\n  {name}: {text}\n')
    return resolve({}, {}, ['x'], str(file), [], None), f'{file}:2 telemetry.{name}'


def by_telemetry_fields(folder: Path, name: str, text: str) -> tuple[Resolved, str]:
    file = folder / 'telemetry.yaml'
    file.write_text(f'# ours\n{name}: {text}\n')
    return resolve({}, {}, ['x'], str(file), [], None), f'{file}:2 {name}'


SOURCES: dict[str, tuple[Callable[[Path, str, str], tuple[Resolved, str]], str]] = {
    '--set': (by_set, 'flag'),
    'LENS_*': (by_variable('LENS_', 'verl'), 'environment'),
    'NEMO_RL_OTEL_*': (by_variable('NEMO_RL_OTEL_', 'nemo_rl'), 'environment'),
    'NEMO_GYM_OTEL_*': (by_variable('NEMO_GYM_OTEL_', 'nemo-gym'), 'environment'),
    'NEMO_LENS_*': (by_variable('NEMO_LENS_', 'nemo_rl'), 'environment'),
    '++telemetry.x': (by_override('++'), 'argument'),
    '+telemetry.x': (by_override('+'), 'argument'),
    'telemetry.x': (by_override(''), 'argument'),
    '--config': (by_config, 'config'),
    '--telemetry with a block': (by_telemetry_block, 'telemetry file'),
    '--telemetry with fields': (by_telemetry_fields, 'telemetry file'),
}


def test_the_table_names_every_field() -> None:
    assert list(VALUES) == [field.name for field in FIELDS]


@pytest.mark.parametrize('source', SOURCES)
@pytest.mark.parametrize('name', VALUES)
def test_field_is_read_from_source_and_says_so(name: str, source: str, tmp_path: Path) -> None:
    read, kind = SOURCES[source]
    text, value = VALUES[name]

    resolved, place = read(tmp_path, name, text)

    assert (resolved.value(name), type(resolved.value(name))) == (value, type(value))
    assert (resolved.source(name).kind, resolved.source(name).where) == (kind, place)
    assert str(resolved.source(name)) == place
    # And nothing else has moved, but for the two defaults that hang on the exporter.
    dependents = ['span_groups', 'export_strategy'] if name == 'exporter' else []
    assert [other for other in VALUES if other != name and resolved.source(other).kind != 'default'] == []
    untouched = resolve({}, {}, ['x'], None, [], None)
    moved = [n for n in VALUES if resolved.value(n) != untouched.value(n) and n not in (name, *dependents)]
    assert [n for n in moved if n != 'service_name'] == []


@pytest.mark.parametrize('name', ['span_groups', 'exporter', 'service_name'])
def test_fields_with_a_flag_of_their_own_are_read_from_it(name: str) -> None:
    text, value = VALUES[name]
    resolved = resolve({name: text}, {}, ['x'], None, [], None)

    assert resolved.value(name) == value
    assert str(resolved.source(name)) == f'--{name.replace("_", "-")} {text}'


@pytest.mark.parametrize('spelling', ['1', 'true', 'TRUE', 'yes', 'On', ' on '])
def test_every_spelling_of_true_is_true(spelling: str) -> None:
    assert resolve({}, {'LENS_SAMPLER_ENABLED': spelling}, ['x'], None, [], None).value('sampler_enabled') is True


@pytest.mark.parametrize('spelling', ['0', 'false', 'False', 'NO', 'off'])
def test_every_spelling_of_false_is_false(spelling: str) -> None:
    assert resolve({}, {'LENS_TRACES_ENABLED': spelling}, ['x'], None, [], None).value('traces_enabled') is False


def test_the_block_switches_traces_and_metrics_off_each_for_itself(tmp_path: Path) -> None:
    file = tmp_path / 'grpo.yaml'
    for off, on in (('traces_enabled', 'metrics_enabled'), ('metrics_enabled', 'traces_enabled')):
        file.write_text(f'telemetry: {{enabled: true, {off}: false}}\n')
        resolved = resolve({}, {}, ['python', 'a.py', f'--config={file}'], None, ['nemo_rl'], None)
        assert (resolved.value(off), resolved.value(on), resolved.value('enabled')) == (False, True, True)
