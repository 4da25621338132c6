# SPDX-License-Identifier: Apache-2.0
"""README and docs as a newcomer reads them: the commands run, and the messages quoted are the ones that are printed."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.run import REPOSITORY, Place

PAGES = [REPOSITORY / 'README.md', *sorted((REPOSITORY / 'docs').glob('*.md'))]
FENCED = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# The example takes a minute; these make it a few steps.
SHORT = ('--steps', '2', '--prompts-per-step', '4', '--group-size', '4', '--save-every', '0', '--validate-every', '0')
# What a page says once for all to fill in.
FILLED_IN = {'...': 'python train.py', 'mine.yaml': 'lens.yaml', '--config grpo.yaml': ''}


def fenced(path: Path) -> list[str]:
    return [text for _, text in FENCED.findall(path.read_text())]


def commands() -> list[tuple[str, str]]:
    """Every command of ours in a fenced block, with the page it is on."""
    found: dict[str, str] = {}
    for path in PAGES:
        for text in fenced(path):
            for line in text.splitlines():
                command = line.removeprefix('$ ').partition('  #')[0].strip()
                # Not the first line of a picture: a command is followed by its arguments one space on.
                if '  ' not in command and re.match(
                    r'(\w+=\S+ )*(lens-instrument|lens-rules|python -m lens_auto)\b(?!:)', command
                ):
                    found.setdefault(command, path.name)
    return [(page, command) for command, page in found.items()]


@pytest.fixture
def checkout(place: Place) -> Place:
    """A working directory as the pages assume it: the example, a trainer of one's own, a run to look at."""
    shutil.copytree(REPOSITORY / 'examples', place.cwd / 'examples', ignore=shutil.ignore_patterns('__pycache__'))
    shutil.copy(place.cwd / 'train.py', place.cwd / 'run_grpo.py')
    return place


@pytest.fixture
def short_folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix='lens') as folder:
        yield folder


def test_there_are_commands_to_try():
    assert len(commands()) >= 8


@pytest.mark.parametrize(('page', 'command'), commands(), ids=lambda text: text)
def test_a_command_of_the_pages_does_what_it_says(checkout: Place, page: str, command: str, short_folder: str):
    # Ray's sockets lie in its temporary folder, and the path of a socket has 107 characters at most.
    env = {'RAY_TMPDIR': short_folder, 'RAY_AUTH_MODE': 'disabled'}
    for written, meant in FILLED_IN.items():
        command = command.replace(written, meant)
    if 'lens-runs/RUN' in command:
        run = checkout.record('python', 'train.py')
        command = command.replace('lens-runs/RUN', shlex.quote(str(run.path)))
    words = shlex.split(command)
    while '=' in words[0]:
        name, _, value = words.pop(0).partition('=')
        env[name] = value
    if words[-1].endswith('run_grpo.py') and 'examples' in words[-1]:
        words += SHORT
    elif '--steps' in words:
        words += SHORT  # the last --steps counts

    done = checkout.plain(*words, env=env)

    assert done.code == 0, f'{page}: {command}\n{done.stdout}\n{done.stderr}'
    assert 'Traceback' not in done.stderr


def quoted(page: str, start: str) -> str:
    """The fenced block of a page that starts so."""
    [found] = [text for text in fenced(REPOSITORY / page) if text.startswith(start)]
    return found


def test_the_error_of_a_wrong_setting_is_worded_as_quoted(place: Place):
    done = place.lens('--exporter', 'otpl', 'python', 'train.py')

    assert done.code == 2
    assert done.stderr == quoted('docs/configuration.md', 'lens-instrument: exporter cannot be')


def test_the_error_of_a_wrong_rule_file_is_worded_as_quoted(checkout: Place):
    text = quoted('docs/writing_rules.md', 'examples/lens.yaml:')
    path = checkout.cwd / 'examples' / 'lens.yaml'
    path.write_text(path.read_text().replace('  group: job\n', '  gruop: job\n', 1))

    done = checkout.lens('--rules', 'examples/lens.yaml', 'python', 'train.py')

    assert (done.code, done.stdout) == (2, '')
    place_of = re.compile(r'lens\.yaml:\d+:\d+')
    assert place_of.sub('lens.yaml:L:C', text) in place_of.sub('lens.yaml:L:C', done.stderr)
    line = int(done.stderr.partition('lens.yaml:')[2].split(':')[0])
    assert 'gruop' in path.read_text().splitlines()[line - 1]


