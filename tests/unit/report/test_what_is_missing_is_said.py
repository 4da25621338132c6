# SPDX-License-Identifier: Apache-2.0
"""The end of the overview: what was cut short, dropped, not instrumented, or no longer where a rule looks for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lens_auto.collect import runfile
from lens_auto.collect.totals import ProcessRow, RuleRow, Totals, filled
from lens_auto.report.cli import main
from tests.unit.report.planted import BEGIN, MS, Plant, synchronous

Told = Callable[..., list[str]]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """The sentences of the overview of a run, of which that is known; those of its JSON are the same."""
    monkeypatch.setenv('COLUMNS', '200')

    def tell(plant: Plant | None = None, **known: Any) -> list[str]:
        (tmp_path / '.run-key').write_text('id r\nattempt 0\nnonce 0\nstarted 1\njoin \nhost a\npid 1\n')
        (plant or synchronous(steps=4)).write(tmp_path)
        usual = {'run_id': 'r', 'complete': True, 'exit_code': 0, 'started_ns': BEGIN, 'ended_ns': BEGIN + 5000 * MS}
        runfile.write(str(tmp_path), Totals(**(usual | known)))
        assert main([str(tmp_path)]) == 0
        shown = capsys.readouterr().out.partition('\nto know\n')[2].partition('\n\n')[0]
        found = [line.strip() for line in shown.splitlines()]
        assert main(['overview', '--json', str(tmp_path)]) == 0
        assert json.loads(capsys.readouterr().out)['warnings'] == found
        return found

    return tell


def _rule(name: str, **more: Any) -> RuleRow:
    return filled(RuleRow(name, 'function', 'step', name, '/rules/trl.yaml:3'), more)


def test_of_a_whole_run_nothing(told: Told) -> None:
    done = filled(ProcessRow('node0', 1000, 1), {'role': 'driver', 'outcome': 'armed', 'spans': 30})
    assert told(processes=[done], rules=[_rule('rl.step', processes=1, calls=4, spans=4)]) == []


def test_truncated(told: Told) -> None:
    plant = synchronous(steps=4)
    for _ in range(3):
        plant.span(0, 'rl.grpo.generate', BEGIN, BEGIN + MS, error=True, lens__truncated=True)
    assert told(plant) == ['3 spans cut short by the end of their process (lens-report why)']


def test_dropped(told: Told) -> None:
    assert told(
        dropped={'the disk is full': 1200, 'a record is too long': 1},
        counts={'damaged': 2, 'not_numbers': 3},
        faults={'rl.step ValueError': 2},
        rules=[_rule('rl.rollout', processes=1, calls=900, spans=100, over_budget=800)],
    ) == [
        '1,200 records dropped: the disk is full',
        '1 record dropped: a record is too long',
        '3 metric points left out: the value is no finite number',
        '2 records could not be read',
        'fault in lens-auto: rl.step ValueError, 2 times',
        'calls over the budget of their rule, not recorded: rl.rollout (800)',
    ]


def test_uninstrumented(told: Told) -> None:
    rows = [
        filled(ProcessRow('node0', 1, 1), {'role': 'driver', 'outcome': 'armed', 'spans': 3}),
        *(
            filled(ProcessRow('node0', pid, 1), {'role': 'worker', 'outcome': 'unreported', 'reason': why})
            for pid, why in ((2, 'its PYTHONPATH was removed'), (3, 'its PYTHONPATH was removed'), (4, 'no reason'))
        ),
        filled(ProcessRow('node0', 5, 1), {'role': 'worker', 'outcome': 'armed', 'spans': 3}),
        filled(ProcessRow('node0', 6, 1), {'outcome': 'stood_down', 'reason': 'Python 3.7 is not supported'}),
    ]
    assert told(processes=rows, roll_call={'reach': {'workers': 'unreachable', 'reason': 'the cluster was there'}}) == [
        '3 of 4 workers not recorded: 2: its PYTHONPATH was removed; 1: no reason',
        '1 of 2 processes not recorded: 1: Python 3.7 is not supported',
        'workers of the cluster are not recorded: the cluster was there',
    ]


def test_drift(told: Told) -> None:
    rows = [
        _rule('rl.grpo.step', processes=1, calls=4, spans=4),
        _rule('rl.grpo.evaluate', missing={'trl.grpo_trainer has no `evaluate`': 1}),
        _rule('rl.grpo.refit', missing={'trl.grpo_trainer has no `sync_weights`': 1}),
        _rule('rl.timer', processes=1, calls=9, spans=9, filtered=4, labels=['gen', 'train'], seen=['train']),
    ]
    assert told(rules=rows) == [
        'matched nothing (trl.grpo_trainer has no `evaluate`): rl.grpo.evaluate',
        'matched nothing (trl.grpo_trainer has no `sync_weights`): rl.grpo.refit',
        'never seen: label gen (rl.timer)',
    ]


def test_what_was_not_sent_and_journals_that_are_not_merged(told: Told, tmp_path: Path) -> None:
    (tmp_path / 'journal' / 'node0').mkdir(parents=True)
    assert told(unsent={'spans': 7, 'points': 1}) == [
        f'journals are not merged: lens-instrument --replay {tmp_path} completes the folder',
        f'not sent: 7 spans and 1 point; lens-instrument --replay {tmp_path} sends them',
    ]


def test_clocks_duplicates_and_spans_without_the_one_around_them(told: Told) -> None:
    plant = synchronous(steps=4)
    plant.process(1, lens__role='worker', host__name='node1')
    phase = next(int(one['spanId'], 16) for one in plant.lines[0] if one['name'] == 'rl.grpo.collect_rollouts')
    ahead = 5000 * MS
    for _ in range(4):
        plant.span(1, 'rl.grpo.generate', BEGIN + 30 * MS + ahead, BEGIN + 460 * MS + ahead, phase)
    plant.span(1, 'rl.grpo.generate', BEGIN + ahead, BEGIN + MS + ahead, 0xABCDEF)
    plant.lines[0].append(dict(plant.lines[0][-1]))
    clock, *others = told(plant)
    assert clock.startswith('the clock of node1 was 4.99 s') and clock.endswith(' ahead; put right')
    assert others == [
        '1 span occurred twice and count once',
        '1 span without the span that encloses them: it was not recorded',
    ]


def test_more_than_a_screen_of_it_is_cut_and_said(told: Told) -> None:
    found = told(notes=[f'note {number}' for number in range(50)])
    assert (len(found), found[-1]) == (20, '31 more in run.json')
