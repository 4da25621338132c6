# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lens_auto.report.cli import main
from lens_auto.report.facts import facts
from lens_auto.report.folder import load
from lens_auto.report.live import stacks
from lens_auto.report.verdicts import verdicts
from tests.unit.collect.journals import MS, SECOND, Journal, Lab, Sleeper

REPOSITORY = Path(__file__).resolve().parents[3]
STEP = {'lens.group': 'step', 'rl.iteration': 1}
ROLLOUT = {'lens.group': 'per_prompt'}


def wedge(lab: Lab, pids: list[tuple[int, int]]) -> list[Journal]:
    """Asynchronous GRPO in which one rollout never returns: the buffer stops short, and everything waits."""
    who = [
        {'lens.role': 'driver'},
        {'lens.role': 'worker', 'ray.actor.class': 'Collector'},
        {'lens.role': 'worker', 'ray.actor.class': 'Gen', 'ray.actor.name': 'gen-0'},
        {'lens.role': 'worker', 'ray.actor.class': 'Gen', 'ray.actor.name': 'gen-1'},
    ]
    made = [lab.journal(told=told, pid=pid, start=start) for told, (pid, start) in zip(who, pids, strict=True)]
    driver, collector, first, second = made
    begin = driver.mono - 700 * SECOND
    ids = iter(range(100, 1000))
    for number in range(1, 6):  # five steps that are fine
        now = begin + number * 2 * SECOND
        step = next(ids)
        driver.end_span(step, 'rl.grpo.step', 2 * SECOND, items={**STEP, 'rl.iteration': number}, start=now)
        driver.end_span(next(ids), 'rl.grpo.policy_update', SECOND, parent=step, start=now + 900 * MS)
        for gen in (first, second):
            gen.end_span(next(ids), 'rl.grpo.rollout', SECOND, items=ROLLOUT, start=now)
    for journal in made:
        journal.now = begin + 100 * SECOND
    driver.open(1, 'rl.grpo.step', items={**STEP, 'rl.iteration': 6})
    driver.open(2, 'rl.idle.buffer_starvation', parent=1, items={'rl.bucket': 'idle', 'lens.group': 'efficiency'})
    driver.open(3, 'ray.wait Buffer.take', parent=2, items={'lens.group': 'wait'})
    collector.open(4, 'rl.grpo.collect_rollouts', items={'lens.group': 'rollout'})
    collector.open(5, 'ray.get Gen.generate', parent=4, items={'lens.group': 'wait'})
    second.open(6, 'rl.grpo.rollout', parent=4, items=ROLLOUT)
    return made


def _rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main([*arguments, '--json']) == 0
    return json.loads(capsys.readouterr().out)


def test_top_names_the_rollout_that_never_returns_while_the_run_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = Lab(tmp_path)
    lab.folder.register(lab.spool)
    sleepers = [Sleeper() for _ in range(4)]
    try:
        wedge(lab, [(one.pid, one.start) for one in sleepers])
        first, *others = _rows(capsys, 'top', lab.folder.path)
        assert (first['process'], first['names'], first['suspect']) == ('Gen/gen-1', ['rl.grpo.rollout'], True)
        assert (first['age'], first['longest']) == (pytest.approx(600 * SECOND, rel=0.01), SECOND)
        assert [one['age'] for one in others] == [pytest.approx(600 * SECOND, rel=0.01)] * 2
        assert {one['process']: one['waits'] for one in others} == {
            'driver': True,
            f'Collector {sleepers[1].pid}': True,
        }
        assert not any(one['suspect'] for one in others)
        assert main(['top', lab.folder.path]) == 0
        shown = capsys.readouterr().out
        assert 'SUSPECT' in shown and 'live' in shown
        assert main(['why', lab.folder.path]) == 0
        shown = capsys.readouterr().out
        assert 'the run goes on' in shown and 'open now' in shown
        run = load(lab.folder.path)
        (told,) = verdicts(facts(run.store, run.tree))
        assert told.name == 'stuck' and 'Gen/gen-1 has been in rl.grpo.rollout' in told.why
    finally:
        for one in sleepers:
            one.end()


@pytest.mark.parametrize('merged', [False, True])
def test_why_names_it_after_the_kill(tmp_path: Path, capsys: pytest.CaptureFixture[str], merged: bool) -> None:
    lab = Lab(tmp_path)
    sleepers = [Sleeper() for _ in range(4)]
    made = wedge(lab, [(one.pid, one.start) for one in sleepers])
    for journal in made:  # the last sign of life: somebody logged a metric
        journal.now = journal.mono - SECOND
    made[0].end_span(99, 'rl.grpo.heartbeat', MS)
    made[3].end_span(98, 'rl.grpo.heartbeat', MS)
    for one in sleepers:
        one.end()
    if merged:
        lab.collector(live=False).drain()
    first, *others = _rows(capsys, 'why', lab.folder.path)
    assert (first['process'], first['names'][-1], first['suspect']) == ('Gen/gen-1', 'rl.grpo.rollout', True)
    assert not any(one['suspect'] or one['alive'] for one in others)
    assert [one['age'] for one in (first, *others)] == [pytest.approx(600 * SECOND, rel=0.01)] * 3
    assert main(['why', lab.folder.path]) == 0
    shown = capsys.readouterr().out
    assert 'Gen/gen-1 was in rl.grpo.rollout for up to 10 m' in shown and 'open when their process ended' in shown
    assert 'goes on' not in shown


