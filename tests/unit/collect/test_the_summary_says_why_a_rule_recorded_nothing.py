# SPDX-License-Identifier: Apache-2.0
"""A rule that recorded nothing, or not all it names, is told with the reason that is true of this run."""

from __future__ import annotations

from typing import Any

import pytest

from lens_auto.collect.ledger import Ledger
from lens_auto.collect.look import Look
from lens_auto.collect.summary import render
from lens_auto.collect.totals import Totals, merge
from tests.unit.collect.journals import Lab
from tests.unit.collect.story import MS, Story

PLAIN = Look(width=200, unicode=False)
RULES: list[dict[str, Any]] = [
    {'key': 'step', 'kind': 'function', 'group': 'step', 'name': 'rl.step', 'where': 'lens.yaml:3'},
    {'key': 'timer', 'kind': 'timer', 'name': 'Timer.time', 'where': 'lens.yaml:9', 'labels': ['rollout', 'renamed']},
    {
        **{'key': 'log', 'kind': 'logger', 'name': 'Logger.log', 'where': 'lens.yaml:20'},
        'keys': [['reward', 'rewards'], ['loss', 'train/loss']],
    },
    {'key': 'config', 'kind': 'resource', 'name': 'Config', 'where': 'lens.yaml:30', 'targets': ['trainer:Config']},
]


def told(recorded: bool = False, **settings: Any) -> Story:
    """A run whose driver has patched every rule, and recorded a step when asked to."""
    story = Story()
    story.intake.ledger.know_rules([{'targets': ['trainer:f'], **rule} for rule in RULES])
    driver = story.member()
    for rule in RULES:
        story.report(driver, 'patched', key=rule['key'], target='t', state='on')
    if recorded:
        story.span(driver, 'rl.step', story.run.root_span_id, 10)
    return story


def shown(story: Story, **settings: Any) -> tuple[str, Totals]:
    totals = story.totals(settings={name: [item, 'somewhere'] for name, item in settings.items()})
    return render(merge([totals]), PLAIN), totals


def row(totals: Totals, key: str) -> Any:
    return next(rule for rule in totals.rules if rule.key == key)


@pytest.mark.parametrize('recorded', [False, True])
@pytest.mark.parametrize('where', ['settings', 'own config'])
def test_rules_that_a_setting_switches_off_are_told_by_its_name(recorded: bool, where: str) -> None:
    story = told()
    if recorded:
        story.report(story.members[0], 'stats', log=[1, 1, 0, 5, 0, 0, 0])
    settings = {'traces_enabled': False}
    if where == 'own config':
        story.report(story.members[0], 'settings', **settings)
        settings = {}
    text, totals = shown(story, **settings)
    assert 'off by traces_enabled=false: rl.step, Timer.time\n' in text
    assert 'traces_enabled is off: ' in text
    assert 'no process imported' not in text
    uncalled = [] if recorded else ['Logger.log']
    assert text.partition('never called:\n')[2].partition('  off by')[0].split() == uncalled
    assert (row(totals, 'step').off, row(totals, 'log').off) == ('traces_enabled=false', '')


def test_metrics_that_are_off_are_told_beside_the_spans_there_are() -> None:
    story = told(recorded=True)
    story.report(story.members[0], 'stats', step=[1, 1, 0, 5, 0, 0, 0])
    text, _ = shown(story, metrics_enabled=False)
    assert 'off by metrics_enabled=false: Logger.log\n' in text
    assert 'Logger.log: called' not in text


def ranks(recording: set[int]) -> Story:
    story = Story()
    story.intake.ledger.know_rules([{'targets': ['trainer:f'], **rule} for rule in RULES])
    for rank in range(4):
        member = story.member(rank)
        if rank in recording:
            story.report(member, 'patched', key='step', target='t', state='on')
            story.span(member, 'rl.step', story.run.root_span_id, 10)
    return story


