# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import csv
import json
import os
import pty
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lens_auto.report.cli import COMMANDS, main
from tests.unit.collect.journals import Lab
from tests.unit.report.planted import BEGIN, HEALTHY, MS, Plant, asynchronous, ranks, synchronous
from tests.unit.report.test_the_system_by_phase_process_and_gpu import planted

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('COLUMNS', '120')


@pytest.fixture
def run(tmp_path: Path) -> str:
    folder = tmp_path / 'planted'
    folder.mkdir()
    plant = synchronous(steps=6, phases={**HEALTHY, 'compute_rewards': 400})
    (folder / 'metrics-node0-1.jsonl').write_text(json.dumps(_metrics()) + '\n')
    return str(plant.write(folder))


def _metrics() -> dict[str, Any]:
    points = [{'timeUnixNano': str(1_796_031_540_000_000_000 + n), 'asDouble': float(n % 5)} for n in range(10)]
    metrics = [{'name': 'rl.reward.mean', 'gauge': {'dataPoints': points}}]
    return {'resourceMetrics': [{'resource': {}, 'scopeMetrics': [{'metrics': metrics}]}]}


def _command(*arguments: str) -> list[str]:
    return [sys.executable, '-m', 'lens_auto.report.cli', *arguments]


def _environ(**more: str) -> dict[str, str]:
    kept = {name: item for name, item in os.environ.items() if name not in ('NO_COLOR', 'COLUMNS', 'FORCE_COLOR')}
    return {**kept, 'PYTHONPATH': str(REPOSITORY), 'TERM': 'xterm-256color', **more}


