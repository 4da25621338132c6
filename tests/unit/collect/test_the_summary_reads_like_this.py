# SPDX-License-Identifier: Apache-2.0
"""The summary as a user sees it."""

from __future__ import annotations

import marshal
import os
import pty

import pytest

from lens_auto.collect.distribution import Distribution, quantile, spread
from lens_auto.collect.figures import percent, shortened, time, value
from lens_auto.collect.intake import Intake
from lens_auto.collect.look import Look, look_of
from lens_auto.collect.summary import render, render_part
from lens_auto.collect.totals import ProcessRow, RuleRow, Totals, filled, merge
from tests.unit.collect.story import MS, Story, grpo

PLAIN = Look(width=100, color=False, unicode=False)


def test_a_finished_run() -> None:
    text = render(grpo().totals(groups_off=['generation', 'refit']), PLAIN)
    assert (
        text
        == """\
lens-auto  run grpo-41  6.00 s  exit 0

span                                              count     total     mean      p50      p95 of step
rl.grpo.job                                           1    6.00 s   6.00 s
`- rl.grpo.step                                       3    6.00 s   2.00 s   2.00 s   2.09 s 100.0 %
   |- rl.rollout                                      3    3.30 s   1.10 s   1.10 s   1.19 s  55.0 %
   |- rl.policy_update                                3    1.80 s   600 ms   600 ms   600 ms  30.0 %
   |- rl.wait                                         3    600 ms   200 ms   200 ms   200 ms  10.0 %
   |- rl.reward (1 failed)                            3    150 ms  50.0 ms  50.0 ms  50.0 ms   2.5 %
   `- idle                                                 750 ms                             12.5 %

metrics   rl.reward.mean  0.1 -> 0.7
          rl.tokens       12,288 {token} in all

off       span groups not selected: generation, refit

16 spans from 1 of 1 process, 6 metric points
folder  lens-runs/grpo-41
"""
    )


def test_a_run_without_rules_is_told_where_they_come_from() -> None:
    text = render(Totals(run_id='x', folder='lens-runs/x', complete=True), PLAIN)
    assert 'no rule file is active' in text
    assert '--rules' in text and 'docs/writing_rules.md' in text
    traces_off = Totals(settings={'traces_enabled': [False, 'LENS_TRACES_ENABLED=0']}, rules=[RuleRow('a')])
    assert 'traces_enabled is off: LENS_TRACES_ENABLED=0' in render(traces_off, PLAIN)


def test_ranks_that_work_apart_and_one_that_is_slow() -> None:
    story = Story()
    for rank, slow in ((0, 1.0), (1, 1.02), (2, 1.5), (3, 1.0)):
        member = story.member(rank)
        for _ in range(2):
            number, start = story.open(member, 'train.step', story.run.root_span_id, 'step'), story.at
            story.span(member, 'forward', number, 100 * slow)
            story.span(member, 'backward', number, 300)
            story.end(member, number, 'train.step', story.run.root_span_id, start, items={'lens.group': 'step'})
    text = render(story.totals(), PLAIN)
    assert (
        text
        == """\
lens-auto  run grpo-41  3.30 s  exit 0

span                                              count     total     mean      p50      p95 of step
train.step                                            8    3.30 s   413 ms   401 ms   450 ms 100.0 %
|- backward                                           8    2.40 s   300 ms   300 ms   300 ms  72.6 %
|- forward                                            8    904 ms   113 ms   101 ms   150 ms  27.4 %
`- idle                                                      0 ns                              0.0 %

longest   train.step  rank 2: 450 ms on average, 1.12 x the median of 4 processes
          forward     rank 2: 150 ms on average, 1.49 x the median of 4 processes
          waits for others included: lens-report says who is slow by itself

24 spans from 4 of 4 processes
folder  lens-runs/grpo-41
"""
    )


