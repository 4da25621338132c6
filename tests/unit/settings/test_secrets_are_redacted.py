# SPDX-License-Identifier: Apache-2.0
import pytest

from lens_auto.settings import redact

JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpM'
HIDDEN = redact.REDACTED


@pytest.mark.parametrize(
    ('command', 'shown'),
    [
        (['--hf-token', 'abc def'], ['--hf-token', HIDDEN]),
        (['--hf_token=abc'], [f'--hf_token={HIDDEN}']),
        (['--apiKey', 'x'], ['--apiKey', HIDDEN]),
        (['--password=hunter 2'], [f'--password={HIDDEN}']),
        (['++logger.wandb.api_key=0123456789'], [f'++logger.wandb.api_key={HIDDEN}']),
        (['AWS_SECRET_ACCESS_KEY=a/b+c=='], [f'AWS_SECRET_ACCESS_KEY={HIDDEN}']),
        (['-H', 'Authorization: Bearer abc.def-123'], ['-H', f'Authorization: {HIDDEN}']),
        (['{"api_key": "x y", "steps": 3}'], [f'{{"api_key": {HIDDEN}, "steps": 3}}']),
        (['--token', '--verbose'], ['--token', '--verbose']),
        (['--openai-key', 'q1w2e3r4t5y6u7i8o9p0'], ['--openai-key', HIDDEN]),
        (['bash', '-c', 'export X_TOKEN=abc; python a.py'], ['bash', '-c', f'export X_TOKEN={HIDDEN}; python a.py']),
        (['--cookie', 'a=b'], ['--cookie', HIDDEN]),
        (['-H', 'Cookie: a=1; b=2'], ['-H', f'Cookie: {HIDDEN}']),
        (
            ['bash', '-c', 'python a.py --hf-token abc --steps 3'],
            ['bash', '-c', f'python a.py --hf-token {HIDDEN} --steps 3'],
        ),
        (['--wandb.hftoken', 'abc'], ['--wandb.hftoken', HIDDEN]),
    ],
)
def test_a_value_by_the_name_of_a_secret_is_hidden_in_a_command(command: list[str], shown: list[str]) -> None:
    assert redact.argv(command) == shown


@pytest.mark.parametrize(
    'secret',
    [
        'hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345',
        'sk-proj-abc123def456ghi789',
        'sk-ant-api03-abcdefgh',
        'ghp_0123456789abcdefghij',
        'github_pat_11ABCDEFG0123456789',
        'glpat-abcdefghij0123456789',
        'AKIAIOSFODNN7EXAMPLE',
        'AIzaSyA-0123456789abcdefghijklmnopq',
        'xoxb-123456789012-abcdef',
        'nvapi-0123456789abcdefghij',
        JWT,
    ],
)
def test_a_token_of_a_known_shape_is_hidden_wherever_it_stands(secret: str) -> None:
    assert redact.text(f'loading with {secret}, now') == f'loading with {HIDDEN}, now'
    assert redact.argv([secret, f'--arg={secret}', f'a/{secret}']) == [HIDDEN, f'--arg={HIDDEN}', f'a/{HIDDEN}']
    assert redact.environment({'HARMLESS': secret}) == {'HARMLESS': HIDDEN}


@pytest.mark.parametrize(
    ('text', 'shown'),
    [
        ('https://user:p%40ss@host:4318/v1', f'https://{HIDDEN}@host:4318/v1'),
        ('https://token@host/x', f'https://{HIDDEN}@host/x'),
        ('postgres://u:p@ss@db/x', f'postgres://{HIDDEN}@db/x'),
        ('https://b.s3/x?X-Amz-Signature=0f1e&part=2', f'https://b.s3/x?X-Amz-Signature={HIDDEN}&part=2'),
        ('https://h/?access_token=q&x=1', f'https://h/?access_token={HIDDEN}&x=1'),
        ('sent bearer 0a1b2c3d4e5f', f'sent bearer {HIDDEN}'),
        ('authorization: AWS4 Credential=AK/x, Signature=f0', f'authorization: {HIDDEN}'),
        ('Authorization=Basic dXNlcjpwYXNz', f'Authorization={HIDDEN}'),
        ("401 for {'x-api-key': 'v1', 'a': 'b'}", f"401 for {{'x-api-key': {HIDDEN}, 'a': 'b'}}"),
        ('-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nend', f'{HIDDEN}\nend'),
    ],
)
def test_secrets_inside_a_text_are_hidden(text: str, shown: str) -> None:
    assert redact.text(text) == shown


def test_an_environment_is_hidden_by_name() -> None:
    secret = {
        'HF_TOKEN': 'a',
        'WANDB_API_KEY': 'b',
        'OPENAI_KEY': 'c',
        'AWS_SESSION_TOKEN': '1234',
        'MYSQL_PWD': 'd',
        'OTEL_EXPORTER_OTLP_HEADERS': 'x-team=rl',
        'OTEL_EXPORTER_OTLP_TRACES_HEADERS': 'e=f',
        'GOOGLE_APPLICATION_CREDENTIALS': '/x.json',
        'DATABASE_URL_PASSWORD': 'g',
        'SESSION_COOKIE': 'h',
    }
    plain = {
        'PATH': '/usr/bin:/bin',
        'TOKENIZERS_PARALLELISM': 'false',
        'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://collector:4317',
        'CUDA_VISIBLE_DEVICES': '0,1',
        'NCCL_DEBUG': 'INFO',
        'EMPTY_TOKEN': '',
        'SLURM_JOB_ID': '1234567',
    }
    assert redact.environment({**secret, **plain}) == {**dict.fromkeys(secret, HIDDEN), **plain}


@pytest.mark.parametrize(
    'argument',
    [
        'policy.max_total_sequence_length=512',
        'max_new_tokens=512',
        'data.max_tokens=1_024',
        'use_token_level_loss=true',
        'actor.tokenizer.name=Qwen/Qwen2.5-0.5B',
        'reward_key=score',
        'author=someone',
        'monkey=banana',
        'lr=1e-6',
        'commit=0f1e2d3c4b5a69788796a5b4c3d2e1f000112233',
        'http://host:4318/v1/traces',
        's3://bucket/checkpoints/step_100',
        'task-12345678',
        'hf_checkpoint',
        '++telemetry.span_groups=per_step,generation',
        'C:\\data\\x.json',
        '12:30:05',
        'torchrun --nproc-per-node=2 train.py',
    ],
)
def test_ordinary_arguments_stay_readable(argument: str) -> None:
    assert redact.argv([argument]) == [argument]
    assert redact.text(argument) == argument


def test_values_of_ordinary_flags_stay_readable() -> None:
    command = [
        'python',
        'train.py',
        '--max-tokens',
        '512',
        '--input_key',
        'prompt',
        '--seed',
        '1',
        '--tokenizer',
        'gpt2',
    ]
    assert redact.argv(command) == command


def test_a_megabyte_without_a_secret_is_returned_as_it_is() -> None:
    # Quadratic patterns would need minutes here; the suite's time limit notices.
    for long in ('a' * 1_000_000, 'a-' * 500_000, '://' * 300_000, '@' * 1_000_000, 'ab://' + 'x' * 1_000_000):
        assert redact.text(long) == long
