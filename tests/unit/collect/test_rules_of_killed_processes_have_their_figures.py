# SPDX-License-Identifier: Apache-2.0
"""A process tells what its rules did each second and at its end; one that is killed is counted by its records."""

from __future__ import annotations

import marshal
from typing import Any

from tests.unit.collect.journals import MS, Journal, Lab
from tests.unit.collect.story import Story

RULES: list[dict[str, Any]] = [
    {
        **{'key': 'rule', 'kind': 'timer', 'name': 'Timer.time', 'where': 'lens.yaml:9', 'targets': ['t:Timer.time']},
        **{'labels': ['rollout', 'update', 'save'], 'marks': {'rl.rollout': 'rollout', 'rl.update': 'update'}},
    },
    {'key': 'other', 'kind': 'function', 'name': 'other', 'where': 'lens.yaml:3', 'targets': ['t:other']},
]


def work(journal: Journal) -> None:
    for number, status in ((1, 0), (2, 2), (3, 0)):
        journal.end_span(number, 'rl.rollout', 2 * MS, status=status)
    journal.open(4, 'rl.update')


def figures(lab: Lab) -> dict[str, Any]:
    reader = lab.collector(facts={'rules': RULES})
    reader.start()
    rules = {rule['key']: rule for rule in reader.finish(5.0).to_json()['rules']}
    assert rules.keys() == {'rule', 'other'}
    assert (rules['other']['calls'], rules['other']['seen']) == (0, None)
    return rules['rule']


def test_a_process_that_told_nothing_is_counted_by_what_it_recorded(lab: Lab) -> None:
    work(lab.journal())
    work(lab.journal())
    rule = figures(lab)
    assert (rule['calls'], rule['spans'], rule['errors'], rule['ns']) == (8, 6, 2, 12 * MS)
    assert rule['seen'] == ['rollout', 'update']


def test_what_a_process_told_counts_where_it_is_more(lab: Lab) -> None:
    journal = lab.journal()
    journal.report('stats', rule=[9, 1, 0, MS, 4, 3, 1])
    journal.report('seen', rule=('save',))
    work(journal)
    rule = figures(lab)
    assert [rule[name] for name in ('calls', 'spans', 'errors', 'ns')] == [9, 3, 1, 6 * MS]
    assert [rule[name] for name in ('over_budget', 'unread', 'filtered')] == [4, 3, 1]
    assert rule['seen'] == ['save', 'rollout', 'update']


def test_points_count_as_what_was_recorded_and_not_as_calls(lab: Lab) -> None:
    journal = lab.journal()
    for value in (1.0, 2.0, 3.0):
        journal.point('rl.rollout', value)
    rule = figures(lab)
    assert (rule['calls'], rule['spans'], rule['errors'], rule['ns'], rule['seen']) == (1, 3, 0, 0, ['rollout'])


def test_a_collector_that_starts_anew_still_has_the_counts() -> None:
    story = Story()
    member = story.member()
    story.span(member, 'rl.rollout', 0, 2, status=2)
    plain: Any = marshal.loads(marshal.dumps(member.dump(), 2))
    again = Story().member()
    again.load(plain[1][1], *plain[2:])
    assert again.counted == {'r': [1, 1, 1, 2 * MS]}