def test_nothing_recorded_is_said_aloud_with_the_reasons() -> None:
    totals = Totals(run_id='x', folder='lens-runs/x', ended_ns=2 * MS, exit_code=1, complete=True)
    totals.processes = [
        filled(ProcessRow('node', 1, 1), {'outcome': 'armed', 'command': 'train.py'}),
        filled(
            ProcessRow('node', 2, 1),
            {'outcome': 'stood_down', 'reason': 'Python 3.7 is not supported', 'command': 'old.py'},
        ),
    ]
    totals.rules = [
        filled(RuleRow('a', 'function', 'job', 'rl.grpo.job'), {'missing': {'trl 0.9 has no `GRPOTrainer.train`': 1}}),
        filled(RuleRow('b', 'function', 'step', 'rl.grpo.step'), {'targets': ['trl.grpo:step', 'trl.new:step']}),
        filled(RuleRow('c', 'function', 'step', 'rl.evaluate'), {'processes': 1}),
        RuleRow('d', 'function', 'refit', 'rl.refit', on=False),
        filled(RuleRow('e', 'function', 'step', 'rl.verl.step', '/opt/rules/verl.yaml:3'), {'targets': ['verl.t:fit']}),
    ]
    totals.settings = {'export_strategy': ['all_ranks', 'default'], 'enabled': [True, '']}
    assert (
        render(totals, PLAIN)
        == """\
lens-auto  run x  2.00 ms  exit 1

0 spans recorded
  old.py 2 stood down: Python 3.7 is not supported
  1 rule matched, but what they hook was never called:
    rl.evaluate
  matched nothing (trl 0.9 has no `GRPOTrainer.train`): rl.grpo.job
  matched nothing (no process imported trl.grpo, trl.new): rl.grpo.step
  verl.yaml (1 rule): no process imported verl.t
  not selected (span group refit): rl.refit

0 spans from 0 of 1 process (1 stood down: Python 3.7 is not supported)
folder  lens-runs/x
"""
    )


def test_what_was_lost_cut_short_or_not_sent_is_told() -> None:
    story = grpo(1)
    driver = story.members[0]
    story.open(driver, 'rl.checkpoint', story.run.root_span_id)
    story.intake.cut_short(driver)
    totals = story.totals(unsent={'spans': 7, 'points': 1}, notes=['sending to http://backend:4317 failed: refused'])
    totals.complete, totals.dropped, totals.signal, totals.exit_code = False, {'no room': 12}, 9, None
    totals.faults = {'KeyError in wrapper exit': 2}
    text = render(totals, PLAIN)
    assert 'killed by signal 9' in text
    assert 'rl.checkpoint (1 cut short)' in text
    assert (
        text[text.index('off  ') :]
        == """\
off       1 span cut short by the end of their process
          12 records dropped: no room
          fault in lens-auto: KeyError in wrapper exit, 2 times

7 spans from 1 of 1 process, 2 metric points
not sent: 7 spans and 1 point; kept in the folder, from where --replay sends
sending to http://backend:4317 failed: refused
folder  lens-runs/grpo-41
"""
    )


def test_points_without_labels_and_records_nobody_can_read_are_counted() -> None:
    totals = grpo(1).totals()
    totals.counts |= {'overflowed': 1200, 'damaged': 1, 'foreign': 1, 'not_numbers': 1, 'not_printed': 2}
    text = render(totals, PLAIN)
    assert '1 metric point left out: the value is no finite number\n' in text
    assert '1,200 metric points counted without labels: too many label sets\n' in text
    assert '1 record could not be read\n' in text
    assert '2 console lines could not be printed\n' in text
    assert 'journals of another version or user were left alone\n' in text


def test_of_many_metrics_those_people_look_for_come_first() -> None:
    story = Story()
    driver = story.member()
    story.span(driver, 'rl.step', story.run.root_span_id, 1)
    names = [f'time/{number}' for number in range(6)]
    names += ['score_of_losses', 'kl', 'val.accuracy', 'train/loss', 'closs', 'rl.reward.mean', 'policy_entropy']
    for name in names:
        story.intake.take(driver, (3, story.at, name, 'gauge', 's', 1, None, 'r', b'', b''))
    section = render(story.totals(), PLAIN).partition('metrics   ')[2].partition('\n\n')[0]
    assert [line.split()[0] for line in section.splitlines()] == [
        *('rl.reward.mean', 'train/loss', 'val.accuracy', 'kl', 'policy_entropy', 'score_of_losses'),
        *('time/0', 'time/1', '5'),
    ]
    assert section.endswith('5 more in the run folder')