@pytest.mark.parametrize(
    ('settings', 'line'),
    [
        ({'export_strategy': 'single_rank', 'export_rank': -1}, 'only the last rank of each world records'),
        ({'export_strategy': 'single_rank', 'export_rank': 2}, 'only rank 2 of each world records'),
        ({'export_strategy': 'first_rank_per_node'}, 'only the first rank of each node records'),
        ({'export_strategy': 'sampled', 'export_sample_rate': 0.25}, 'only one rank in 4 records'),
        ({'export_strategy': 'all_ranks', 'sampler_enabled': True, 'export_sample_rate': 0.5}, 'one rank in 2 records'),
    ],
    ids=str,
)
@pytest.mark.parametrize('recording', [set[int](), {2}], ids=['none', 'one'])
def test_a_strategy_that_leaves_ranks_out_is_the_reason(
    settings: dict[str, Any], line: str, recording: set[int]
) -> None:
    text, _ = shown(ranks(recording), **settings)
    [found] = [one for one in text.splitlines() if one.endswith(line)]
    strategy = settings['export_strategy']
    assert (f'export_strategy {strategy}: ' if strategy != 'all_ranks' else 'sampler_enabled: ') in found
    assert 'no process imported' not in text
    every, _ = shown(ranks({0, 1, 2, 3}), **settings)
    assert 'records' not in every  # nobody was left out
    assert 'no process imported' not in every  # the file matched: its other modules are for another mode
    none, _ = shown(ranks(recording), export_strategy='all_ranks')
    assert 'export_strategy' not in none and ('no process imported trainer' in none) is (not recording)


def test_a_rule_that_was_called_in_vain_is_not_called_uncalled() -> None:
    story = told()
    story.report(story.members[0], 'stats', step=[3, 0, 0, 0, 0, 0, 3], timer=[0, 0, 0, 0, 0, 0, 0])
    text, totals = shown(story)
    assert '  rl.step: called 3 times, none recorded: outside only_from, or no listed label or metric key\n' in text
    uncalled = text.partition('never called:\n')[2].partition('  rl.step')[0].split()
    assert uncalled == ['Timer.time', 'Logger.log']
    assert row(totals, 'step').filtered == 3


def test_a_call_that_was_killed_or_over_its_budget_was_not_in_vain() -> None:
    story = told(recorded=True)
    story.report(story.members[0], 'stats', timer=[1, 0, 0, 0, 0, 0, 0], log=[5, 0, 0, 0, 5, 0, 0])
    text, _ = shown(story)
    assert 'none recorded' not in text
    assert 'calls over the budget of their rule, not recorded: Logger.log (5)\n' in text
    story.report(story.members[0], 'stats', timer=[2, 0, 0, 0, 0, 0, 2])
    assert 'Timer.time: called 2 times, none recorded: ' in shown(story)[0]


@pytest.mark.parametrize('length', [5, 6, 7])
def test_figures_of_older_journals_are_shorter(length: int) -> None:
    story = told(recorded=True)
    story.report(story.members[0], 'stats', step=[9, 4, 1, 77, 3, 2, 1][:length])
    text, totals = shown(story)
    step = row(totals, 'step')
    found = [step.calls, step.spans, step.errors, step.ns, step.over_budget, step.unread, step.filtered]
    assert found == ([9, 4, 1, 77, 3, 2, 1][:length] + [0, 0])[:7]
    assert ('attributes left out: rl.step (2)\n' in text) is (length > 5)
    assert 'calls over the budget of their rule, not recorded: rl.step (3)\n' in text


def test_labels_and_metric_keys_that_never_occurred_are_told() -> None:
    story = told(recorded=True)
    other = story.member()
    for member in (story.members[0], other):
        story.report(member, 'stats', timer=[5, 4, 0, 9, 0, 0, 1], log=[2, 2, 0, 0, 0, 0, 0])
    story.report(story.members[0], 'seen', timer=('rollout',), log=('train/loss',))
    text, totals = shown(story)
    assert 'never seen: label renamed (Timer.time), metric reward or rewards (Logger.log)\n' in text
    plain = Totals.from_json(totals.to_json())
    assert (row(plain, 'timer').seen, row(plain, 'timer').labels) == (['rollout'], ['rollout', 'renamed'])
    assert row(plain, 'step').seen is None
    story.report(other, 'seen', timer=('renamed',), log=('rewards',))
    assert 'never seen' not in shown(story)[0]


