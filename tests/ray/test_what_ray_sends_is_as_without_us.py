# SPDX-License-Identifier: Apache-2.0
"""Pickles and signatures of a program's classes and functions that no rule names are the same, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

from tests.helpers.ray_program import RayPlace, answers, rules_text

SCRIPT = 'drive_pickles.py'


def test_pickles_and_signatures_are_the_same(new_place: Callable[..., RayPlace]) -> None:
    place = new_place(SCRIPT, 'ruled.py').write({'rules.yaml': rules_text({'ruled': 'ruled:ruled'})})
    env = {'PYTHONHASHSEED': '0'}
    plain, again = (place.without(SCRIPT, env=env) for _ in range(2))
    traced = place.traced(SCRIPT, env=env)
    assert plain.code == 0, plain.stderr[-3000:]
    assert len(answers(plain.stdout)) == 9
    assert plain.stdout == again.stdout
    assert answers(traced.done.stdout) == answers(plain.stdout)
    assert len(traced.run.named('ruled')) == 1