def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.folder.register(lab.spool)
    lab.journal().end_span(1, 'work')

    def everything() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in tmp_path.rglob('*') if path.is_file()}

    before = everything()
    assert len(load(lab.folder.path).store) == 1
    assert everything() == before


def test_what_the_collector_wrote_and_what_it_did_not_come_together_once(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.folder.register(lab.spool)
    sleeper = Sleeper()
    try:
        journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
        journal.open(1, 'rl.grpo.step', items=STEP)
        journal.end_span(2, 'rl.grpo.policy_update', parent=1)
        collector = lab.collector()
        collector.reading.round()
        assert collector.flush()
        journal.end_span(3, 'rl.grpo.policy_update', parent=1)  # after the checkpoint
        run = load(lab.folder.path)
        names = sorted(run.store.names[name] for name in run.tree.rows['name'])
        assert names == ['rl.grpo.policy_update', 'rl.grpo.policy_update', 'rl.grpo.step']
        assert len({one.label for one in run.store.processes}) == 1  # the same process in files and journals
        (stack,) = stacks(run)
        assert stack.names == ('rl.grpo.step',)
        assert run.live
    finally:
        sleeper.end()


def test_a_task_is_below_its_caller_also_before_the_collector_says_so(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.folder.register(lab.spool)
    caller, worker = lab.journal(), lab.journal(told={'lens.role': 'worker'}, start=2)
    caller.open(1, 'rl.grpo.step', items=STEP)
    caller.called(b'task', 1)
    worker.task(2, b'task')
    worker.end_span(2, 'rl.grpo.generate')
    run = load(lab.folder.path)
    inner = next(n for n, row in enumerate(run.tree.rows) if run.store.names[row['name']] == 'rl.grpo.generate')
    assert run.store.names[run.tree.rows['name'][run.tree.parent[inner]]] == 'rl.grpo.step'


def test_what_the_collector_has_read_is_not_read_again(tmp_path: Path) -> None:
    lab, sleeper = Lab(tmp_path), Sleeper()
    try:
        lab.folder.register(lab.spool)
        journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
        for number in (1, 2, 3):
            journal.end_span(number, 'rl.step')
        reader = lab.collector()
        reader.recover()
        reader.reading.round()
        assert reader.flush()
        read_until = journal.end
        for number in (4, 5):
            journal.end_span(number, 'rl.step')
        # Whoever looks at it again sees an end where it begins.
        with open(journal.path, 'r+b') as file:
            file.write(bytes(read_until))
        run = load(lab.folder.path)
        assert sorted(run.tree.rows['id'].tolist()) == [1, 2, 3, 4, 5]
        assert run.tree.duplicates == 0
    finally:
        sleeper.end()


def test_tail_tells_each_step_once_as_it_ends_an_object_a_line(tmp_path: Path) -> None:
    lab, sleeper = Lab(tmp_path), Sleeper()
    lab.folder.register(lab.spool)
    journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
    command = [sys.executable, '-m', 'lens_auto.report.cli', 'tail', '--json', '--every', '0.02', lab.folder.path]
    environ = {**os.environ, 'PYTHONPATH': str(REPOSITORY)}
    told: list[dict[str, Any]] = []

    def ends(number: int, seconds: int) -> None:
        journal.now += seconds * SECOND
        step = {**STEP, 'rl.iteration': number}
        journal.end_span(2 * number, 'rl.grpo.policy_update', seconds * SECOND // 2, parent=2 * number + 1)
        journal.end_span(2 * number + 1, 'rl.grpo.step', seconds * SECOND, items=step)

    ends(1, 10)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, cwd=tmp_path) as process:
        try:
            assert process.stdout is not None
            told.append(json.loads(process.stdout.readline()))
            journal.open(100, 'rl.grpo.step', items={**STEP, 'rl.iteration': 9})  # goes on: not told
            for number in (2, 3):
                ends(number, 10 * number)
                told.append(json.loads(process.stdout.readline()))
            sleeper.end()
            lab.folder.unregister()
            assert process.stdout.read() == ''
            assert process.wait(60) == 0
        finally:
            sleeper.end()
            process.kill()
    assert [(one['number'], one['duration']) for one in told] == [(n, 10 * n * SECOND) for n in (1, 2, 3)]
    assert [one['kinds'] for one in told] == [dict.fromkeys(('training', 'other'), 5 * n * SECOND) for n in (1, 2, 3)]


def test_journals_are_enough_where_the_run_folder_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab = Lab(tmp_path)
    sleepers = [Sleeper() for _ in range(4)]
    try:
        wedge(lab, [(one.pid, one.start) for one in sleepers])
        shutil.rmtree(lab.folder.path)
        first, *_ = _rows(capsys, 'top', lab.spool)
        assert (first['process'], first['suspect'], first['alive']) == ('Gen/gen-1', True, True)
        assert [one['number'] for one in _rows(capsys, 'steps', lab.spool)] == [1, 2, 3, 4, 5, 6]
    finally:
        for one in sleepers:
            one.end()
    first, *_ = _rows(capsys, 'why', lab.spool)
    assert (first['process'], first['suspect'], first['alive']) == ('Gen/gen-1', True, False)
    os.chmod(lab.spool, 0o755)  # somebody else may have put them there
    assert main(['why', lab.spool]) == 2
    assert 'open to nobody but you' in capsys.readouterr().err