def test_a_label_of_a_phase_that_did_not_come_up_is_no_news() -> None:
    story = told(recorded=True)
    story.report(story.members[0], 'stats', timer=[4, 4, 0, 9, 0, 0, 0])
    story.report(story.members[0], 'seen', timer=('rollout',))
    assert 'never seen' not in shown(story)[0]  # the timer ran with no label but those it lists
    story.report(story.members[0], 'stats', timer=[5, 4, 0, 9, 0, 0, 1])
    assert 'never seen: label renamed (Timer.time)\n' in shown(story)[0]


def modes() -> Story:
    """A run that used one of two rules of a file, and nothing of a built-in one and of another the user named."""
    story = Story()
    story.intake.ledger.know_rules(
        [
            {**RULES[0], 'targets': ['tiny.trainer:fit']},
            {'key': 'actor', 'name': 'rl.actor', 'where': 'lens.yaml:9', 'targets': ['tiny.actors:Worker.run']},
            {'key': 'ray', 'name': 'ray.get', 'group': 'remote', 'where': 'ray.yaml:3', 'targets': ['ray:get']},
            {'key': 'mine', 'name': 'my.span', 'group': 'mine', 'where': 'mine.yaml:3', 'targets': ['my:f']},
        ]
    )
    driver = story.member()
    story.report(driver, 'patched', key='step', target='t', state='on')
    story.span(driver, 'rl.step', story.run.root_span_id, 10)
    return story


def test_what_a_file_has_for_another_mode_of_the_program_is_no_news() -> None:
    story = modes()
    totals = story.totals(groups_off=['remote'])
    assert '\noff ' not in render(totals, PLAIN)
    assert row(totals, 'actor').processes == 0
    totals = story.totals(groups_off=['remote', 'step'], named=['lens.yaml', 'mine.yaml'])
    assert 'off       span groups not selected: step\n' in render(totals, PLAIN)
    assert 'mine.yaml (1 rule): no process imported my\n' in render(totals, PLAIN)


def test_a_module_that_is_not_there_is_told_as_missing() -> None:
    story = modes()
    asked: list[str] = []

    def absent(module: str) -> str:
        asked.append(module)
        return 'tiny has no module actors'

    story.intake.ledger.look_for_modules(absent)
    text, totals = shown(story)
    assert 'matched nothing (tiny has no module actors): rl.actor\n' in text
    assert (asked, row(totals, 'actor').missing) == (['tiny.actors'], {'tiny has no module actors': 1})


def test_a_framework_that_is_not_here_is_no_news_because_of_its_rule_on_another_one() -> None:
    story = told(recorded=True)
    other = {'kind': 'annotate', 'group': 'setup', 'on': True}
    story.intake.ledger.know_rules(
        [
            {**other, 'key': 'theirs', 'name': 'ray:f', 'where': 'other.yaml:3', 'targets': ['ray:f']},
            {**other, 'key': 'own', 'name': 'other:g', 'where': 'other.yaml:9', 'targets': ['other:g']},
        ]
    )
    story.report(story.members[0], 'missing', key='theirs', target='', reason='other is not installed here')
    text, totals = shown(story)
    assert row(totals, 'theirs').missing == {'other is not installed here': 1}
    assert 'other' not in text
    totals.named.append('other.yaml')
    assert 'other is not installed here' in render(merge([totals]), PLAIN)


