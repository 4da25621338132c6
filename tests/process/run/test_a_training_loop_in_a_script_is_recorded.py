# SPDX-License-Identifier: Apache-2.0
"""`lens-instrument python train.py`, where a step is the body of a bare `for` in the script."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.helpers.run import LENS, Place, Run

# As slime's train.py: no function of its own is a step.
TRAIN = """
import argparse
import sys

from rollout import generate


class Actor:
    def train(self, rollout_id, data):
        return sum(data) + rollout_id

    def save(self, rollout_id):
        print('saved', rollout_id)


def train(args):
    actor = Actor()
    for rollout_id in range(args.start, args.num_rollout):
        data = generate(rollout_id)
        if rollout_id == args.skip:
            continue
        loss = actor.train(rollout_id, data)
        print(f'rollout {rollout_id}: {loss}')
        if rollout_id == args.num_rollout - 1:
            actor.save(rollout_id)
    return loss


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--start', type=int, default=0)
    parser.add_argument('--num-rollout', type=int, default=3)
    parser.add_argument('--skip', type=int, default=1)
    args = parser.parse_args()
    loss = train(args)
    if loss == 0:
        raise ValueError('nothing learnt')
    sys.exit(int(loss))
"""
ROLLOUT = """
def generate(rollout_id):
    tokens = []
    while len(tokens) < rollout_id:
        tokens.append(rollout_id)
    return tokens
"""
RULES = """
framework: slime_like
rules:
- kind: loop
  target: train.py:train
  match: "for rollout_id in range($start, $end):"
  group: step
  root: true
  name: rl.step
  attributes: {rl.iteration: frame.rollout_id, rl.end: match.end}
- {kind: loop, target: "rollout:generate", match: "while $_:", group: generation, name: rl.token}
- {kind: function, target: "train.py:Actor.train", group: policy_update, name: rl.train}
- {kind: call, target: "train.py:train", match: actor.save($which), group: checkpoint, name: "rl.save.{match.which}"}
"""
STEPS = """\
lens.run!
  ~ rl.step rl.iteration=0 rl.end=args.num_rollout
    rl.train
  ~ rl.step rl.iteration=1 rl.end=args.num_rollout
    rl.token
  ~ rl.step rl.iteration=2 rl.end=args.num_rollout
    rl.token
    rl.token
    rl.train
    rl.save.2"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path).write({'train.py': TRAIN, 'rollout.py': ROLLOUT, 'lens.yaml': RULES})


@pytest.mark.parametrize('arguments', [(), ('--num-rollout', '1'), ('--skip', '7'), ('--num-rollout', 'x')])
def test_it_prints_and_ends_as_without_us(place: Place, arguments: tuple[str, ...]) -> None:
    plain = place.plain(sys.executable, 'train.py', *arguments)
    for number in range(2):
        run = ('--run-dir', f'run-{number}', '--no-summary')
        traced = place.lens(*run, sys.executable, 'train.py', *arguments)
        assert (traced.code, traced.stdout, traced.theirs) == (plain.code, plain.stdout, plain.stderr)


def test_each_iteration_is_a_step_with_what_happens_in_it(place: Place) -> None:
    for number in range(2):
        done = place.lens('--run-dir', f'run-{number}', '--no-summary', sys.executable, 'train.py')
        assert done.code == 6, done.stderr
        assert Run(place.cwd / f'run-{number}').tree('rl.iteration', 'rl.end') == STEPS
    # The second start took all code from the cache.
    assert len(list((place.folder / 'cache' / 'lens-auto' / 'rewritten').iterdir())) == 2


def test_so_it_is_for_rules_on_modules_that_python_has_imported_by_itself(place: Place) -> None:
    rules = RULES.replace('rules:', 'when: rollout\nrules:')
    rules += '- {kind: function, target: "os:get_exec_path", group: checkpoint, name: rl.folder}\n'
    script = 'import os\nos.get_exec_path()\n' + TRAIN
    (place.cwd / 'lens.yaml').unlink()
    place.write({'rules.yaml': rules, 'train.py': script})
    done = place.lens('--strict', '--rules', 'rules.yaml', '--run-dir', 'run', sys.executable, 'train.py')
    assert done.code == 6, done.stderr
    assert 'not installed' not in done.stderr
    assert Run(place.cwd / 'run').only('rl.folder')


