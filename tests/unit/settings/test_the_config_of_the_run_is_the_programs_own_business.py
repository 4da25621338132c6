# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from lens_auto.settings.resolve import Resolved, resolve


def run(*command: str, **environ: str) -> Resolved:
    return resolve({}, environ, ['python', *command], None, ['nemo_rl'], None)


def test_a_child_wins_over_the_files_it_inherits_from(tmp_path: Path) -> None:
    (tmp_path / 'base').mkdir()
    (tmp_path / 'base' / 'root.yaml').write_text('telemetry: {export_rank: 1, service_name: root, exporter: otlp}\n')
    (tmp_path / 'base' / 'mid.yaml').write_text(
        'defaults: root.yaml\ntelemetry: {service_name: mid, exporter: console}\n'
    )
    (tmp_path / 'other.yaml').write_text('telemetry: {vllm_native_tracing: true}\n')
    child = tmp_path / 'grpo.yaml'
    child.write_text('defaults: [base/mid.yaml, other.yaml]\ntelemetry: {service_name: child}\n')

    resolved = run('train.py', '--config', str(child))

    fields = ('service_name', 'exporter', 'export_rank', 'vllm_native_tracing')
    assert [(resolved.value(name), str(resolved.source(name))) for name in fields] == [
        ('child', f'{child}:2 telemetry.service_name'),
        ('console', f'{tmp_path}/base/mid.yaml:2 telemetry.exporter'),
        (1, f'{tmp_path}/base/root.yaml:1 telemetry.export_rank'),
        (True, f'{tmp_path}/other.yaml:1 telemetry.vllm_native_tracing'),
    ]
    assert resolved.announcements == []


@pytest.mark.parametrize(
    ('value', 'shown'), [('prometheus', 'prometheus'), ('[otlp, console]', 'a list'), ('{kind: otlp}', 'a mapping')]
)
def test_a_value_there_that_the_field_does_not_take_is_announced_and_left_out(
    value: str, shown: str, tmp_path: Path
) -> None:
    file = tmp_path / 'grpo.yaml'
    file.write_text(f'policy: {{}}\ntelemetry:\n  # where to\n  exporter: {value}\n  export_rank: 3\n')

    resolved = run('train.py', '--config', str(file))

    assert (resolved.value('exporter'), resolved.value('export_rank')) == ('file', 3)
    assert resolved.announcements == [
        f'{file}:4 telemetry.exporter: exporter cannot be `{shown}` (valid: file, otlp, console): ignored'
    ]


def test_such_a_value_in_an_override_of_the_program_leaves_the_field_to_the_next_source(tmp_path: Path) -> None:
    file = tmp_path / 'grpo.yaml'
    file.write_text('telemetry: {export_rank: 3}\n')

    resolved = run('train.py', '--config', str(file), '++telemetry.export_rank=last')

    assert resolved.value('export_rank') == 3
    assert resolved.announcements == [
        '++telemetry.export_rank: export_rank cannot be `last` (valid: a whole number, -1 or more): ignored'
    ]


def test_override_marker_replaces_the_inherited_block(tmp_path: Path) -> None:
    (tmp_path / 'base.yaml').write_text('telemetry: {export_rank: 1, service_name: base}\n')
    (tmp_path / 'grpo.yaml').write_text('defaults: base.yaml\ntelemetry: {_override_: true, service_name: child}\n')

    resolved = run('train.py', '--config', str(tmp_path / 'grpo.yaml'))

    assert (resolved.value('service_name'), resolved.value('export_rank'), resolved.announcements) == ('child', -1, [])


def test_hydra_path_is_relative_to_the_script_and_groups_are_followed(tmp_path: Path) -> None:
    (tmp_path / 'conf' / 'telemetry').mkdir(parents=True)
    (tmp_path / 'conf' / 'telemetry' / 'otlp.yaml').write_text('exporter: otlp\nexport_rank: 2\n')
    (tmp_path / 'conf' / 'ppo.yaml').write_text(
        'defaults:\n  - base\n  - telemetry: otlp\n  - actor: fsdp\n  - _self_\ntelemetry: {export_rank: 5}\n'
    )
    (tmp_path / 'conf' / 'base.yaml').write_text('telemetry: {service_name: from-base}\n')

    resolved = run(str(tmp_path / 'main.py'), '--config-path', 'conf', '--config-name=ppo')

    assert [resolved.value(name) for name in ('exporter', 'export_rank', 'service_name')] == ['otlp', 5, 'from-base']
    assert resolved.announcements == []


def test_lists_anchors_merges_and_quotes_are_read(tmp_path: Path) -> None:
    file = tmp_path / 'grpo.yaml'
    file.write_text(
        'shared: &shared {exporter: "console", export_rank: 7}\n'
        'telemetry:\n  <<: *shared\n  export_rank: 2\n  span_groups:\n    - per_step\n    - generation\n'
    )
    resolved = run('train.py', '--config', str(file))
    values = [resolved.value(name) for name in ('exporter', 'export_rank', 'span_groups')]
    assert values == ['console', 2, 'per_step,generation']


