# SPDX-License-Identifier: Apache-2.0
"""An exception planted in each part of the launcher and its collector: the program does not notice, the user is told.

The part is broken in a copy of the package, and that copy is launched.
"""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers.otlp_receiver import Receiver
from tests.helpers.run import REPOSITORY, Done, Place

ENTRY = 'import sys; sys.path.insert(0, sys.argv.pop(1)); from lens_auto.launch.main import main; main()'
NOWHERE = {'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:9', 'OTEL_EXPORTER_OTLP_TIMEOUT': '1'}
SECRET = 'a reason nobody may read'

# file and function; with exporter file unless said otherwise.
PLACES = [
    # before the program starts
    'launch/prepare.py:prepare',
    'launch/prepare.py:decide',
    'launch/prepare.py:_environment',
    'launch/plan.py:obtain',
    'launch/bootstrap.py:folder',
    'settings/resolve.py:resolve',
    'settings/project.py:environment',
    'rules/plan_cache.py:compiled',
    'collect/run.py:identify',
    'collect/folder.py:open_run',
    'collect/spool.py:choose',
    # beside it
    'launch/recording.py:Recording._start',
    'launch/collecting.py:facts',
    'launch/collecting.py:collector',
    'launch/signals.py:Vigil.wait',
    'collect/collector.py:Collector.__init__',
    'collect/collector.py:Collector.start',
    'collect/collector.py:Collector.recover',
    'collect/collector.py:Collector.flush',
    'collect/collector.py:Collector.save',
    'collect/collector.py:Collector.write_run_file',
    'collect/reading.py:Reading.round',
    'collect/reading.py:Reading.hand_over',
    'collect/intake.py:Intake.take',
    'collect/intake.py:Intake.describe',
    'collect/intake.py:Intake.hand_over',
    'collect/ledger.py:Ledger.report',
    'collect/tally.py:Tally.ended',
    'collect/encoding.py:span',
    'collect/series.py:Series.add',
    'collect/store.py:Store.put',
    'collect/store.py:Store.flush',
    'collect/checkpoint.py:save',
    'collect/runfile.py:write',
    'collect/resources.py:of_process',
    'collect/tail.py:Tail.read',
    # at its end
    'launch/collecting.py:finish',
    'launch/recording.py:Recording._finish',
    'collect/closing.py:close',
    'collect/closing.py:_write_root',
    'collect/closing.py:remove_spool',
    'collect/snapshot.py:fill',
    'collect/summary.py:render',
    'collect/table.py:draw',
    'collect/look.py:look_of',
]
OTLP = [
    'collect/otlp.py:Sender.__init__',
    'collect/otlp.py:Sender.start',
    'collect/otlp.py:Sender._made',
    'collect/otlp.py:_Lane.start',
    'collect/otlp.py:_Lane._send',
    'collect/otlp.py:_Lane._try',
    'collect/otlp.py:_Lane.pending',
    'collect/otlp.py:_Lane.end',
    'collect/otlp.py:Sender.drain',
    'collect/otlp.py:Sender.notes',
    'collect/store.py:Store.leave',
    'collect/otlp_sdk.py:Exporters.__init__',
    'collect/otlp_sdk.py:Exporters.send',
]
CONSOLE = ['collect/console.py:Console.print', 'record/line.py:span_line', 'collect/console.py:Console.__init__']