def test_info_tells_what_would_be_hooked_with_sources_and_runs_nothing(place: Place):
    done = place.lens('--info', '--span-groups', 'step', 'python', 'train.py', env={'LENS_EXPORT_RANK': '2'})

    assert done.code == 0
    assert 'step 1' not in done.stdout
    assert place.runs == []
    blocks = {block.split('\n')[0]: block for block in done.stdout.split('\n\n')}
    assert {'python', 'command', 'settings', 'rule files', 'hooked', 'off'} <= blocks.keys()
    settings = {line.split()[0]: line for line in blocks['settings'].splitlines()[1:]}
    assert 'step' in settings['span_groups'] and '--span-groups step' in settings['span_groups']
    assert '2' in settings['export_rank'] and 'LENS_EXPORT_RANK' in settings['export_rank']
    assert 'default' in settings['traces_enabled']
    assert 'lens.yaml' in blocks['rule files']
    assert 'trainer:Timer.time' in blocks['hooked']
    assert 'trainer:fit' in blocks['off'] and 'trainer:score' in blocks['off']


def test_every_setting_of_the_page_can_be_set_by_its_variable(place: Place):
    text = (REPOSITORY / 'docs' / 'configuration.md').read_text()
    names = re.findall(r'Environment: `(LENS_\w+)`', text)

    done = place.lens('--info', 'python', 'train.py', env={name: '1' for name in names if name not in REFUSING})

    assert len(names) == 16
    assert done.code == 0, done.stderr
    for name in set(names) - REFUSING:
        assert name in done.stdout


REFUSING = {'LENS_LOGS_ENABLED', 'LENS_SPAN_GROUPS', 'LENS_EXPORT_STRATEGY', 'LENS_EXPORTER', 'LENS_VOCABULARY'}


@pytest.mark.parametrize(
    ('arguments', 'code', 'said'),
    [
        ((), 2, 'no command given'),
        (('--span-grups', 'all', 'python'), 2, 'did you mean `--span-groups`?'),
        (('--span-groups',), 2, 'option --span-groups needs a value'),
        (('--span-groups', 'rolout', 'python', 'train.py'), 2, 'did you mean `rollout`?'),
        (('--set', 'exporter', 'python', 'train.py'), 2, 'option --set needs field=value'),
        (('--set', 'exprter=file', 'python', 'train.py'), 2, '`exporter`'),
        (('--rules', 'no/such.yaml', 'python', 'train.py'), 2, 'no/such.yaml'),
        (('--telemetry', 'no/such.yaml', 'python', 'train.py'), 2, 'no/such.yaml'),
        (('--replay', 'no-such-run'), 2, 'is not the folder of a run'),
        (('no-such-command',), 127, 'no-such-command'),
        (('./lens.yaml',), 126, 'ermission denied'),
        (('./',), 126, 'Is a directory'),
    ],
    ids=lambda value: ' '.join(value) if isinstance(value, tuple) else None,
)
def test_mistakes_name_the_place_the_fault_and_the_way_out(
    place: Place, arguments: tuple[str, ...], code: int, said: str
):
    done = place.lens(*arguments)

    assert (done.code, done.stdout) == (code, '')
    assert said in done.stderr
    assert done.stderr.startswith(('lens-instrument: ', 'lens-auto: '))
    assert 'Traceback' not in done.stderr
    assert place.runs == []


def test_help_and_version_answer(place: Place):
    for option in ('--help', '-h', '--version'):
        done = place.lens(option)
        assert (done.code, done.stderr) == (0, '')
        assert 'lens-instrument' in done.stdout
    helped = place.lens('--help').stdout
    options = '--rules --telemetry --span-groups --exporter --run-dir --service-name --set --strict --exec --no-summary'
    for option in (*options.split(), '--info', '--replay'):
        assert option in helped


def test_a_journal_is_printed_for_humans(place: Place):
    place.write(
        {
            'keep.py': 'import os, shutil, trainer\ntrainer.fit(trainer.Config(), 1)\n'
            'shutil.copytree(os.environ["LENS_SPOOL"], "kept")\n'
        }
    )
    place.lens('python', 'keep.py')
    [journal] = (place.cwd / 'kept').glob('*.jnl')

    done = place.plain('python', '-m', 'lens_auto.record', str(journal))

    assert done.code == 0, done.stderr
    for word in ('job', 'step', 'score', 'reward'):
        assert word in done.stdout
