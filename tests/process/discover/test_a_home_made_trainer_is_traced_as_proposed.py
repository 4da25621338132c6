# SPDX-License-Identifier: Apache-2.0
"""A trainer by somebody who had not seen `lens-rules discover`: what is proposed for it passes check, and gives steps.

`home_made/` holds it as it was handed over; `.txt`, so that nobody tidies it up.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers.run import SCRIPTS, Place

HOME_MADE = Path(__file__).parent / 'home_made'
RULES = str(SCRIPTS / 'lens-rules')

pytest.importorskip('torch')


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A working directory with the trainer, and with the proposed file as the `lens.yaml` beside it."""
    place = Place(tmp_path_factory.mktemp('home_made'))
    for path in HOME_MADE.rglob('*.txt'):
        copy = place.cwd / path.relative_to(HOME_MADE).with_suffix('')
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    done = place.plain(RULES, 'discover', '.', '-o', 'lens.yaml')
    assert done.code == 0, done.stderr
    return place


def test_what_an_engineer_would_have_hooked_is_proposed(place: Place) -> None:
    read = yaml.safe_load((place.cwd / 'lens.yaml').read_text())
    said = {(rule['kind'], rule.get('target') or rule.get('with'), rule.get('match')) for rule in read['rules']}
    assert said == {
        ('function', 'train.py:main', None),
        ('loop', 'train.py:main', 'for step in range($$$):'),
        ('timer', 'tinyrl.utils:Stopwatch.__call__', None),
        ('loop', 'train.py:main', 'for ep in range($$$):'),
        ('call', 'train.py:main', 'torch.save($$$)'),
        ('function', 'train.py:compute_rewards', None),
        ('function', 'train.py:group_advantages', None),
        ('function', 'train.py:evaluate', None),
        ('logger', 'tinyrl.utils:MetricsLogger.add', None),
        ('logger', 'tinyrl.utils:MetricsLogger.log', None),
    }
    [timer] = [rule for rule in read['rules'] if rule['kind'] == 'timer']
    assert {label: value['group'] for label, value in timer['labels'].items()} == {
        'rollout': 'rollout',
        'ref': 'reference_policy',
        'fwd_bwd': 'forward_backward',
    }


def test_the_proposed_file_passes_check(place: Place) -> None:
    done = place.plain(RULES, 'check', 'lens.yaml')
    assert done.code == 0, done.stdout + done.stderr
    assert '10 rules: 10 matched' in done.stdout


def test_the_run_has_steps_with_their_phases(place: Place) -> None:
    arguments = ('--steps', '2', '--warmup-sft', '5', '--eval-every', '2', '--save-every', '2', '--epochs', '1')
    run = place.record('--span-groups', 'all', sys.executable, 'train.py', *arguments)
    spans = {span.id: span for span in run.spans}
    steps = run.named('rl.tinyrl.step')
    assert [step.attributes['rl.iteration'] for step in steps] == [1, 2]
    inside = [[span.name for span in spans.values() if span.parent == step.id] for step in steps]
    first = ['rollout', 'compute_rewards', 'group_advantages', 'ref', 'policy_update']
    assert inside[0] == [f'rl.tinyrl.{name}' for name in first]
    assert inside[1] == [f'rl.tinyrl.{name}' for name in (*first, 'evaluate', 'save_checkpoint')]
    updates = {span.id for span in run.named('rl.tinyrl.policy_update')}
    assert {span.parent for span in run.named('rl.tinyrl.fwd_bwd')} == updates
    assert {'rl.reward.mean', 'rl.policy_loss', 'rl.kl_divergence', 'rl.grad_norm'} <= run.metric_names()
    assert not run.facts['faults']
