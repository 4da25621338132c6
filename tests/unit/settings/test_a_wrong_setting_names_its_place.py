# SPDX-License-Identifier: Apache-2.0
import textwrap
from pathlib import Path

import pytest

from lens_auto.settings.resolve import resolve
from lens_auto.settings.source import SettingError

BOOLEAN = '1, true, yes, on, 0, false, no, off'
STRATEGIES = 'single_rank, all_ranks, sampled, first_rank_per_node'
SETTINGS = (
    'enabled, service_name, span_groups, export_strategy, export_rank, export_sample_rate, sampler_enabled, '
    'traces_enabled, metrics_enabled, system_metrics, logs_enabled, log_bodies, exporter, vocabulary, '
    'vllm_native_tracing, service_name_per_server'
)


def refusal(
    flags: dict[str, str | list[str]] | None = None,
    environ: dict[str, str] | None = None,
    command: tuple[str, ...] = (),
    telemetry: str | None = None,
) -> str:
    with pytest.raises(SettingError) as refused:
        resolve(flags or {}, environ or {}, ['python', *command], telemetry, ['nemo_rl'], None)
    return str(refused.value)


@pytest.mark.parametrize(
    ('assignment', 'valid'),
    [
        ('enabled=maybe', BOOLEAN),
        ('service_name=', 'a line of printable text'),
        ('service_name=two\nlines', 'a line of printable text'),
        ('span_groups=,', 'a preset, group names, or both, joined by commas'),
        ('export_strategy=some', STRATEGIES),
        ('export_rank=-2', 'a whole number, -1 or more'),
        ('export_rank=1.5', 'a whole number, -1 or more'),
        ('export_sample_rate=1.01', 'a number from 0 to 1'),
        ('export_sample_rate=nan', 'a number from 0 to 1'),
        ('export_sample_rate=half', 'a number from 0 to 1'),
        ('sampler_enabled=2', BOOLEAN),
        ('traces_enabled=none', BOOLEAN),
        ('metrics_enabled=', BOOLEAN),
        ('logs_enabled=y', BOOLEAN),
        ('exporter=jaeger', 'file, otlp, console'),
        ('vllm_native_tracing=t', BOOLEAN),
        ('service_name_per_server=-1', BOOLEAN),
    ],
)
def test_a_value_that_the_field_does_not_take_is_refused(assignment: str, valid: str) -> None:
    name, _, value = assignment.partition('=')
    assert refusal({'set': [assignment]}) == (
        f'{name} cannot be `{value}`\n    from --set {assignment}\n    valid: {valid}'
    )


def test_the_nearest_choice_is_offered() -> None:
    assert refusal({'exporter': 'otpl'}) == textwrap.dedent("""\
        exporter cannot be `otpl`
            from --exporter otpl
            valid: file, otlp, console
            did you mean `otlp`?""")


def test_a_variable_is_named_with_its_value() -> None:
    assert refusal(environ={'NEMO_RL_OTEL_TRACES_ENABLED': 'nope'}) == textwrap.dedent(f"""\
        traces_enabled cannot be `nope`
            from NEMO_RL_OTEL_TRACES_ENABLED=nope
            valid: {BOOLEAN}""")


def test_an_unknown_field_of_a_flag_gets_the_nearest_name() -> None:
    assert refusal({'set': ['span-group=all']}) == textwrap.dedent(f"""\
        `span-group` is not a setting
            from --set span-group=all
            did you mean `span_groups`?  Settings: {SETTINGS}""")
    assert refusal({'set': ['colour=red']}) == textwrap.dedent(f"""\
        `colour` is not a setting
            from --set colour=red
            Settings: {SETTINGS}""")


def test_a_flag_without_a_value_says_what_it_takes() -> None:
    assert refusal({'set': ['exporter']}) == textwrap.dedent("""\
        exporter needs a value
            from --set exporter
            valid: file, otlp, console""")


@pytest.mark.parametrize(
    ('content', 'error'),
    [
        (
            'exportr: file\n',
            '`exportr` is not a setting\n'
            '    from {file}:1 exportr\n'
            f'    did you mean `exporter`?  Settings: {SETTINGS}',
        ),
        (
            'telemetry: {trace_enabled: 1}\n',
            '`trace_enabled` is not a setting\n'
            '    from {file}:1 telemetry.trace_enabled\n'
            f'    did you mean `traces_enabled`?  Settings: {SETTINGS}',
        ),
        (
            'service_name: ${policy.model}\n',
            '{file}:1 service_name is an interpolation that cannot be resolved before the program runs\n'
            '    here only ${{oc.env:VAR}} and ${{oc.env:VAR,default}} can be',
        ),
        ('telemetry: on\n', '{file}: line 1: telemetry is not a mapping\n    from --telemetry {file}'),
        ('- enabled\n', '{file}: not a mapping of keys to values\n    from --telemetry {file}'),
        (None, '{file}: No such file or directory\n    from --telemetry {file}'),
    ],
)
def test_a_fault_in_our_own_file_is_an_error(content: str | None, error: str, tmp_path: Path) -> None:
    file = tmp_path / 'ours.yaml'
    if content is not None:
        file.write_text(content)
    assert refusal(telemetry=str(file)) == error.format(file=file)


def test_our_own_file_that_is_no_yaml_is_an_error_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / 'ours.yaml'
    file.write_text('exporter: file\nservice_name: }\n')
    # What the parser says in between depends on whether PyYAML was built with libyaml.
    error = refusal(telemetry=str(file))
    assert error.startswith(f'{file}: not YAML, line 2: ')
    assert error.endswith(f'\n    from --telemetry {file}')
