# SPDX-License-Identifier: Apache-2.0
"""Exporter `console`: finished spans and points as JSON lines where a program's other lines are."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.helpers.run import LENS, Place

CONSOLE = ('--exporter', 'console', '--span-groups', 'all')
KEYS = ['trace_id', 'span_id', 'parent_id', 'name', 'start_time', 'end_time', 'status', 'attributes', 'resource']

# A server with a log of its own beside a program that prints where the launcher does.
WITH_SERVER = """\
import subprocess, sys
with open('server.log', 'w') as log:
    server = subprocess.Popen([sys.executable, 'train.py', '2'], stdout=log)
    import trainer
    trainer.fit(trainer.Config(), 3)
    server.wait()
"""


def parsed(text: str) -> list[dict[str, Any]]:
    """The JSON lines of an output."""
    return [json.loads(line) for line in text.splitlines() if line.startswith('{')]


def names(lines: list[dict[str, Any]]) -> Counter[str]:
    return Counter(line['name'] if 'name' in line else line['metric'] for line in lines)


def test_every_finished_span_and_point_is_a_line_of_its_own(place: Place):
    plain = place.plain('python', 'train.py')
    done = place.lens(*CONSOLE, 'python', 'train.py')
    lines = parsed(done.stdout)

    assert ''.join(line for line in done.stdout.splitlines(True) if not line.startswith('{')) == plain.stdout
    assert names(lines) == {'job': 1, 'step': 3, 'rollout': 3, 'update': 3, 'score': 3, 'reward': 3, 'tokens': 3}
    for line in lines:
        if 'trace_id' in line:
            assert list(line) == KEYS
            assert line['resource']['service.name'] == 'small_trainer'
    [job] = [line for line in lines if line.get('name') == 'job']
    assert (len(job['trace_id']), len(job['span_id']), len(job['parent_id'])) == (32, 16, 16)
    assert job['start_time'] < job['end_time']


def test_grep_jq_sort_uniq_counts_spans_by_trace(place: Place):
    """With python in place of jq, which is not on every machine."""
    jq = """python3 -c 'import json, sys; [print(json.loads(line)["trace_id"]) for line in sys.stdin]'"""
    pipeline = (
        f'{" ".join([LENS, *CONSOLE])} python train.py > all.log; grep -h \'"trace_id"\' *.log | {jq} | sort | uniq -c'
    )

    done = place.plain('bash', '-c', pipeline)

    assert sorted(int(line.split()[0]) for line in done.stdout.splitlines()) == [1, 4, 4, 4]


def test_a_process_with_a_log_of_its_own_prints_there_and_only_there(place: Place):
    place.write({'main.py': WITH_SERVER})

    done = place.lens(*CONSOLE, 'python', 'main.py')
    here, there = parsed(done.stdout), parsed((place.cwd / 'server.log').read_text())

    assert names(here) == {'job': 1, 'step': 3, 'rollout': 3, 'update': 3, 'score': 3, 'reward': 3, 'tokens': 3}
    assert names(there) == {'job': 1, 'step': 2, 'rollout': 2, 'update': 2, 'score': 2, 'reward': 2, 'tokens': 2}
    ids = [line['span_id'] for line in (*here, *there) if 'span_id' in line]
    assert len(ids) == len(set(ids))
    assert {line['resource']['process.pid'] for line in here}.isdisjoint(
        line['resource']['process.pid'] for line in there
    )


def test_several_processes_on_one_output_never_mix_their_lines(place: Place):
    place.write(
        {
            'main.py': 'import subprocess, sys\n'
            'all = [subprocess.Popen([sys.executable, "train.py", "40"]) for _ in range(4)]\n'
            'for one in all: one.wait()\n'
        }
    )
    done = place.lens(*CONSOLE, 'python', 'main.py')

    assert all(line.startswith(('{"', 'step ')) for line in done.stdout.splitlines())
    assert names(parsed(done.stdout))['step'] == 160


@pytest.mark.parametrize('end', ['os._exit(3)', 'os.kill(os.getpid(), 9)', 'os.abort()'])
def test_lines_of_a_killed_program_are_printed(place: Place, end: str):
    place.write({'main.py': f'import os, trainer\ntrainer.fit(trainer.Config(), 3)\n{end}\n'})

    done = place.lens('--no-summary', *CONSOLE, 'python', 'main.py')

    assert names(parsed(done.stdout))['step'] == 3


def test_a_reader_that_leaves_ends_the_program_as_it_would_alone(place: Place):
    script = '{} python train.py 2000 | head -1 > /dev/null; echo "codes ${{PIPESTATUS[*]}}"'

    plain = place.plain('bash', '-c', script.format(''))
    traced = place.plain('bash', '-c', script.format(f'{LENS} --no-summary --exporter console'))

    assert traced.stdout == plain.stdout


def test_the_folder_says_how_it_went(place: Place):
    done = place.lens(*CONSOLE, 'python', 'train.py')

    facts = place.run.facts
    assert (facts['complete'], facts['settings']['exporter'][0]) == (True, 'console')
    assert 'lens-auto  run' in done.stderr
