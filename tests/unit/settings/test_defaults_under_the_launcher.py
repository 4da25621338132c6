# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from lens_auto.settings.describe import changed, describe
from lens_auto.settings.resolve import resolve


def test_no_source_at_all_records_steps_of_all_ranks_into_a_folder() -> None:
    lines = describe(resolve({}, {}, ['python', 'run_grpo.py'], None, ['examples'], None))

    assert (
        '\n'.join(lines)
        == """\
enabled                  true          default (under lens-instrument)
service_name             examples      default (the active rule file)
span_groups              per_step,job  default (exporter is file)
export_strategy          all_ranks     default (exporter is file)
export_rank              -1            default
export_sample_rate       1.0           default
sampler_enabled          false         default
traces_enabled           true          default
metrics_enabled          true          default
system_metrics           true          default
logs_enabled             false         default
log_bodies               false         default
exporter                 file          default (no OTLP endpoint is set)
vocabulary               first         default
vllm_native_tracing      false         default
service_name_per_server  true          default"""
    )


@pytest.mark.parametrize('signal', ['', 'TRACES_', 'METRICS_', 'LOGS_'])
def test_an_otlp_endpoint_selects_otlp_and_the_documented_defaults(signal: str) -> None:
    variable = f'OTEL_EXPORTER_OTLP_{signal}ENDPOINT'
    headers = {'OTEL_EXPORTER_OTLP_HEADERS': 'authorization=s3cret'}
    resolved = resolve({}, {variable: 'https://user:pw@host:4317', **headers}, ['x'], None, [], None)

    assert resolved.value('exporter') == 'otlp'
    assert str(resolved.source('exporter')) == f'default ({variable} is set)'
    assert (resolved.value('span_groups'), resolved.value('export_strategy')) == ('default', 'single_rank')
    assert str(resolved.source('span_groups')) == 'default (exporter is otlp)'
    assert not {'s3cret', 'pw@'} & {word for word in ('s3cret', 'pw@') if word in '\n'.join(describe(resolved))}


def test_console_has_the_documented_defaults_too() -> None:
    resolved = resolve({'exporter': 'console'}, {}, ['x'], None, [], None)
    assert (resolved.value('span_groups'), resolved.value('export_strategy')) == ('default', 'single_rank')


def test_an_empty_endpoint_is_no_endpoint() -> None:
    assert resolve({}, {'OTEL_EXPORTER_OTLP_ENDPOINT': ''}, ['x'], None, [], None).value('exporter') == 'file'


def test_enabled_false_in_the_config_of_the_run_wins_and_is_announced(tmp_path: Path) -> None:
    file = tmp_path / 'grpo.yaml'
    file.write_text('telemetry:\n  enabled: false\n')
    resolved = resolve({}, {}, ['python', 'a.py', '--config', str(file)], None, ['nemo_rl'], None)

    assert resolved.value('enabled') is False
    assert resolved.announcements == [
        f'telemetry is off ({file}:2 telemetry.enabled): nothing is recorded; `--set enabled=true` overrides it'
    ]


@pytest.mark.parametrize(
    ('flags', 'environ'), [({'set': ['enabled=false']}, {}), ({}, {'LENS_ENABLED': '0'})], ids=['--set', 'LENS_ENABLED']
)
def test_enabled_false_said_to_us_needs_no_announcement(flags: dict[str, list[str]], environ: dict[str, str]) -> None:
    resolved = resolve(flags, environ, ['x'], None, [], None)
    assert (resolved.value('enabled'), resolved.announcements) == (False, [])


def test_what_was_set_is_one_line_with_its_sources(tmp_path: Path) -> None:
    file = tmp_path / 'grpo.yaml'
    file.write_text('telemetry: {export_rank: 2}\n')
    environ = {'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://host:4317', 'LENS_TRACES_ENABLED': 'no'}
    command = ['python', 'a.py', '--config', str(file), '+telemetry.metrics_enabled=off']
    resolved = resolve({'span_groups': 'all', 'set': ['sampler_enabled=1']}, environ, command, None, [], None)

    assert changed(resolved) == (
        f'span_groups=all (--span-groups), export_rank=2 ({file}:1 telemetry.export_rank), '
        'sampler_enabled=true (--set), traces_enabled=false (LENS_TRACES_ENABLED), '
        'metrics_enabled=false (+telemetry.metrics_enabled), exporter=otlp (OTEL_EXPORTER_OTLP_ENDPOINT is set)'
    )
    assert resolve({}, {}, ['x'], None, ['mine'], None).changed == []


def test_a_secret_is_not_in_that_line() -> None:
    resolved = resolve({'service_name': 'hf_abcdefgh12345678ABCD'}, {}, ['x'], None, [], None)
    assert changed(resolved) == 'service_name=[redacted] (--service-name)'


def test_a_setting_of_a_later_version_is_announced() -> None:
    flags = {'set': ['vllm_native_tracing=1', 'service_name_per_server=no']}
    assert resolve(flags, {}, ['x'], None, [], None).announcements == [
        '--set service_name_per_server=no: no effect in this version',
    ]