def test_the_overview_opens_with_the_verdict(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([run]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith('lens-report  planted  ')
    assert shown[2].startswith('reward-bound: 29.2 % of a step of 1.37 s is computing rewards')
    assert 'look at' in shown[3]
    text = '\n'.join(shown)
    for part in ('phases', 'goodput of the steps', 'steps', 'metrics', 'rl.grpo.policy_update', 'rl.reward.mean'):
        assert part in text
    assert not any(line.endswith(' ') for line in shown)


FILES = ('export', 'html')  # these two write files, and show no table
ARGUMENTS = {'step': ['3'], 'diff': ['RUN'], 'tail': ['--once']}


@pytest.mark.parametrize('command', [name for name in COMMANDS if name not in FILES])
def test_every_command_shows_text_and_gives_json(
    run: str, command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    planted(tmp_path)  # of this one the system was asked
    path = str(tmp_path) if command == 'system' else run
    arguments = [command, *(path if word == 'RUN' else word for word in ARGUMENTS.get(command, [])), path]
    assert main(arguments) == 0
    assert capsys.readouterr().out.strip()
    assert main([*arguments, '--json']) == 0
    shown = capsys.readouterr().out
    if command == 'tail':
        assert [json.loads(line)['number'] for line in shown.splitlines()] == [1, 2, 3, 4, 5, 6]
    else:
        json.loads(shown)


def test_tail_gives_the_rows_of_steps(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['steps', '--json', run]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert main(['tail', '--once', '--json', run]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == listed


def test_the_last_step_is_minus_one(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['step', '-1', '--json', run]) == 0
    assert json.loads(capsys.readouterr().out)['step']['number'] == 6


def test_the_json_has_what_was_planted(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['step', '2', '--json', run]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told['step']['number'] == 2
    assert told['critical_path'][0] == {'name': 'rl.grpo.generate', 'process': 'driver', 'time': 450 * MS}
    assert main(['metrics', '--json', run]) == 0
    (metric,) = json.loads(capsys.readouterr().out)
    assert (metric['first'], metric['last'], metric['best'], metric['count']) == (0.0, 4.0, 4.0, 10)


def test_spans_that_overlap_are_told_by_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant = synchronous(steps=4, rollouts=[450.0] * 64)
    assert main([str(plant.write(tmp_path))]) == 0
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if 'rl.grpo.rollout ' in line)
    assert row.endswith('29 x')  # 64 of them, in 45 % of the step
    assert next(line for line in shown.splitlines() if 'rl.grpo.step' in line).endswith('100.0 %')
    assert 'x: spans that overlap' in shown
    assert main([str(synchronous(steps=4).write(tmp_path))]) == 0
    assert 'x: spans that overlap' not in capsys.readouterr().out


LONG = [f'rl.vllm.request.{part}_time' for part in ('decode', 'prefill', 'queue')]


@pytest.mark.parametrize(('columns', 'course', 'bounds'), [(140, True, True), (84, False, True), (72, False, False)])
def test_names_of_metrics_stand_whole_while_others_can_give_way(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: int,
    course: bool,
    bounds: bool,
) -> None:
    monkeypatch.setenv('COLUMNS', str(columns))
    plant = synchronous(steps=2)
    points = [{'timeUnixNano': str(1_796_031_540_000_000_000 + n), 'asDouble': n / 7} for n in range(30)]
    metrics = [{'name': name, 'unit': '{token}/s', 'gauge': {'dataPoints': points}} for name in LONG]
    line = {'resourceMetrics': [{'resource': {}, 'scopeMetrics': [{'metrics': metrics}]}]}
    (tmp_path / 'metrics-node0-1.jsonl').write_text(json.dumps(line) + '\n')
    assert main(['metrics', str(plant.write(tmp_path))]) == 0
    head, *rows = capsys.readouterr().out.partition('\n\n')[2].splitlines()
    assert [row.split()[0] for row in rows] == LONG
    assert ('course' in head, 'lowest' in head) == (course, bounds)
    assert all('4.143 token/s' in row for row in rows)
    monkeypatch.setenv('COLUMNS', '52')
    assert main(['metrics', str(tmp_path)]) == 0
    cut = [row.split()[0] for row in capsys.readouterr().out.partition('\n\n')[2].splitlines()[1:]]
    assert len(set(cut)) == 3 and cut[2].endswith('queue_time')  # what is cut is the beginning they share


def test_diff_compares_two_runs(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / 'other').mkdir()
    other = str(synchronous(steps=6).write(tmp_path / 'other'))
    assert main(['diff', run, other]) == 0
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if 'compute_rewards' in line)
    assert 'faster' in line and '-92.5 %' in line


def test_an_asynchronous_run_and_ranks_are_shown_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, plant in (('a', asynchronous()), ('b', ranks(slow=2))):
        (tmp_path / name).mkdir()
        assert main([str(plant.write(tmp_path / name))]) == 0
    assert 'one rank slow: rank 2 takes' in capsys.readouterr().out
    assert main(['workers', str(tmp_path / 'b')]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.strip().startswith('rank 2 '))
    assert '!!!' in line


def test_without_a_name_the_newest_run_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([]) == 2
    assert 'no run under' in capsys.readouterr().err
    for name in ('older', 'newer'):
        Lab(tmp_path, {'LENS_RUN_ID': name}).folder.register('')
    assert main([]) == 0
    assert 'newer' in capsys.readouterr().out.splitlines()[0]
    assert main(['older']) == 0
    assert 'older' in capsys.readouterr().out.splitlines()[0]


def test_a_step_that_is_not_there_is_said(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['step', '99', run]) == 1
    assert capsys.readouterr().err == 'lens-report: there is no step 99; this run has 1 to 6\n'
    assert main(['step', 'last', run]) == 2
    assert '`last` is no step number' in capsys.readouterr().err


def test_a_run_without_steps_has_none_to_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant = Plant()
    plant.process(0, lens__role='driver')
    plant.span(0, 'rl.grpo.job', BEGIN, BEGIN + MS)
    assert main(['step', '1', str(plant.write(tmp_path))]) == 1
    assert capsys.readouterr().err == 'lens-report: there is no step: no span of group `step` was recorded\n'


def test_a_pipe_gets_plain_text_and_a_terminal_colours_unless_told_not_to(run: str) -> None:
    plain = subprocess.run(_command(run), capture_output=True, env=_environ(), check=True).stdout
    assert b'\x1b' not in plain
    assert b'\x1b[1;31m' in _on_a_terminal(run, _environ())
    assert b'31m' not in _on_a_terminal(run, _environ(NO_COLOR='1'))


def _on_a_terminal(run: str, environ: dict[str, str]) -> bytes:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(_command(run), stdout=theirs, stderr=theirs, env=environ)
    os.close(theirs)
    shown = b''
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        shown += data
    os.close(ours)
    assert process.wait() == 0
    return shown


def test_ascii_is_enough_where_nothing_else_can_be_shown(run: str) -> None:
    environ = _environ(PYTHONIOENCODING='ascii', LC_ALL='C')
    shown = subprocess.run(_command(run), capture_output=True, env=environ, check=True).stdout
    assert shown.isascii() and b'|- rl.grpo.policy_update' in shown


def test_a_reader_that_has_seen_enough_is_no_error(run: str) -> None:
    command = ' '.join(_command('phases', run)) + ' | head -1; exit ${PIPESTATUS[0]}'
    done = subprocess.run(['bash', '-c', command], capture_output=True, env=_environ())
    assert (done.returncode, done.stderr) == (0, b'')


def test_without_its_libraries_it_says_what_to_install(run: str) -> None:
    code = (
        'import sys; sys.modules["rich"] = None; from lens_auto.report.cli import main; sys.exit(main([sys.argv[1]]))'
    )
    done = subprocess.run([sys.executable, '-c', code, run], capture_output=True, text=True, env=_environ())
    assert done.returncode == 2
    assert "pip install 'lens-auto[report]'" in done.stderr and 'Traceback' not in done.stderr


def test_the_perfetto_trace_has_every_span_in_a_track_where_it_nests(tmp_path: Path) -> None:
    plant = synchronous(steps=3, rollouts=[100.0, 200.0, 300.0])  # overlapping: tracks of their own
    events = _perfetto(tmp_path, plant)
    spans = [event for event in events if event['ph'] == 'X']
    assert len(spans) == plant.last
    step = next(event for event in spans if event['name'] == 'rl.grpo.step')
    assert step['args'] == {'group': 'step', 'iteration': 1} and step['dur'] == pytest.approx(1002_000)
    assert len(_nesting(spans)) == 3
    named = [event['args']['name'] for event in events if event['name'] == 'thread_name']
    assert named == ['spans', 'spans beside them 1', 'spans beside them 2']


def test_threads_that_overlap_in_any_way_have_no_slices_that_cross(tmp_path: Path) -> None:
    draw = random.Random(5)
    plant = Plant()
    for process in range(3):
        plant.process(process)
    made: list[int] = []
    for _ in range(4000):
        begin = BEGIN + draw.randrange(1000) * MS
        end = begin + draw.choice((0, 1, 5, 50, 400)) * MS
        parent = draw.choice(made) if made and draw.random() < 0.7 else 0
        made.append(plant.span(draw.randrange(3), 'work', begin, end, parent))
    for _ in range(500):  # more rollouts at a time than a page has lines
        plant.span(0, 'rollout', BEGIN, BEGIN + 1000 * MS)
    spans = [event for event in _perfetto(tmp_path, plant) if event['ph'] == 'X']
    assert len(spans) == 4500
    assert len(_nesting(spans)) > 500


def _perfetto(tmp_path: Path, plant: Plant) -> list[dict[str, Any]]:
    folder = tmp_path / 'run'
    folder.mkdir()
    output = tmp_path / 'trace.json'
    assert main(['export', '--perfetto', str(output), str(plant.write(folder))]) == 0
    return json.loads(output.read_text())['traceEvents']


def _nesting(spans: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """The tracks, if slices in them, as they follow each other in the file, lie in each other or apart."""
    open_: dict[tuple[int, int], list[int]] = {}
    before: dict[tuple[int, int], int] = {}
    for event in spans:
        track = (event['pid'], event['tid'])
        begin = round(event['ts'] * 1000)  # nanoseconds
        end = begin + round(event['dur'] * 1000)
        assert begin >= before.get(track, 0)
        before[track] = begin
        stack = open_.setdefault(track, [])
        while stack and stack[-1] <= begin:
            stack.pop()
        assert not stack or end <= stack[-1]
        stack.append(end)
    return set(open_)


def test_csv_has_a_row_a_span_and_no_formula(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from lens_auto.report.spreadsheet import _inert

    output = tmp_path / 'csv'
    assert main(['export', '--csv', str(output), run]) == 0
    with open(output / 'spans.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 * 8
    step = next(row for row in rows if row['name'] == 'rl.grpo.step')
    assert (step['iteration'], step['process'], step['duration_ns']) == ('1', 'driver', str(1372 * MS))
    with open(output / 'steps.csv', newline='') as file:
        assert {row['kind'] for row in csv.DictReader(file)} >= {'generation', 'reward', 'other'}
    assert _inert('=cmd()') == "'=cmd()"


def test_parquet_needs_pyarrow_and_says_so(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    assert main(['export', '--parquet', str(tmp_path / 'p'), run]) == 2
    assert 'pip install pyarrow' in capsys.readouterr().err


def test_parquet_has_the_rows_of_the_csv(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet: Any = pytest.importorskip('pyarrow.parquet')
    assert main(['export', '--parquet', str(tmp_path / 'p'), '--csv', str(tmp_path / 'c'), run]) == 0
    for name in ('spans', 'metrics', 'steps'):
        columns: dict[str, list[Any]] = parquet.read_table(tmp_path / 'p' / f'{name}.parquet').to_pydict()
        with open(tmp_path / 'c' / f'{name}.csv', newline='') as file:
            wanted = list(csv.DictReader(file))
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        assert [{key: '' if item is None else str(item) for key, item in row.items()} for row in rows] == wanted
        assert wanted


def test_an_export_of_nothing_is_refused(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['export', run]) == 2
    assert 'lens-instrument --replay' in capsys.readouterr().err


def test_the_page_is_one_file_with_everything_in_it(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['html', run]) == 0
    text = (Path(run) / 'report.html').read_text()
    assert 'http://' not in text.replace('http://www.w3.org/2000/svg', '') and 'https://' not in text
    assert '@DATA@' not in text and 'reward-bound' in text
