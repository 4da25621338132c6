# SPDX-License-Identifier: Apache-2.0
"""`wait` shows what a driver waits for, `remote` what it submits; what no group needs has Ray's own code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.helpers.ray_program import RayPlace, Traced, answers, rules_text
from tests.helpers.run import Span

pytestmark = pytest.mark.timeout(300)

RULES = rules_text({'waiting': 'waits:waiting', 'step': 'waits:Worker.step', 'score': 'waits:score'})
SUBMITTING = ['ActorHandle._actor_method_call', 'ActorClass._remote', 'RemoteFunction._remote']


def run(new_place: Callable[..., RayPlace], groups: str, **env: str) -> Traced:
    traced = new_place('waits.py').write({'rules.yaml': RULES}).traced('waits.py', groups=groups, env=env)
    assert traced.done.code == 0, traced.done.stderr[-3000:]
    return traced


def below(traced: Traced, above: str) -> list[Span]:
    return [span for span in traced.spans if traced.above(span) == above]


def test_every_wait_says_how_many_refs_and_of_what(new_place: Callable[..., RayPlace]) -> None:
    traced = run(new_place, 'rollout,wait')
    waits = [
        (span.name, span.attributes['ray.refs'], span.attributes['ray.method'], span.error)
        for span in below(traced, 'waiting')
        if span.name.startswith('ray.')
    ]
    assert waits == [
        ('ray.wait Worker.step', 3, 'Worker.step', False),
        ('ray.get Worker.step', 3, 'Worker.step', False),
        ('ray.get score', 1, 'score', False),
        ('ray.get Worker.fails', 1, 'Worker.fails', True),
    ]
    # The work is under who called for it, not under who waits for it.
    work = [span.name for span in below(traced, 'waiting') if not span.name.startswith('ray.')]
    assert work == ['step'] * 3 + ['score']
    assert answers(traced.done.stdout)[0]['ours'] == [*SUBMITTING, 'get', 'wait']


def test_a_submitted_call_is_a_span_with_the_work_below(new_place: Callable[..., RayPlace]) -> None:
    traced = run(new_place, 'rollout,remote')
    submitted = [span for span in below(traced, 'waiting') if span.name.endswith('.remote')]
    assert [span.name for span in submitted] == ['Worker.step.remote'] * 3 + ['score.remote', 'Worker.fails.remote']
    assert [span.attributes['ray.method'] for span in submitted[3:]] == ['score', 'Worker.fails']
    steps = [span.parent for span in traced.spans if span.name == 'step']
    assert steps == [span.id for span in submitted[:3]]
    assert [traced.above(span) for span in traced.spans if span.name == 'score'] == ['score.remote']


def test_neither_is_there_unless_asked_for(new_place: Callable[..., RayPlace]) -> None:
    traced = run(new_place, 'rollout')
    assert {span.name for span in traced.spans} == {'lens.run', 'waiting', 'step', 'score'}
    # `ray.get`, `ray.wait` and `.remote` itself are Ray's; what tells us the task of a call is one step further in.
    assert answers(traced.done.stdout)[0]['ours'] == SUBMITTING


def test_with_no_span_to_record_all_of_ray_has_its_own_code(new_place: Callable[..., RayPlace]) -> None:
    traced = run(new_place, 'rollout', LENS_TRACES_ENABLED='0')
    assert answers(traced.done.stdout)[0]['ours'] == []
    assert {span.name for span in traced.spans} <= {'lens.run'}
