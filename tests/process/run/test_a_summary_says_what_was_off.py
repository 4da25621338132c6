# SPDX-License-Identifier: Apache-2.0
"""What the settings keep from being recorded is told as such, and never as a rule that does not fit the program."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.run import Done, Place

TRAIN = ('python', 'train.py')
UNTRUE = ('matched nothing', 'no process imported', 'never called', 'none recorded')

OWN_CONFIG = """\
import trainer
trainer.fit(trainer.Config({block!r}), 2)
"""

RANKS = """\
import os, subprocess, sys
for rank in range(3):
    subprocess.run([sys.executable, 'train.py', '1'], env={**os.environ, 'RANK': str(rank), 'WORLD_SIZE': '3'})
"""


def summary(done: Done) -> str:
    """What was said, in one line."""
    assert done.code == 0
    return ' '.join(done.stderr.split())


def off(place: Place) -> dict[str, str]:
    """Rule -> the setting that keeps it from recording."""
    return {rule['name']: rule['off'] for rule in place.run.facts['rules'] if rule['off']}


@pytest.mark.parametrize('where', ['variable', 'own config'])
@pytest.mark.parametrize(('name', 'kind'), [('traces_enabled', 'function'), ('metrics_enabled', 'logger')])
def test_a_signal_that_is_off_is_named_by_its_setting(place: Place, where: str, name: str, kind: str):
    place.write({'own.py': OWN_CONFIG.format(block={name: False})})

    if where == 'variable':
        said = summary(place.lens(*TRAIN, env={f'LENS_{name.upper()}': '0'}))
    else:
        said = summary(place.lens('python', 'own.py'))

    assert f'off by {name}=false: ' in said
    assert not [words for words in UNTRUE if words in said]
    kinds = {rule['name']: rule['kind'] for rule in place.run.facts['rules']}
    assert {kinds[rule] == 'logger' for rule in off(place)} == {kind == 'logger'}


def test_ranks_that_do_not_export_are_told_by_the_strategy(place: Place):
    place.write({'ranks.py': RANKS})
    line = 'export_strategy single_rank: only {} of each world records'

    last = summary(place.lens('--set', 'export_strategy=single_rank', 'python', 'ranks.py'))
    absent = summary(place.lens('--set', 'export_strategy=single_rank', '--set', 'export_rank=7', 'python', 'ranks.py'))

    assert line.format('the last rank') in last
    assert line.format('rank 7') in absent and '0 spans recorded' in absent
    for said in (last, absent):
        assert not [words for words in UNTRUE if words in said]


def test_groups_of_the_programs_own_config_are_those_that_count(place: Place):
    place.write({'own.py': OWN_CONFIG.format(block={'span_groups': 'reward'})})

    said = summary(place.lens('python', 'own.py'))

    assert 'span groups not selected: ' in said
    on: dict[str, Any] = {rule['name']: rule['on'] for rule in place.run.facts['rules']}
    assert on['score'] and not on['job']
    assert not [words for words in UNTRUE if words in said]


def test_a_step_whose_phases_are_not_selected_is_not_called_idle(place: Place):
    assert 'idle' in summary(place.lens(*TRAIN))
    assert 'idle' not in summary(place.lens('--span-groups', 'step,job', *TRAIN))


def test_run_json_has_the_labels_and_keys_that_are_looked_for(place: Place):
    place.record('--span-groups', 'rollout', *TRAIN)

    rules = place.run.facts['rules']
    [timer] = [rule for rule in rules if rule['kind'] == 'timer']
    [logger] = [rule for rule in rules if rule['kind'] == 'logger']
    assert timer['labels'] == ['rollout']
    assert logger['keys'] == [['reward'], ['tokens']]


def test_labels_and_metric_keys_that_were_renamed_are_told(place: Place):
    trainer = (place.cwd / 'trainer.py').read_text()
    place.write({'trainer.py': trainer.replace('time("rollout")', 'time("generate")').replace('"tokens"', '"count"')})

    said = summary(place.lens(*TRAIN))

    assert 'never seen: label rollout (trainer:Timer.time), metric tokens (trainer:Logger.log_metrics)' in said
    assert place.run.names() == {'job', 'step', 'score', 'update'}
    [timer] = [rule for rule in place.run.facts['rules'] if rule['kind'] == 'timer']
    assert sorted(timer['seen']) == ['step', 'update']

    assert 'label rollout' not in summary(place.lens('--span-groups', 'job,step', *TRAIN))  # it is not selected


def test_a_rule_called_from_elsewhere_only_is_told_so(place: Place):
    rules = (place.cwd / 'lens.yaml').read_text()
    place.write({'lens.yaml': rules.replace('  group: reward\n', '  group: reward\n  only_from: [elsewhere]\n')})

    said = summary(place.lens(*TRAIN))

    assert 'score: called 3 times, none recorded: outside only_from, or no listed label or metric key' in said
    [score] = [rule for rule in place.run.facts['rules'] if rule['name'] == 'score']
    assert (score['calls'], score['filtered'], score['spans']) == (3, 3, 0)
