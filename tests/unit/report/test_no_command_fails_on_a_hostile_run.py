# SPDX-License-Identifier: Apache-2.0
"""Every command on every kind of damaged or malicious run: an answer or a sentence, never a traceback."""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lens_auto.report import otlp
from lens_auto.report.cli import COMMANDS, main
from tests.unit.collect.journals import Lab
from tests.unit.report.planted import BEGIN, MS, Plant, asynchronous, attributes, synchronous
from tests.unit.report.test_requests_of_engines import engine, line
from tests.unit.report.test_the_system_by_phase_process_and_gpu import planted

REPOSITORY = Path(__file__).resolve().parents[3]
EVIL = '\x1b[2J\x07</script><script>alert(1)</script>=cmd|[bold]\r\n\u202e\ud800'
TRACES = 'traces-node0-1.jsonl'
METRICS = 'metrics-node0-1.jsonl'


def whole(folder: Path) -> list[bytes]:
    """A run that has something for every command; the lines of its spans."""
    planted(folder)
    with open(folder / METRICS, 'a') as file:
        file.write(line(1, engine([1.0, 3.0], [1.0, 1.0], [2.0, 2.0])))
    plant = synchronous(steps=4)
    plant.span(0, 'rl.grpo.generate', BEGIN, BEGIN + MS, error=True, lens__truncated=True)
    (folder / '.run-key').write_text('id r\nattempt 0\nnonce 0\nstarted 1\njoin \nhost a\npid 1\n')
    return (plant.write(folder, batch=3) / TRACES).read_bytes().splitlines(keepends=True)


def torn(folder: Path) -> None:
    (folder / TRACES).write_bytes(b''.join(whole(folder))[:-60])


def cut_and_filled_with_zeros(folder: Path) -> None:
    lines = whole(folder)
    (folder / TRACES).write_bytes(lines[0] + lines[1][:100] + bytes(4096) + b'\n' + b''.join(lines[2:]))


def reordered_and_doubled(folder: Path) -> None:
    lines = whole(folder)
    random.Random(1).shuffle(lines)
    (folder / TRACES).write_bytes(b''.join(lines + lines[:4]))


def a_line_too_long(folder: Path) -> None:
    lines = whole(folder)
    (folder / TRACES).write_bytes(b'{"resourceSpans": [' + b' ' * 400_000 + b'\n' + b''.join(lines))


def no_json(folder: Path) -> None:
    whole(folder)
    (folder / TRACES).write_bytes(random.Random(2).randbytes(20_000))
    (folder / METRICS).write_bytes(b'[' * 200_000 + b'\n' + b'{"a":' * 50_000 + b'\n"resourceMetrics"\n')


def empty(folder: Path) -> None:
    whole(folder)
    for name in (TRACES, METRICS):
        (folder / name).write_bytes(b'')


WRONG: list[Any] = [None, True, -1, 1e400, 'x', '', [], {}, [[]], [None], {'a': 1}, '9' * 400, -(1 << 70), 1 << 70]


def _twisted(item: Any, draw: random.Random) -> Any:
    """The same with something in it that has another type."""
    if draw.random() < 0.04:
        return draw.choice(WRONG)
    if isinstance(item, dict):
        return {key: _twisted(one, draw) for key, one in item.items() if draw.random() > 0.01}
    return [_twisted(one, draw) for one in item] if isinstance(item, list) else item


def wrong_types(folder: Path) -> None:
    draw = random.Random(3)
    whole(folder)
    for name in (TRACES, METRICS):
        lines = [json.loads(text) for text in (folder / name).read_text().splitlines()]
        twisted = [json.dumps(_twisted(one, draw)) for one in lines for _ in range(20)]
        (folder / name).write_text('\n'.join([json.dumps(lines[0]), *twisted]) + '\n')


def impossible_times(folder: Path) -> None:
    plant = asynchronous(steps=3)
    for begin, end in ((0, 0), (0, 1 << 61), ((1 << 61) - 1, 1 << 61), (BEGIN, BEGIN), (1, BEGIN * 2), (5, 3)):
        step = plant.span(0, 'rl.grpo.step', begin, end, rl__iteration=(1 << 31) - 1)
        plant.span(1, 'rl.grpo.generate', begin, end, step)
        plant.span(1, 'rl.grpo.generate', end, end, step, rl__iteration=-5)
    plant.write(folder)
    points = [
        {'timeUnixNano': str(at), 'asDouble': value}
        for at in (0, BEGIN, 1 << 62, 1 << 63, -1)
        for value in (float('nan'), float('inf'), 1e308, -1e308, 0.0)
    ]
    metrics = [{'name': name, 'gauge': {'dataPoints': points}} for name in ('rl.loss', 'process.cpu.utilization')]
    plain = {'resourceMetrics': [{'resource': {}, 'scopeMetrics': [{'metrics': metrics}]}]}
    (folder / METRICS).write_text(json.dumps(plain) + '\n')


