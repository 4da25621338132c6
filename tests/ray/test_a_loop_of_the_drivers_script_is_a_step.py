# SPDX-License-Identifier: Apache-2.0
"""A Ray driver with its loop, actors and tasks in the script: steps in the driver, loops inside the workers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.helpers.ray_program import RayPlace, answers

SCRIPT = 'rollout_driver.py'
GROUPS = 'job,step,generation,policy_update,reward'
RULES = """
framework: rollout_driver
rules:
- kind: loop
  target: rollout_driver.py:main
  match: "for $i in range($_):"
  group: step
  name: rl.step
  attributes: {rl.iteration: match.i}
- {kind: loop, target: "rollout_driver.py:Trainer.train", match: "for $_ in $_:", group: policy_update, name: rl.token}
- {kind: loop, target: "rollout_driver.py:generate", match: "for $_ in $_:", group: generation, name: rl.prompt}
- {kind: loop, target: "rollout_driver.py:Late.score", match: "for each in $_:", group: reward, name: rl.each}
- {kind: function, target: "rollout_driver.py:Trainer.train", group: policy_update, name: rl.train}
- {kind: function, target: "rollout_driver.py:generate", group: generation, name: rl.generate}
- {kind: function, target: "rollout_driver.py:Late.score", group: reward, name: rl.score}
- {kind: function, target: "rollout_driver.py:reward", group: reward, name: rl.reward}
- {kind: call, target: "rollout_driver.py:main", match: ray.shutdown(), group: job, name: rl.shutdown}
"""
STEP = """\
rl.step rl.iteration={}
  rl.generate
    rl.prompt
    rl.prompt
  rl.train
    rl.token
    rl.token
  rl.score
    rl.each
    rl.each
  rl.reward"""


@pytest.mark.slow
def test_it_trains_as_without_us_and_each_step_has_its_work(new_place: Callable[..., RayPlace]) -> None:
    place = new_place(SCRIPT).write({'rules.yaml': RULES})
    plain = place.without(SCRIPT)
    traced = place.traced(SCRIPT, groups=GROUPS)
    assert (traced.done.code, answers(traced.done.stdout)) == (plain.code, answers(plain.stdout)), traced.done.stderr
    assert plain.code == 5
    shown = '\n'.join(line[2:] for line in traced.run.tree('rl.iteration').splitlines()[1:])
    for iteration in (0, 1):
        assert STEP.format(iteration) in shown, shown
    assert shown.count('rl.shutdown') == 1
    assert len(traced.run.named('rl.train')) == 2


@pytest.mark.slow
def test_workers_without_us_run_what_the_driver_sends(new_place: Callable[..., RayPlace]) -> None:
    place = new_place(SCRIPT)
    text = (place.cwd / SCRIPT).read_text()
    (place.cwd / SCRIPT).write_text(
        text.replace('ray.init(', "ray.init(runtime_env={'env_vars': {'LENS_ENABLED': '0'}}, ")
    )
    place.write({'rules.yaml': RULES})
    traced = place.traced(SCRIPT, groups=GROUPS)
    assert traced.done.code == 5, traced.done.stderr
    assert [answer['loss'] for answer in answers(traced.done.stdout)] == [2, 2]
    assert traced.run.names() == {'rl.step', 'rl.reward', 'rl.shutdown'}