def test_what_never_occurred_is_the_union_over_launchers() -> None:
    parts: list[Totals] = []
    for label in ('rollout', 'renamed'):
        story = told(recorded=True)
        story.report(story.members[0], 'stats', timer=[5, 4, 0, 9, 0, 0, 1])
        story.report(story.members[0], 'seen', timer=(label,))
        parts.append(story.totals(launcher=label))
    assert 'never seen: label renamed (Timer.time)' in render(merge(parts[:1]), PLAIN)
    assert 'never seen' not in render(merge(parts), PLAIN)


def test_processes_that_stood_down_are_counted_with_the_reason() -> None:
    story = Story()
    for pid in (1, 2):
        story.intake.ledger.listed(
            'node', f'{pid}\t5\t3.9.1\tprocess\tstood_down\tpython 3.9 is not supported\ttrain.py'
        )
    story.intake.ledger.know_rules(RULES)
    text, _ = shown(story)
    assert '0 spans from 0 of 0 processes (2 stood down: python 3.9 is not supported)\n' in text
    assert 'no process imported' not in text


def test_a_step_without_recorded_phases_is_not_called_idle() -> None:
    story = Story()
    driver = story.member()
    number, start = story.open(driver, 'rl.step', story.run.root_span_id, 'step'), story.at
    story.at += 10 * MS
    story.end(driver, number, 'rl.step', story.run.root_span_id, start, items={'lens.group': 'step'})
    text, _ = shown(story)
    assert 'rl.step' in text and 'idle' not in text


def test_groups_that_the_programs_own_config_chose_count(lab: Lab) -> None:
    def select(groups: str, every: bool) -> tuple[list[dict[str, Any]], list[str]]:
        return [{**rule, 'on': rule.get('group') != 'step'} for rule in RULES], [f'step (not in {groups})']

    journal = lab.journal()
    journal.report('settings', span_groups='reward')
    reader = lab.collector(facts={'rules': RULES, 'groups_off': [], 'select': select})
    reader.start()
    totals = reader.finish(5.0)
    assert totals.groups_off == ['step (not in reward)']
    assert not row(totals, 'step').on
    assert 'not selected (span group step): rl.step' in reader.summary(PLAIN)


def test_a_rule_that_recorded_before_it_was_switched_off_was_on() -> None:
    ledger = Ledger()
    ledger.rule('step').spans = 2
    ledger.know_rules([{**RULES[0], 'on': False}])
    assert ledger.rule('step').on


def test_rules_of_a_file_that_seemed_to_be_of_no_use_are_known_once_one_of_them_shows_up() -> None:
    ledger = Ledger()
    asked: list[int] = []

    def others() -> list[dict[str, Any]]:
        asked.append(1)
        return [{**RULES[0], 'key': 'far'}, {**RULES[1], 'key': 'farther'}]

    ledger.know_rules(RULES)
    ledger.others = others
    assert ledger.rule('step').name == 'rl.step' and not asked
    assert ledger.rule('').name == '' and not asked  # what is recorded by hand
    assert ledger.rule('far').name == 'rl.step'
    assert ledger.rule('farther').labels == ['rollout', 'renamed']
    assert ledger.rule('unheard of').name == '' and asked == [1]


@pytest.mark.parametrize(('spans', 'said'), [(1, False), (0, True)])
def test_two_rules_on_one_timer_do_not_miss_each_others_labels(spans: int, said: bool) -> None:
    story = told(recorded=True)
    timer = {**RULES[1], 'targets': ['m:Timer.time']}
    other = {**timer, 'key': 'other', 'name': 'Timer.other', 'labels': ['elsewhere']}
    story.intake.ledger.know_rules([timer, other])
    driver = story.members[0]
    story.report(driver, 'patched', key='other', target='t', state='on')
    story.report(driver, 'seen', timer=['rollout', 'renamed'], other=[])
    story.report(driver, 'stats', timer=[3, spans, 0, 9, 0, 0, 1], other=[3, 0, 0, 0, 0, 0, 3])
    text, _ = shown(story)
    assert ('Timer.other: called 3 times, none recorded' in text) is said
    assert ('elsewhere' in text) is said