def test_a_long_reason_is_cut_at_the_end_of_a_word() -> None:
    said = 'Failed to export traces to backend:4317, error code: StatusCode.UNAVAILABLE'
    assert shortened(said, 200) == said
    assert shortened(said, 66) == 'Failed to export traces to backend:4317, error code…'
    assert shortened('x' * 300, 200) == 'x' * 199 + '…'
    assert not [most for most in range(50, 70) if len(shortened(said, most)) > most]


def test_a_child_that_is_told_before_its_parent_finds_its_place() -> None:
    story = Story()
    driver = story.member()
    # Neither parent announces: each is known only when it ends, after its children.
    story.at = 10 * MS
    story.end(driver, 3, 'leaf', 2, 8 * MS)
    story.end(driver, 2, 'branch', 1, 5 * MS)
    story.end(driver, 1, 'tree', story.run.root_span_id, 0)
    assert [row.path for row in story.totals().spans] == [['tree'], ['tree', 'branch'], ['tree', 'branch', 'leaf']]


def test_recursion_is_one_row_however_deep() -> None:
    story = Story()
    driver = story.member()
    for number in range(5000, 0, -1):
        story.at = 10_000 * MS - number
        story.end(driver, number, 'visit', number - 1, number)
    (row,) = story.totals().spans
    assert (row.path, row.count) == (['visit'], 5000)


def test_a_checkpoint_in_the_middle_changes_nothing() -> None:
    story = grpo(2)
    story.open(story.members[0], 'rl.grpo.job', 0)
    story.end(story.members[0], 5000, 'orphan', 4999, story.at - MS)
    told = story.totals()
    kept = marshal.loads(marshal.dumps(story.intake.dump(), 2))
    story.intake = Intake(story.run, {}, {}, prints=False)
    story.intake.load(kept)
    again = story.totals()
    was, now = told.to_json(), again.to_json()
    for plain in (was, now):
        plain['spans'].sort(key=lambda row: row['path'])
    assert [now[name] for name in ('spans', 'metrics', 'rules', 'counts')] == [
        was[name] for name in ('spans', 'metrics', 'rules', 'counts')
    ]


def test_a_table_of_many_names_stays_a_table() -> None:
    story = Story()
    driver = story.member()
    for number in range(3000):
        story.span(driver, f'span.{number}', story.run.root_span_id, 1)
    text = render(story.totals(), PLAIN)
    assert len(text.splitlines()) < 60
    assert max(map(len, text.splitlines())) <= 100


def test_parts_of_a_run_are_merged_by_place() -> None:
    parts = [grpo(2).totals(launcher='a'), grpo(3).totals(launcher='b', creator=False)]
    whole = Totals.from_json(merge(parts).to_json())
    rollout = next(row for row in whole.spans if row.path[-1] == 'rl.rollout')
    assert (rollout.count, rollout.least, rollout.most) == (5, 1000 * MS, 1200 * MS)
    assert rollout.path == ['rl.grpo.job', 'rl.grpo.step', 'rl.rollout']
    assert 'rl.grpo.step                                       5' in render(whole, PLAIN)


def test_a_launcher_that_is_not_the_last_says_one_line() -> None:
    text = render_part(Totals(role='rank 3', folder='lens-runs/x', counts={'spans': 12}))
    assert text == 'lens-auto: rank 3 is done (12 spans); the last launcher of the run draws the summary: lens-runs/x\n'