def test_quotes_and_lists_of_hydra_are_read_in_overrides() -> None:
    assert run('a.py', '++telemetry.span_groups=[per_step,generation]').value('span_groups') == 'per_step,generation'
    assert run('a.py', '++telemetry.span_groups="per_step,job"').value('span_groups') == 'per_step,job'
    assert run('a.py', "telemetry.service_name='x y'").value('service_name') == 'x y'


def test_environment_interpolations_are_filled_in(tmp_path: Path) -> None:
    file = tmp_path / 'grpo.yaml'
    file.write_text(
        'telemetry:\n'
        '  service_name: grpo-${oc.env:TEAM}-${oc.env:STAGE,dev}\n'
        '  export_rank: ${oc.env:EXPORT_RANK,null}\n'
    )
    resolved = run('train.py', '--config', str(file), TEAM='rl')
    assert (resolved.value('service_name'), resolved.value('export_rank')) == ('grpo-rl-dev', -1)


@pytest.mark.parametrize(
    'text', ['${policy.model_name}', '${oc.env:NOT_SET}', 'a-${now:%Y}', '${oc.env:A,${oc.env:B}}']
)
def test_other_interpolations_are_announced_and_left_to_the_next_source(text: str, tmp_path: Path) -> None:
    file = tmp_path / 'grpo.yaml'
    file.write_text(f'telemetry:\n  service_name: "{text}"\n')
    resolved = run('train.py', '--config', str(file))

    assert resolved.value('service_name') == 'nemo_rl'
    assert resolved.announcements == [
        f'{file}:2 telemetry.service_name is an interpolation that cannot be resolved before the program runs: ignored'
    ]


def test_unknown_keys_are_announced_with_their_place_and_never_with_their_value(tmp_path: Path) -> None:
    file = tmp_path / 'grpo.yaml'
    file.write_text('telemetry:\n  exporter: console\n  sampler_enable: true\n  otlp_headers: authorization=s3cret\n')
    resolved = run('train.py', '--config', str(file), '++telemetry.memory_profiling.enabled=true', '+telemetry={a: 1}')

    assert resolved.value('exporter') == 'console'
    assert resolved.announcements == [
        '+telemetry=... is not read: name the fields one by one, as in +telemetry.exporter=console',
        '++telemetry.memory_profiling.enabled is not a setting of lens-auto: ignored',
        f'{file}:3 telemetry.sampler_enable is not a setting of lens-auto: ignored (did you mean `sampler_enabled`?)',
        f'{file}:4 telemetry.otlp_headers is not a setting of lens-auto: ignored',
    ]


NOT_READ = 'the telemetry settings in the config of the run were not read'


@pytest.mark.parametrize(
    ('content', 'fault'),
    [
        ('telemetry:\n  enabled: }\n', 'not YAML, line 2: '),
        ('telemetry: true\n', 'line 1: telemetry is not a mapping'),
        ('- telemetry\n', 'not a mapping of keys to values'),
        ('telemetry: ' + '[' * 5000, 'not YAML'),
        (None, 'No such file or directory'),
    ],
)
def test_a_config_that_cannot_be_read_is_announced_and_refuses_nothing(
    content: str | None, fault: str, tmp_path: Path
) -> None:
    file = tmp_path / 'grpo.yaml'
    if content is not None:
        file.write_text(content)
    resolved = run('train.py', '--config', str(file))

    assert resolved.value('enabled') is True
    assert len(resolved.announcements) == 1
    assert resolved.announcements[0].startswith(f'{NOT_READ}: {file}: {fault}')


def test_a_missing_parent_and_a_circle_are_announced(tmp_path: Path) -> None:
    first, second = tmp_path / 'a.yaml', tmp_path / 'b.yaml'
    first.write_text('defaults: [b.yaml, gone.yaml]\ntelemetry: {export_rank: 4}\n')
    second.write_text('defaults: a.yaml\ntelemetry: {service_name: b}\n')
    resolved = run('train.py', '--config', str(first))

    assert (resolved.value('export_rank'), resolved.value('service_name')) == (4, 'b')
    assert resolved.announcements == [
        f'{NOT_READ}: {second}: its `defaults:` lead in a circle, or more than 8 files deep',
        f'{NOT_READ}: {tmp_path}/gone.yaml: No such file or directory',
    ]


def test_a_config_without_a_telemetry_block_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / 'train.toml'
    file.write_text('[model]\nname = "x"\n')
    assert run('train.py', '--config', str(file)).announcements == []
    assert run('train.py', '--config', 'a_preset_name').announcements == []


def test_a_pipe_is_left_for_the_program_to_read() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b'telemetry: {exporter: console}\n')
        resolved = run('train.py', '--config', f'/dev/fd/{reading}')
        assert resolved.value('exporter') == 'file'
        assert resolved.announcements == [f'{NOT_READ}: /dev/fd/{reading}: not a plain file']
        assert os.read(reading, 100) == b'telemetry: {exporter: console}\n'
    finally:
        os.close(reading)
        os.close(writing)