def tags_and_escapes(folder: Path) -> None:
    plant = Plant()
    for number in range(3):
        plant.process(
            number, lens__role=EVIL, ray__actor__class=EVIL, ray__actor__name=EVIL, host__name=EVIL, dl__rank=number
        )
    now = BEGIN
    for number in range(1, 5):
        step = plant.span(0, f'{EVIL}.step', now, now + 100 * MS, rl__iteration=number, lens__group='step')
        for process in range(3):
            inner = plant.span(process, EVIL, now, now + (20 + 60 * (process == 2)) * MS, step, lens__group=EVIL)
            plant.span(process, f'{EVIL}{process}', now, now + MS, inner, lens__truncated=True, rl__bucket=EVIL)
        now += 100 * MS
    plant.write(folder)
    point = {'timeUnixNano': str(BEGIN), 'asDouble': 1.0, 'attributes': attributes({EVIL: EVIL})}
    metrics = [
        {'name': name, 'unit': EVIL, 'gauge': {'dataPoints': [{**point, 'timeUnixNano': str(BEGIN + n)}]}}
        for name in (EVIL, 'hw.gpu.utilization', 'process.cpu.utilization', 'process.memory.usage')
        for n in range(3)
    ]
    plain = {'resourceMetrics': [{'resource': {'attributes': attributes({'host.name': EVIL})}}]}
    plain['resourceMetrics'][0]['scopeMetrics'] = [{'metrics': metrics}]  # type: ignore[assignment]
    (folder / METRICS).write_text(json.dumps(plain) + '\n')


def no_files(folder: Path) -> None:
    whole(folder)
    (folder / 'traces-folder.jsonl').mkdir()
    os.mkfifo(folder / 'metrics-pipe.jsonl')
    (folder / 'traces-loop.jsonl').symlink_to('traces-loop.jsonl')
    (folder / 'traces-gone.jsonl').symlink_to('nowhere')
    (folder / 'outbox').mkdir()
    (folder / 'outbox' / 'traces-1').mkdir()


def nothing_but_no_files(folder: Path) -> None:
    no_files(folder)
    for name in (TRACES, METRICS):
        os.unlink(folder / name)