def test_a_working_directory_that_is_the_root_of_all_is_one_as_any_other(place: Place) -> None:
    script = str(place.cwd / 'train.py').lstrip('/')
    rules, folder = str(place.cwd / 'lens.yaml'), place.cwd / 'run'
    place.cwd = Path('/')
    done = place.lens('--rules', rules, '--run-dir', str(folder), sys.executable, script)
    assert done.code == 6, done.stderr
    assert Run(folder).tree('rl.iteration', 'rl.end') == STEPS


def test_a_rule_that_matches_nothing_is_told_in_the_summary(place: Place) -> None:
    rules = RULES.replace('range($start, $end)', 'range($end)').replace(', rl.end: match.end', '')
    done = place.write({'lens.yaml': rules}).lens('--run-dir', 'run', sys.executable, 'train.py')
    assert done.code == 6
    said = 'matched nothing (`for rollout_id in range($end):` in train is not there; nearest: line 18'
    assert said in done.stderr, done.stderr
    facts = json.dumps(Run(place.cwd / 'run').facts['rules'])
    assert 'nearest: line 18' in facts


def test_a_package_beside_the_script_is_there_when_the_script_is_about_to_run(place: Place) -> None:
    place.write(
        {'lens.yaml': '', 'rules.yaml': RULES.replace('rules:', 'when: rollout\nrules:'), 'elsewhere/empty': ''}
    )
    place.cwd /= 'elsewhere'
    done = place.lens('--rules', '../rules.yaml', '--run-dir', '../run', sys.executable, '../train.py')
    assert done.code == 6, done.stderr
    assert Run(place.cwd.parent / 'run').tree('rl.iteration', 'rl.end') == STEPS


LOOP = 'framework: t\nrules:\n- {kind: loop, target: other.py, match: "for $i in $_:", group: step, name: rl.other}\n'
NO_FILE = '1 process ran what -c or standard input gave: no file, so no rule reaches it'


@pytest.mark.parametrize('how', [('-c', 'for i in (1, 2): print(i)'), ('-',), ()])
def test_a_loop_that_comes_by_command_or_standard_input_is_told_to_be_out_of_reach(
    place: Place, how: tuple[str, ...]
) -> None:
    place.write({'lens.yaml': LOOP, 'other.py': 'for i in (1, 2): print(i)\n'})
    shell = ('sh', '-c', 'exec "$@" < other.py', 'sh')
    done = place.plain(*shell, LENS, '--run-dir', 'run', sys.executable, *how)
    assert (done.code, done.stdout) == (0, '1\n2\n')
    assert 'no process ran other.py' in done.stderr and NO_FILE in done.stderr, done.stderr
    assert Run(place.cwd / 'run').facts['processes'][0]['command'] == ('-c' if how[:1] == ('-c',) else '-')


def test_a_script_that_nobody_ran_is_told_to_be_just_that(place: Place) -> None:
    place.write({'lens.yaml': LOOP, 'another.py': 'import subprocess\n'})
    done = place.lens('--run-dir', 'run', sys.executable, 'another.py')
    assert 'no process ran other.py' in done.stderr and NO_FILE not in done.stderr


def test_a_module_named_for_the_script_is_told_how_to_be_named(place: Place) -> None:
    rules = RULES.replace('train.py:train', 'train:train').replace('train.py:Actor', 'train:Actor')
    done = place.write({'lens.yaml': rules}).lens('--run-dir', 'run', sys.executable, 'train.py')
    assert 'write `train.py` for `train` there' in done.stderr


def test_rules_that_are_off_leave_the_script_alone_and_nothing_is_said_of_other_frameworks(place: Place) -> None:
    done = place.lens('--run-dir', 'run', '--span-groups', 'checkpoint', sys.executable, 'train.py')
    assert done.code == 6
    assert Run(place.cwd / 'run').names() == {'rl.save.2'}
    assert 'is not installed here' not in done.stderr
    assert 'is not installed here' not in (place.cwd / 'run' / 'run.json').read_text()
