# SPDX-License-Identifier: Apache-2.0
"""Tokens, passwords, prompts and messages planted wherever a run has them, and looked for wherever we write."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.helpers.otlp_receiver import Receiver
from tests.helpers.run import Done, Place

# The program spells its own secrets backwards, so that its source does not hold them.
PROGRAM = """\
import os, shutil, sys
import trainer

PROMPT, COMPLETION, MESSAGE, VALUE, LABEL = (word[::-1] for word in WORDS)

class Bad(Exception):
    def __str__(self):
        return MESSAGE

def each(step):
    try:
        trainer.score(step, prompt=PROMPT)
        trainer.complete(PROMPT)
    except trainer.Refused:
        pass
    try:
        with trainer.Timer().time('rollout'):
            raise Bad(MESSAGE)
    except Bad:
        pass
    with trainer.Timer().time(LABEL):
        pass
    trainer.Logger().log_metrics({'reward': VALUE, 'tokens': [VALUE], 'api_key': VALUE, VALUE: 1.0}, PROMPT)

config = trainer.Config(telemetry={'service_name': None, 'headers': VALUE, 'enabled': VALUE, 'export_rank': VALUE})
sys.stdout = open(os.devnull, 'w')
trainer.fit(config, 3, each)
shutil.copytree(os.environ['LENS_SPOOL'], 'kept')
"""
MORE = """

class Refused(Exception):
    pass


def complete(prompt):
    raise Refused("cannot complete: " + prompt)
"""
MORE_RULES = """\
- kind: function
  target: trainer:complete
  group: generation
  name: complete
  attributes: {length: len(arg.prompt)}
"""
INSIDE = ('PromptOfThePatient', 'CompletionForThem', 'MessageOfTheError', 'ghp_ValueAmongMetrics0123', 'LabelWithAName')

ARGV = (
    *('--hf-token', 'hf_ArgvTokenArgvToken01'),
    '--api-key=sk-ArgvApiKeyArgvApiKey02',
    'logger.wandb.api_key=PlainArgvValue03',
    '--password',
    'ArgvPassword04',
    'https://ArgvUser05:ArgvPass06@example.com/x',
    '{"Authorization": "Bearer ArgvBearer07ArgvBearer07"}',
    '++telemetry.headers=ArgvHeaders08',
)
ENV = {
    'HF_TOKEN': 'hf_EnvTokenEnvTokenEnv11',
    'WANDB_API_KEY': 'EnvWandbKey12EnvWandbKey12',
    'AWS_SECRET_ACCESS_KEY': 'EnvAwsKey13EnvAwsKey13',
    'DATABASE_URL': 'postgres://EnvUser14:EnvPass15@db/x',
    'OTEL_EXPORTER_OTLP_HEADERS': 'authorization=Bearer%20EnvHeader16EnvHeader16,x-api-key=EnvHeader17',
    'OTEL_RESOURCE_ATTRIBUTES': 'team=rl,api.token=EnvAttribute18EnvAttribute18,note=ghp_EnvAttribute19EnvAttribute19',
}
SECRETS = [
    *(word for text in (*ARGV, *ENV.values()) for word in re.findall(r'[A-Za-z_-]{4,}\d\d', text)),
    *INSIDE,
]


@pytest.fixture
def spy(place: Place) -> Place:
    """A place whose program has secrets everywhere."""
    words = repr([word[::-1] for word in INSIDE])
    for name, more in (('trainer.py', MORE), ('lens.yaml', MORE_RULES)):
        place.write({name: (place.cwd / name).read_text() + more})
    place.write({'program.py': PROGRAM.replace('in WORDS', f'in {words}')})
    return place


def leaks(place: Place, *texts: str) -> set[str]:
    """Secrets in the texts or in any byte of any file below the place's folder, with where they are."""
    found = {f'{secret} on the screen' for secret in SECRETS for text in texts if secret in text}
    for folder, _, names in os.walk(place.folder):
        for name in names:
            path = Path(folder, name)
            data = path.read_bytes()
            found |= {f'{secret} in {path.relative_to(place.folder)}' for secret in SECRETS if secret.encode() in data}
            found |= {f'{secret} in the name of {path}' for secret in SECRETS if secret in str(path)}
    return found