def test_bold_and_boxes_are_for_terminals_that_have_them() -> None:
    outer, inner = pty.openpty()
    reader, writer = os.pipe()
    try:
        utf8 = {'TERM': 'xterm', 'LANG': 'en_US.UTF-8'}
        assert look_of(inner, utf8, 'utf-8').color
        assert not look_of(inner, {**utf8, 'NO_COLOR': '1'}, 'utf-8').color
        piped = look_of(writer, utf8, 'utf-8')
        assert (piped.width, piped.color, piped.unicode) == (100, False, True)
        assert not look_of(writer, utf8, 'ascii').unicode
    finally:
        for fd in (outer, inner, reader, writer):
            os.close(fd)
    text = render(grpo().totals(), Look(100, True, True))
    assert '└─ \x1b[0m\x1b[1mrl.grpo.step' in text
    assert '\x1b' not in render(grpo().totals(), PLAIN)


@pytest.mark.parametrize(
    ('environ', 'unicode'),
    [
        ({'LANG': 'de_DE.UTF-8'}, True),
        ({'LANG': 'C.utf8'}, True),
        ({'LANG': 'C', 'LC_ALL': 'en_US.UTF-8'}, True),
        ({'LANG': 'en_US', 'LC_CTYPE': 'sr_RS.UTF-8@latin'}, True),
        ({}, False),
        ({'LANG': 'C'}, False),
        ({'LANG': 'en_US.UTF-8', 'LC_ALL': 'C'}, False),
        ({'LANG': 'en_US.UTF-8', 'LC_ALL': 'POSIX'}, False),
        ({'LANG': 'de_DE.ISO-8859-15@euro'}, False),
        ({'LANG': 'C', 'LC_CTYPE': 'C.UTF-8'}, False),  # Python wrote it
    ],
    ids=str,
)
def test_the_tree_is_ascii_where_the_locale_has_no_other(environ: dict[str, str], unicode: bool) -> None:
    outer, inner = pty.openpty()
    reader, writer = os.pipe()
    try:
        looks = [look_of(fd, environ, 'utf-8') for fd in (inner, writer)]
    finally:
        for fd in (outer, inner, reader, writer):
            os.close(fd)
    assert [look.unicode for look in looks] == [unicode] * 2
    totals = grpo().totals(notes=['sending failed: the backend …'])
    for look in looks:
        text = render(totals, look)
        assert text.isascii() is not unicode
        assert ('0.1 → 0.7' if unicode else '0.1 -> 0.7') in text
        assert ('└─ ' if unicode else '`- ') in text


def test_a_name_that_no_encoding_holds_does_not_cost_the_summary() -> None:
    story = Story()
    story.span(story.member(), 'ro\ud800ll', story.run.root_span_id, 5)
    text = render(story.totals(), PLAIN)
    assert 'ro\\ud800ll' in text and text.encode('utf-8')
    folder = 'lens-runs/caf\udce9'
    assert folder in render(Totals(folder=folder), PLAIN)  # bytes of a file name, as the launcher writes them


def test_durations_and_values_are_short() -> None:
    assert [time(ns) for ns in (0, 950, 12_345, 3 * MS, 1500 * MS, 61_000 * MS, 7_500_000 * MS)] == [
        *('0 ns', '950 ns', '12.3 us', '3.00 ms', '1.50 s', '1 m 01 s', '2 h 05 m'),
    ]
    assert [value(item) for item in (0.1234567, 12288, 1e-7, float('nan'), -3.0)] == [
        *('0.1235', '12,288', '1e-07', 'nan', '-3'),
    ]
    assert percent(0.4567) == '45.7 %'


def test_percentiles_are_exact_up_to_some_thousands_and_bounded_beyond() -> None:
    few, many = Distribution(), Distribution()
    for number in range(1, 2001):
        few.add(number)
    for number in range(1, 100_001):
        many.add(number)
    assert (few.quantile(0.5), few.quantile(0.95)) == (1000.5, 1900.05)
    assert len(many.sample) == 2048
    assert abs(many.quantile(0.5) - 50_000) < 4_000
    assert (many.count, many.total, many.least, many.most) == (100_000, 5_000_050_000, 1, 100_000)
    assert quantile([], 0.5) == 0.0
    assert spread(range(100), 5) == [0, 25, 50, 74, 99]
