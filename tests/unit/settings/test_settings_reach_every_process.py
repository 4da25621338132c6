# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from types import SimpleNamespace

import pytest

from lens_auto.settings import project
from lens_auto.settings.resolve import resolve


def test_the_environment_names_every_field_and_what_a_config_object_may_change(tmp_path: Path) -> None:
    config = tmp_path / 'grpo.yaml'
    config.write_text('telemetry: {exporter: console}\n')
    resolved = resolve(
        {'service_name': 'mine'},
        {'NEMO_RL_OTEL_METRICS_ENABLED': 'no'},
        ['python', 'a.py', '--config', str(config), '++telemetry.export_rank=0'],
        None,
        ['nemo_rl'],
        None,
    )

    assert project.environment(resolved) == {
        'LENS_ENABLED': '1',
        'LENS_SERVICE_NAME': 'mine',
        'LENS_SPAN_GROUPS': 'default',
        'LENS_EXPORT_STRATEGY': 'single_rank',
        'LENS_EXPORT_RANK': '0',
        'LENS_EXPORT_SAMPLE_RATE': '1.0',
        'LENS_SAMPLER_ENABLED': '0',
        'LENS_TRACES_ENABLED': '1',
        'LENS_METRICS_ENABLED': '0',
        'LENS_SYSTEM_METRICS': '1',
        'LENS_LOGS_ENABLED': '0',
        'LENS_LOG_BODIES': '0',
        'LENS_EXPORTER': 'console',
        'LENS_VOCABULARY': 'first',
        'LENS_VLLM_NATIVE_TRACING': '0',
        'LENS_SERVICE_NAME_PER_SERVER': '1',
        'LENS_PROVISIONAL': 'enabled,span_groups,export_strategy,export_sample_rate,sampler_enabled,traces_enabled,'
        'system_metrics,logs_enabled,log_bodies,exporter,vllm_native_tracing,service_name_per_server',
    }


def test_a_process_reads_back_what_the_launcher_resolved() -> None:
    resolved = resolve({'set': ['export_sample_rate=0.1', 'traces_enabled=off']}, {}, ['x'], None, ['trl'], None)
    assert project.from_environment(project.environment(resolved)) == resolved.values


def test_a_process_refuses_nothing() -> None:
    values = project.from_environment(
        {'LENS_EXPORT_RANK': 'one', 'LENS_EXPORT_SAMPLE_RATE': '1e999', 'LENS_EXPORTER': ''}
    )
    assert (values['export_rank'], values['export_sample_rate'], values['exporter']) == (-1, 1.0, 'file')


DEFAULTS = resolve({}, {}, ['x'], None, ['nemo_rl'], None)


@pytest.mark.parametrize('kind', [dict, SimpleNamespace])
def test_a_config_object_decides_what_is_provisional_and_nothing_else(kind: type) -> None:
    block = kind(enabled=True, traces_enabled=False, export_rank=5, service_name='object', logs_enabled=True)
    changed = project.override(DEFAULTS.values, ('traces_enabled', 'service_name', 'logs_enabled'), block)

    assert changed == {**DEFAULTS.values, 'traces_enabled': False, 'service_name': 'object', 'logs_enabled': True}
    assert DEFAULTS.values['traces_enabled'] is True


def test_a_wrong_value_on_a_config_object_is_left_out_and_counted() -> None:
    faults: list[str] = []
    block = {'export_rank': 'last', 'metrics_enabled': None, 'span_groups': ['step', 1], 'exporter': {}, 'enabled': 0}
    changed = project.override(DEFAULTS.values, DEFAULTS.provisional, block, faults)

    assert changed == {**DEFAULTS.values, 'enabled': False}
    assert faults == [
        'telemetry.span_groups takes a preset, group names, or both, joined by commas; a list there was ignored',
        'telemetry.export_rank takes a whole number, -1 or more; a str there was ignored',
        'telemetry.exporter takes file, otlp, console; a dict there was ignored',
    ]


def test_defaults_follow_an_exporter_that_the_config_object_changes() -> None:
    changed = project.override(
        DEFAULTS.values, DEFAULTS.provisional, {'exporter': 'otlp', 'export_strategy': 'sampled'}
    )
    assert [changed[name] for name in ('exporter', 'span_groups', 'export_strategy')] == ['otlp', 'default', 'sampled']

    pinned = resolve({'span_groups': 'per_step,job'}, {}, ['x'], None, [], None)
    changed = project.override(pinned.values, pinned.provisional, {'exporter': 'otlp'})
    assert [changed[name] for name in ('span_groups', 'export_strategy')] == ['per_step,job', 'single_rank']


def test_provisional_fields_are_read_back() -> None:
    assert project.provisional(project.environment(DEFAULTS)) == tuple(
        name for name in DEFAULTS.values if name != 'vocabulary'
    )
    assert project.provisional({}) == ()
