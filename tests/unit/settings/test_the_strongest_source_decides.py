# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise
from pathlib import Path

import pytest

from lens_auto.settings.resolve import Resolved, resolve

# From strong to weak; each with a service name that tells it from the others.
ORDER = (
    '--set',
    'LENS_SERVICE_NAME',
    'OTEL_SERVICE_NAME',
    'NEMO_RL_OTEL_SERVICE_NAME',
    'NEMO_LENS_SERVICE_NAME',
    'OTEL_RESOURCE_ATTRIBUTES',
    '++telemetry',
    '--config',
    '--telemetry',
    'rule file',
    'nothing',
)


def service_name(folder: Path, *sources: str) -> Resolved:
    config, ours = folder / 'config.yaml', folder / 'ours.yaml'
    config.write_text('telemetry: {service_name: --config}\n')
    ours.write_text('service_name: --telemetry\n')
    environ = {name: name for name in sources if name.endswith('SERVICE_NAME')}
    if 'OTEL_RESOURCE_ATTRIBUTES' in sources:
        environ['OTEL_RESOURCE_ATTRIBUTES'] = 'team=rl,service.name=OTEL_RESOURCE%5FATTRIBUTES,zone=a'
    command = ['python', 'train.py']
    if '++telemetry' in sources:
        command.append('++telemetry.service_name=++telemetry')
    if '--config' in sources:
        command += ['--config', str(config)]
    return resolve(
        {'set': ['service_name=--set']} if '--set' in sources else {},
        environ,
        command,
        str(ours) if '--telemetry' in sources else None,
        ['rule file'] if 'rule file' in sources else [],
        None,
    )


@pytest.mark.parametrize(('stronger', 'weaker'), list(pairwise(ORDER)))
def test_stronger_source_hides_the_weaker(stronger: str, weaker: str, tmp_path: Path) -> None:
    assert service_name(tmp_path, weaker, stronger).value('service_name') == stronger
    alone = 'lens-auto' if weaker == 'nothing' else weaker
    assert service_name(tmp_path, weaker).value('service_name') == alone


def test_all_sources_at_once_leave_the_flag(tmp_path: Path) -> None:
    resolved = service_name(tmp_path, *ORDER)
    assert (resolved.value('service_name'), str(resolved.source('service_name'))) == (
        '--set',
        '--set service_name=--set',
    )


@pytest.mark.parametrize(
    ('frameworks', 'exporter'),
    [
        (['nemo_rl'], 'otlp'),
        (['nemo_gym'], 'console'),
        (['nemo_gym', 'nemo_rl'], 'console'),
        (['trl'], 'otlp'),
        ([], 'otlp'),
    ],
)
def test_active_framework_picks_among_the_nemo_variables(frameworks: list[str], exporter: str) -> None:
    environ = {'NEMO_RL_OTEL_EXPORTER': 'otlp', 'NEMO_GYM_OTEL_EXPORTER': 'console', 'NEMO_LENS_EXPORTER': 'file'}
    assert resolve({}, environ, ['x'], None, frameworks, None).value('exporter') == exporter


def test_variables_of_the_framework_that_is_not_active_are_not_read() -> None:
    environ = {'NEMO_GYM_OTEL_EXPORTER': 'console', 'NEMO_LENS_EXPORTER': 'otlp'}
    assert resolve({}, environ, ['x'], None, ['nemo_rl'], None).value('exporter') == 'otlp'


def test_last_of_a_flag_or_an_override_counts() -> None:
    command = ['x', '++telemetry.export_rank=1', 'telemetry.export_rank=2']
    resolved = resolve({'set': ['exporter=otlp', 'exporter=console']}, {}, command, None, [], None)
    assert (resolved.value('exporter'), resolved.value('export_rank')) == ('console', 2)


def test_empty_and_null_values_count_as_unset(tmp_path: Path) -> None:
    file = tmp_path / 'grpo.yaml'
    file.write_text('telemetry:\n  exporter:\n  export_rank: null\n  service_name: ""\n')
    environ = {'LENS_EXPORTER': '', 'NEMO_RL_OTEL_EXPORTER': '  ', 'OTEL_SERVICE_NAME': ''}
    command = ['x', '--config', str(file), '++telemetry.span_groups=', 'telemetry.export_strategy=null']
    resolved = resolve({}, environ, command, None, ['nemo_rl'], None)

    assert {str(source).partition(' (')[0] for source in resolved.sources.values()} == {'default'}
    assert resolved.announcements == []


def test_a_wrong_value_in_a_weaker_source_does_not_stop_the_run(tmp_path: Path) -> None:
    environ = {'LENS_EXPORTER': 'console', 'NEMO_RL_OTEL_EXPORTER': 'jaeger'}
    assert resolve({}, environ, ['x', 'telemetry.exporter=prometheus'], None, [], None).value('exporter') == 'console'