def break_at(package: Path, place: str, statement: str) -> None:
    """Put a statement at the beginning of a function."""
    name, _, qualname = place.partition(':')
    path = package / name
    lines = path.read_text().splitlines(keepends=True)
    body: list[ast.stmt] = ast.parse(''.join(lines)).body
    for part in qualname.split('.'):
        [body] = [node.body for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == part]
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(body) > 1:
        first = body[1]
    lines.insert(first.lineno - 1, ' ' * first.col_offset + statement + '\n')
    path.unlink()
    path.write_text(''.join(lines))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package; with its bytecode, which is what compiling takes long for."""
    for folder in ('lens_auto', 'sitecustomize', 'rules'):
        shutil.copytree(REPOSITORY / folder, tmp_path / 'broken' / folder)
    return tmp_path / 'broken' / 'lens_auto'


def launch(place: Place, package: Path, *arguments: str, env: dict[str, str] | None = None) -> Done:
    return place.plain(sys.executable, '-c', ENTRY, str(package.parent), *arguments, env=env)


def told(place: Place, done: Done) -> str:
    """All that is said of a run: on the screen and in run.json."""
    return done.stderr + ''.join(path.read_text() for path in place.cwd.rglob('run.json'))


@pytest.mark.parametrize('where', PLACES)
def test_the_program_runs_as_ever_and_the_fault_is_told(place: Place, package: Path, where: str):
    break_at(package, where, f'raise RuntimeError({SECRET!r})')

    done = launch(place, package, 'python', 'train.py')

    assert (done.code, done.stdout) == (0, place.plain('python', 'train.py').stdout), done.stderr
    assert 'RuntimeError' in told(place, done), done.stderr
    assert SECRET not in told(place, done)
    assert 'Traceback' not in done.stderr, done.stderr


@pytest.mark.parametrize('where', OTLP)
def test_so_with_a_backend(place: Place, package: Path, where: str):
    break_at(package, where, f'raise RuntimeError({SECRET!r})')

    with Receiver() as receiver:
        done = launch(place, package, 'python', 'train.py', env=receiver.environment('http/protobuf'))

    assert (done.code, done.stdout) == (0, place.plain('python', 'train.py').stdout), done.stderr
    assert 'RuntimeError' in told(place, done), done.stderr
    assert 'Traceback' not in done.stderr, done.stderr


@pytest.mark.parametrize('where', CONSOLE)
def test_so_when_lines_are_printed(place: Place, package: Path, where: str):
    break_at(package, where, f'raise RuntimeError({SECRET!r})')

    done = launch(place, package, '--exporter', 'console', 'python', 'train.py')

    kept = ''.join(line for line in done.stdout.splitlines(True) if not line.startswith('{'))
    assert (done.code, kept) == (0, place.plain('python', 'train.py').stdout), done.stderr
    assert 'RuntimeError' in told(place, done), done.stderr
    assert 'Traceback' not in done.stderr, done.stderr


@pytest.mark.parametrize('code', [0, 3])
@pytest.mark.parametrize(
    'name',
    ['launch/collecting.py', 'collect/collector.py', 'collect/summary.py', 'launch/plan.py', 'settings/fields.py'],
)
def test_a_module_that_cannot_be_imported_is_no_different(place: Place, package: Path, name: str, code: int):
    path = package / name
    path.unlink()
    path.write_text(f'raise RuntimeError({SECRET!r})\n')

    done = launch(
        place, package, 'python', '-c', f'import sys, trainer; trainer.fit(trainer.Config(), 1); sys.exit({code})'
    )

    assert (done.code, done.stdout) == (code, 'step 1 reward 0.1\n'), done.stderr
    assert 'RuntimeError' in done.stderr
    assert 'Traceback' not in done.stderr


@pytest.mark.parametrize(
    'where', ['collect/collector.py:Collector._step', 'collect/closing.py:close', 'collect/store.py:Store.flush']
)
def test_what_a_broken_collector_left_a_whole_one_finishes(place: Place, package: Path, where: str):
    break_at(package, where, f'raise RuntimeError({SECRET!r})')
    launch(place, package, 'python', 'train.py')

    done = place.lens('--replay', str(place.run.path))

    assert done.code == 0, done.stderr
    assert place.run.facts['complete'] is True
    assert len(place.run.spans) == 14 and len({span.id for span in place.run.spans}) == 14


@pytest.mark.parametrize('where', ['collect/summary.py:render', 'collect/replay.py:_merge', 'collect/replay.py:_send'])
def test_a_replay_that_breaks_says_so(place: Place, package: Path, where: str):
    run = place.record('python', 'train.py')
    (run.path / 'launchers').mkdir()
    break_at(package, where, f'raise RuntimeError({SECRET!r})')

    done = launch(place, package, '--replay', str(run.path), env=NOWHERE)

    assert done.code != 0
    assert SECRET not in done.stderr