def run(place: Place, *flags: str, env: dict[str, str] | None = None) -> Done:
    done = place.lens('--span-groups', 'all', *flags, 'python', 'program.py', *ARGV, env={**ENV, **(env or {})})
    assert done.code == 0, done.stderr
    return done


def test_planted_words_are_found_where_nothing_hides_them(spy: Place):
    """The test's own test: what is looked for is looked for in the right way."""
    spy.write({'leak.txt': f'{INSIDE[0]} sk-ArgvApiKeyArgvApiKey02'})

    assert {leak.split()[0] for leak in leaks(spy)} == {INSIDE[0], 'sk-ArgvApiKeyArgvApiKey02'}


@pytest.mark.parametrize('exporter', ['file', 'console'])
def test_nothing_planted_is_on_screen_in_folder_or_journal(spy: Place, exporter: str):
    done = run(spy, '--exporter', exporter)

    assert leaks(spy, done.stdout, done.stderr) == set()
    assert 'ValueError' not in done.stderr
    assert (spy.cwd / 'kept').is_dir()
    if exporter == 'file':
        assert len(spy.run.named('complete')) == 3 and all(span.error for span in spy.run.named('complete'))
        assert [dict(values)['exception.type'] for _, values in spy.run.named('complete')[0].events] == [
            'trainer.Refused'
        ]


@pytest.mark.parametrize('protocol', ['grpc', 'http/protobuf'])
def test_nothing_planted_is_in_what_is_sent(spy: Place, protocol: str):
    with Receiver() as receiver:
        done = run(spy, env=receiver.environment(protocol))

        assert receiver.headers['authorization'] == 'Bearer EnvHeader16EnvHeader16'
        payload = ''.join(str(part) for part in (*receiver.traces, *receiver.metrics))
    assert 'complete' in payload
    assert leaks(spy, done.stdout, done.stderr, payload) == set()


def test_nothing_planted_is_told_when_sending_fails_or_a_run_is_replayed(spy: Place):
    with Receiver('4xx') as receiver:
        env = receiver.environment('http/protobuf')
        endpoint = env['OTEL_EXPORTER_OTLP_ENDPOINT'].replace('http://', 'http://EnvUser14:EnvPass15@')
        done = run(spy, env={**env, 'OTEL_EXPORTER_OTLP_ENDPOINT': endpoint})
        replayed = spy.lens('--replay', str(spy.run.path), env={**ENV, **env, 'OTEL_EXPORTER_OTLP_ENDPOINT': endpoint})

    assert 'not sent' in done.stderr and replayed.code == 1
    assert leaks(spy, done.stdout, done.stderr, replayed.stderr) == set()


def test_nothing_planted_is_told_by_info_or_an_error(spy: Place):
    said = [spy.lens('--info', 'python', 'program.py', *ARGV, env=ENV)]
    said.append(spy.lens('--set', 'exporter=sk-ArgvApiKeyArgvApiKey02', 'python', 'program.py', *ARGV, env=ENV))
    said.append(spy.lens('python', 'program.py', 'telemetry.export_rank=hf_ArgvTokenArgvToken01', env=ENV))
    said.append(spy.lens('--span-groups', 'hf_EnvTokenEnvTokenEnv11', 'python', 'program.py', env=ENV))
    said.append(spy.lens('python', 'program.py', env={**ENV, 'LENS_EXPORTER': ENV['HF_TOKEN']}))

    assert [done.code for done in said] == [0, 2, 0, 2, 2]  # the third is the program's to refuse
    assert leaks(spy, *(done.stdout + done.stderr for done in said)) == set()


def test_nothing_planted_is_left_by_a_killed_run(spy: Place):
    spy.write({'program.py': (spy.cwd / 'program.py').read_text() + 'os.kill(os.getpid(), 9)\n'})

    done = spy.lens('--span-groups', 'all', 'python', 'program.py', *ARGV, env=ENV)

    assert done.code == -9
    assert leaks(spy, done.stdout, done.stderr) == set()


def test_folder_and_journal_are_the_users_alone(spy: Place):
    run(spy)

    for path in (spy.run.path, *spy.run.path.iterdir(), spy.cwd / 'kept', *(spy.cwd / 'kept').iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path