def damaged_archive(folder: Path) -> None:
    packed = bytearray(gzip.compress(b''.join(whole(folder)), mtime=0))
    packed[len(packed) // 2] ^= 0xFF
    (folder / 'traces-node1-1.jsonl.gz').write_bytes(packed[:-10])
    (folder / 'traces-node2-1.jsonl.gz').write_bytes(b'no archive')


def _run_json(folder: Path, text: str) -> None:
    whole(folder)
    (folder / 'run.json').write_text(text)


TOLD: dict[str, Any] = {
    **{'run_id': EVIL, 'started_ns': BEGIN, 'ended_ns': BEGIN + 1, 'notes': [EVIL], 'dropped': {EVIL: 3}},
    **{'faults': {EVIL: 1}, 'unsent': {EVIL: 3}, 'settings': {'exporter': ['otlp', EVIL]}, 'spools': [EVIL]},
    'processes': [{'outcome': 'stood_down', 'reason': EVIL, 'role': 'worker'}],
    'rules': [{'name': EVIL, 'missing': {EVIL: 1}, 'targets': [EVIL], 'where': EVIL, 'processes': 1, 'calls': 1}],
    'roll_call': {'reach': {'workers': 'unreachable', 'reason': EVIL}},
    **{'counts': {'damaged': 3}, 'exit_code': 1, 'signal': None},
}


def run_json_with_escapes(folder: Path) -> None:
    _run_json(folder, json.dumps(TOLD))


def run_json_of_wrong_types(folder: Path) -> None:
    twisted = {name: 7 if isinstance(item, (list, dict)) else [] for name, item in TOLD.items()}
    rows = {name: [{key: {} for key in TOLD[name][0]}] for name in ('processes', 'rules')}
    _run_json(folder, json.dumps(twisted | rows))


def run_json_with_wrong_types_inside(folder: Path) -> None:
    draw = random.Random(4)
    _run_json(folder, json.dumps({'launchers': [_twisted(_twisted(TOLD, draw), draw) for _ in range(60)]}))


def run_json_that_is_deep(folder: Path) -> None:
    _run_json(folder, '{"launchers": ' + '[' * 100_000)


def damaged_journals(folder: Path) -> None:
    lab = Lab(folder)
    draw = random.Random(5)
    for _ in range(40):
        journal = lab.journal()
        journal.open(draw.randrange(1, 1000), 'rl.grpo.step', items={'lens.group': 'step', 'rl.iteration': 1})
        for number in range(3):
            journal.end_span(draw.randrange(1, 1000), 'rl.grpo.generate', parent=number)
        journal.point('rl.loss', 1.0)
        journal.point(EVIL, 1.0, unit=EVIL)
        with open(journal.path, 'r+b') as file:
            for _ in range(3):
                file.seek(draw.randrange(journal.end))
                file.write(draw.randbytes(1))
    told = lab.journal(told={'host.name': [], 'ray.actor.name': EVIL, 'ray.actor.class': {}})  # whole, and nonsense
    for item in (None, 7, {}, [], 'x', 1.5, b'x'):
        told.put((1, item, item, item, item, item, 'rule', item, item))
        told.put((2, item, item, item, item, item, item, 'rule', 0, item, item, item))
        told.put((3, item, item, item, item, item, item, 'rule', b'', b''))
        told.put((6, 0, item))
        told.put((9, 0, item, item, item))
    (Path(lab.spool) / 'checkpoint').write_bytes(b'\xfb\x00')


HOSTILE: list[Callable[[Path], None]] = [
    *(torn, cut_and_filled_with_zeros, reordered_and_doubled, a_line_too_long, no_json, empty, wrong_types),
    *(impossible_times, tags_and_escapes, no_files, damaged_archive, run_json_with_escapes, run_json_of_wrong_types),
    *(run_json_with_wrong_types_inside, run_json_that_is_deep, damaged_journals, nothing_but_no_files),
]
ARGUMENTS = {'step': ['-1'], 'diff': ['RUN'], 'tail': ['--once']}


def calls(folder: Path, output: Path) -> list[list[str]]:
    """Every command, each with all it can write, as text and as JSON."""
    found: list[list[str]] = []
    for name in COMMANDS:
        if name == 'export':
            for kind in ('--perfetto', '--csv'):
                found.append([name, kind, str(output / kind.strip('-')), str(folder)])
        elif name == 'html':
            found.append([name, '-o', str(output / 'page.html'), str(folder)])
        else:
            more = [str(folder) if word == 'RUN' else word for word in ARGUMENTS.get(name, [])]
            found += [[name, *more, str(folder)], [name, *more, '--json', str(folder)]]
    return found


@pytest.mark.parametrize('damage', HOSTILE, ids=lambda made: made.__name__)
def test_every_command_answers_or_says_why_not(
    damage: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(otlp, 'LONGEST_LINE', 200_000)
    monkeypatch.setenv('COLUMNS', '160')
    folder, output = tmp_path / 'run', tmp_path / 'out'
    folder.mkdir()
    output.mkdir()
    damage(folder)
    if damage is damaged_journals:
        (folder,) = (path.parent for path in folder.rglob('.run-key'))
    for arguments in calls(folder, output):
        status = main(arguments)
        out, error = capsys.readouterr()
        assert status in (0, 1, 2), arguments
        assert (out if status == 0 else out + error).strip() or arguments[0] == 'tail', arguments
        assert status != 2 or error.startswith('lens-report: '), arguments
        assert 'Traceback' not in out + error
        # Nothing moves a cursor, rings a bell or turns the direction of writing.
        assert all(c.isprintable() or c == '\n' for c in out + error), arguments
        if '--json' in arguments and status == 0:
            for text in out.splitlines() if arguments[0] == 'tail' else [out]:
                json.loads(text, parse_constant=lambda constant: pytest.fail(f'{constant} is no JSON'))
    page = output / 'page.html'
    if page.exists():
        assert page.read_text(encoding='utf-8').count('<script') == 2  # its data and its own
    if (output / 'perfetto').exists():
        json.loads((output / 'perfetto').read_text())


@pytest.mark.parametrize(
    ('damage', 'said'),
    [
        (torn, 'left out: 1 torn lines'),
        (cut_and_filled_with_zeros, 'left out: 1 lines that are no JSON'),
        (reordered_and_doubled, '12 spans occurred twice and count once'),
        (a_line_too_long, 'left out: 1 lines of more than'),
        (no_json, 'lines that are no JSON'),
        (wrong_types, 'spans of wrong types'),
        (damaged_archive, 'left out: 2 damaged files'),
        (no_files, 'left out: 5 files that cannot be read'),
        (run_json_of_wrong_types, 'facts of wrong types in run.json'),
        (run_json_that_is_deep, 'left out: 1 run.json that cannot be read'),
        (impossible_times, 'spans that end before they start, kept without length'),
    ],
    ids=lambda item: item.__name__ if callable(item) else '',
)
def test_what_is_left_out_is_counted(
    damage: Callable[[Path], None],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(otlp, 'LONGEST_LINE', 200_000)
    damage(tmp_path)
    assert main(['overview', '--json', str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)['warnings']
    assert any(said in one for one in found), found


def test_a_line_of_a_gigabyte_takes_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    lines = whole(tmp_path)
    with open(tmp_path / TRACES, 'wb') as file:
        file.write(lines[0] + b'{"resourceSpans": ["')
        file.seek(1 << 30, os.SEEK_CUR)  # a hole: no room on the disk
        file.write(b'"]}\n' + b''.join(lines[1:]))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (800 << 20, 800 << 20))

    environ = {**os.environ, 'PYTHONPATH': str(REPOSITORY), 'OPENBLAS_NUM_THREADS': '1'}
    command = [sys.executable, '-m', 'lens_auto.report.cli', 'overview', '--json', str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, preexec_fn=limited)
    assert (done.returncode, done.stderr) == (0, '')
    told = json.loads(done.stdout)
    assert told['spans'] == 33
    assert 'left out: 1 lines of more than 32 MiB' in told['warnings']
