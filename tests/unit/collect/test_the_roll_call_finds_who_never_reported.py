# SPDX-License-Identifier: Apache-2.0
"""The roll-call over a process tree made by hand: who of the run never reported, and why."""

from __future__ import annotations

import ast
import os
import time
from pathlib import Path

import pytest

from lens_auto.collect import rollcall
from lens_auto.collect.ledger import Ledger
from lens_auto.collect.look import Look
from lens_auto.collect.rollcall import Rollcall
from lens_auto.collect.summary import render
from lens_auto.collect.totals import ProcessRow, Totals, filled, merge
from tests.unit.collect.story import Story

ROOT = Path(__file__).parents[3]
SPOOL = '/spool'
WORKER = '/venv/ray/_private/workers/default_worker.py'
OURS = f'PYTHONPATH={ROOT}/sitecustomize:/app'
OLD = 1


class Tree:
    """A folder that looks like /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = Ledger()
        self.rollcall = Rollcall(SPOOL, 'node', self.ledger, str(folder))

    def add(
        self,
        pid: int,
        *argv: str,
        environ: tuple[str, ...] = (OURS,),
        start: int = OLD,
        parent: int = 1,
        exe: str = '/usr/bin/python3.11',
        spool: str = SPOOL,
        stack: int | None = None,
    ) -> None:
        path = self.folder / str(pid)
        path.mkdir(exist_ok=True)
        (path / 'cmdline').write_bytes(b''.join(word.encode() + b'\0' for word in argv))
        items = (*environ, f'LENS_SPOOL={spool}', 'LENS_ENABLED=1')
        (path / 'environ').write_bytes(b''.join(item.encode() + b'\0' for item in items))
        fields = ['S', str(parent), *['0'] * 17, str(start), '0', '0', '0', '4096', '0', str(stack or pid * 4096)]
        (path / 'stat').write_text(f'{pid} (py (x) thon) {" ".join(fields)} 0 0\n')
        (path / 'exe').unlink(missing_ok=True)
        (path / 'exe').symlink_to(exe)

    def report(self, pid: int, outcome: str = 'armed', reason: str = '', program: str = 'train.py') -> None:
        self.ledger.listed('node', f'{pid}\t{OLD}\t3.11.7\tpython\t{outcome}\t{reason}\t{program}')

    def missed(self) -> dict[int, tuple[str, str]]:
        self.rollcall.look()
        self.rollcall.finish()
        rows = self.ledger.processes.values()
        return {row.pid: (row.role, row.reason) for row in rows if row.outcome == 'unreported'}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


REASONS = {
    'replaced': (('python', WORKER), ('PYTHONPATH=/elsewhere',), 'its PYTHONPATH was replaced'),
    'removed': (('python', WORKER), (), 'its PYTHONPATH was removed'),
    'isolated': (('python', '-I', WORKER), (OURS,), 'python runs isolated (-I)'),
    'no environment': (('python', '-uE', WORKER), (OURS,), 'python ignores PYTHONPATH (-E)'),
    'no site': (('python', '-X', 'utf8', '-S', WORKER), (OURS,), 'python runs without site (-S)'),
    'no sign why': (('python', WORKER), (OURS,), 'did not start our stage 1'),
    'named by ray': (('ray::IDLE',), (OURS,), 'did not start our stage 1'),
}


@pytest.mark.parametrize(('argv', 'environ', 'reason'), REASONS.values(), ids=REASONS)
def test_a_worker_that_never_reported(tree: Tree, argv: tuple[str, ...], environ: tuple[str, ...], reason: str) -> None:
    tree.add(10, *argv, environ=environ)
    assert tree.missed() == {10: ('worker', reason)}


def test_other_processes_count_apart_and_only_pythons_of_this_run(tree: Tree) -> None:
    tree.add(10, 'python', '-I', 'score.py')
    tree.add(11, 'bash', '-c', 'sleep 9', exe='/usr/bin/bash')
    tree.add(12, 'python', '-I', 'score.py', spool='/another')
    tree.add(13, 'raylet', exe='/venv/raylet')
    assert tree.missed() == {10: ('python', 'python runs isolated (-I)')}
    found = rollcall.counts(tree.ledger.processes.values())
    assert found['processes'] == {
        'seen': 1,
        'instrumented': 0,
        'not': [{'reason': 'python runs isolated (-I)', 'count': 1}],
    }
    assert found['workers']['seen'] == 0


HELPERS = (
    ('python', '-Im', 'pip', 'install', 'x'),
    ('python', '-c', 'from multiprocessing.resource_tracker import main;main(3)'),
    ('python', '/venv/ray/_private/log_monitor.py'),
    ('python', '/venv/ray/_private/workers/setup_worker.py', WORKER),
    ('ray::DashboardAgent',),
    ('ray::RuntimeEnvAgent',),
)


@pytest.mark.parametrize('argv', HELPERS, ids=lambda argv: argv[-1][-20:])
def test_helpers_are_not_missed_nor_what_installers_start(tree: Tree, argv: tuple[str, ...]) -> None:
    tree.add(10, *argv, environ=())
    assert tree.missed() == {}


def test_what_an_installer_starts_is_not_missed(tree: Tree) -> None:
    tree.add(10, 'python', '-m', 'pip', 'install', 'x')
    tree.add(11, 'python', '/tmp/_in_process.py', 'build_wheel', environ=(), parent=10)
    tree.add(12, 'python', 'setup.py', environ=(), parent=11)
    assert tree.missed() == {}


def test_a_fork_of_a_process_that_reported_is_what_its_parent_is(tree: Tree) -> None:
    tree.add(10, 'python', 'train.py')
    tree.report(10)
    tree.rollcall.step()
    tree.add(11, 'python', 'train.py', parent=10, stack=10 * 4096)
    tree.add(12, 'python', 'train.py', parent=10)
    assert set(tree.missed()) == {12}


def test_a_worker_that_only_its_setup_reported_for_is_missed(tree: Tree) -> None:
    tree.report(10, 'stood_down', 'helper: setup_worker.py', 'setup_worker.py')
    tree.report(11, 'stood_down', 'helper: setup_worker.py', 'setup_worker.py')
    tree.report(11, program='default_worker.py')
    for pid in (10, 11):
        tree.add(pid, 'python', WORKER, environ=('PYTHONPATH=/mine',))
    assert tree.missed() == {}  # it may still be starting
    tree.rollcall.look(time.monotonic() + 3)
    assert tree.missed() == {10: ('worker', 'its PYTHONPATH was replaced')}


def test_a_worker_whose_title_has_overwritten_the_environment_is_known_by_its_parent(tree: Tree) -> None:
    tree.add(10, 'raylet', exe='/venv/raylet')
    tree.add(11, 'ray::Trainer.step', parent=10)
    (tree.folder / '11' / 'environ').write_bytes(b'\0' * 60 + b'HOME=/root\0')
    assert tree.missed() == {11: ('worker', 'did not start our stage 1')}


def test_the_young_are_given_time_and_who_reports_late_counts(tree: Tree) -> None:
    now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf('SC_CLK_TCK'))
    tree.add(10, 'python', WORKER, start=now)
    assert tree.missed() == {}
    tree.rollcall.look(time.monotonic() + 3)
    assert set(tree.missed()) == {10}
    tree.ledger.listed('node', f'10\t{now}\t3.11.7\tpython\tarmed\t\tdefault_worker.py')
    assert tree.missed() == {}
    assert rollcall.counts(tree.ledger.processes.values())['workers'] == {'seen': 1, 'instrumented': 1, 'not': []}


def test_one_that_ended_without_a_line_is_missed(tree: Tree) -> None:
    now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf('SC_CLK_TCK'))
    tree.add(10, 'python', '-I', 'quick.py', start=now)
    assert tree.missed() == {}
    os.rename(tree.folder / '10', tree.folder / 'gone')
    assert tree.missed() == {10: ('python', 'python runs isolated (-I)')}


def test_the_helpers_are_those_of_stage_one() -> None:
    found: dict[str, tuple[str, ...]] = {}
    for node in ast.parse((ROOT / 'sitecustomize' / 'sitecustomize.py').read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Tuple):
            found[node.targets[0].id] = ast.literal_eval(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] += ast.literal_eval(node.value)
    ours = rollcall.MODULES, rollcall.COMMANDS, rollcall.PROGRAMS, rollcall.RAY_PROGRAMS
    assert (found['_MODULES'], found['_COMMANDS'], found['_PROGRAMS'], found['_RAY']) == ours


def rows(armed: int, *down: tuple[str, str]) -> list[ProcessRow]:
    told = [filled(ProcessRow('node', n, 1), {'role': 'worker', 'outcome': 'armed'}) for n in range(armed)]
    for n, (outcome, reason) in enumerate(down):
        told.append(filled(ProcessRow('node', 1000 + n, 1), {'role': 'worker', 'outcome': outcome, 'reason': reason}))
    return told


def test_the_summary_says_how_many_workers_are_instrumented() -> None:
    old = ('stood_down', 'python cpython 3.9 is not supported')
    parts = [Totals(launcher='a', processes=rows(14, old)), Totals(launcher='b', creator=False, processes=rows(0, old))]
    for part in parts:
        part.roll_call = rollcall.counts(part.processes)
    parts[1].roll_call['reach'] = {'workers': 'unreachable', 'reason': 'its runtime_env has a setup hook'}
    whole = Totals.from_json(merge(parts).to_json())
    assert whole.roll_call['workers'] == {
        'seen': 16,
        'instrumented': 14,
        'not': [{'reason': 'venv has Python 3.9', 'count': 2}],
    }
    text = render(whole, Look(width=100, color=False, unicode=False))
    assert '0 spans from 0 of 14 processes\n14 of 16 workers instrumented; 2: venv has Python 3.9\n' in text
    assert 'workers of the cluster are not instrumented: its runtime_env has a setup hook\n' in text


def test_ray_helpers_are_no_processes_of_the_run() -> None:
    ledger = Ledger()
    ledger.listed('node', '1\t1\t3.11.7\tpython\tarmed\t\ttrain.py')
    for pid, program in enumerate(rollcall.RAY_PROGRAMS, 2):
        ledger.listed('node', f'{pid}\t1\t3.11.7\tpython\tstood_down\thelper: {program}\t{program}')
    totals = Totals(processes=list(ledger.processes.values()))
    totals.roll_call = rollcall.counts(totals.processes)
    text = render(totals, Look(width=100, color=False, unicode=False))
    assert '0 spans from 0 of 1 process\n' in text and 'worker' not in text
    assert totals.roll_call['processes'] == {'seen': 1, 'instrumented': 1, 'not': []}


def test_a_report_of_the_driver_and_the_misses_survive_a_checkpoint() -> None:
    story = Story()
    story.report(story.member(), 'reach', workers='unreachable', reason='why')
    story.intake.ledger.missed(('node', 77, 1), 'worker', 'default_worker.py', 'its PYTHONPATH was removed')
    again = Ledger()
    again.load(story.intake.ledger.dump())
    assert again.reach == {'workers': 'unreachable', 'reason': 'why'}
    assert again.processes[77, 1].outcome == 'unreported'


def test_thirty_workers_are_told_apart() -> None:
    story = Story()
    for number in range(30):
        member = story.member()
        member.told = {'lens.role': 'worker', 'ray.actor.class': 'Generation', 'dl.rank': 0, 'dl.world_size': 1}
        if number % 2:
            member.told['ray.actor.name'] = f'gen-{number}'
        story.span(member, 'rl.rollout', story.run.root_span_id, 900 if number == 7 else 300)
    text = render(story.totals(), Look(width=100, color=False, unicode=False))
    assert 'rl.rollout  Generation/gen-7: 900 ms on average, 3.00 x the median of 30 processes\n' in text
    labels = {member.label for member in story.members}
    assert len(labels) == 30 and 'Generation 1' in labels
    story.members[0].told = {'lens.role': 'worker', 'ray.actor.class': 'Policy', 'dl.rank': 3, 'dl.world_size': 4}
    assert story.members[0].label == 'Policy rank 3'
