# SPDX-License-Identifier: Apache-2.0
"""The process matrix: every way to start a child, under every launcher, on every Python found here.

`make matrix` prints it. One program starts a child in each of the ways, inside a span: one that ends by itself, one
that is told to end by SIGTERM, and one that is killed, while it has a span open. Each launcher runs it without us
and with us, and a cell says where the child's spans are, if all of this is so:

* the child is a process of the run, with its own `service.instance.id`, and records;
* its spans are where they belong: under the span that it was started in, or for a pool's worker under the run;
* at SIGTERM and at SIGKILL the twenty spans that had ended are there, and the open one is shown as cut short;
* all ranks have done the same.

In the last line, the program has printed the same and ended with the same exit code as without us.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests.helpers.packages import python_with as packages  # noqa: E402
from tests.helpers.program import SUPPORTED, interpreter  # noqa: E402
from tests.helpers.run import LENS, REPOSITORY, Done, Place, Run  # noqa: E402
from tests.helpers.venvs import python_with  # noqa: E402

TRL = ('trl-1.16.0', 'trl==1.16.0', '-c', str(REPOSITORY / 'constraints' / 'torch-cpu.txt'))  # brings accelerate
RULES = """
framework: mine
rules:
- {kind: function, target: 'work:outer', group: job, name: '{arg.what}'}
- {kind: function, target: 'work:step', group: job, name: '{arg.what}'}
"""
WORK = """
def outer(what, f): return f()
def step(what, hold=None):
    if hold: hold()
    return what
"""
CHILD = """
import os, signal, sys
import work
def ready(mode, what):
    name = f'ready-{os.environ.get("RANK", "")}-{mode}-{what}'.replace(' ', '-')
    with open(name + '.new', 'w') as file: file.write(str(os.getpid()))
    os.rename(name + '.new', name)
    while True: signal.pause()
def run(mode, what):
    if mode in ('ends', 'last'):
        work.step(f'{what}: child')
        print(what, 'child', flush=True)
        return 'done'
    for _ in range(20): work.step(f'{what}: finished before {mode}')
    work.step(f'{what}: open at {mode}', hold=lambda: ready(mode, what))
if __name__ == '__main__':
    run(*sys.argv[1:])
    sys.exit(0 if sys.argv[1] == 'last' else 5)
"""
MAIN = """
import asyncio, multiprocessing, os, signal, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
import child, work
def command(mode, what): return [sys.executable, 'child.py', mode, what]
def waits(pid): return lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def exits(mode, what):
    child.run(mode, what); os._exit(5)
def popen(mode, what): return subprocess.Popen(command(mode, what)).wait
def shell(mode, what):
    words = ['bash', '-c', 'true && "$@"; exit $?', 'bash', *command(mode, what)]
    return subprocess.Popen(words, stderr=subprocess.DEVNULL).wait
def in_loop(mode, what):
    loop = asyncio.new_event_loop()
    process = loop.run_until_complete(in_task(command(mode, what)))
    return lambda: loop.run_until_complete(process.wait())
async def in_task(words): return await asyncio.create_subprocess_exec(*words)
def fork(mode, what):
    pid = os.fork()
    if not pid: exits(mode, what)
    return waits(pid)
def fork_exec(mode, what):
    pid = os.fork()
    if not pid: os.execv(sys.executable, command(mode, what))
    return waits(pid)
def spawnv(mode, what): return waits(os.spawnv(os.P_NOWAIT, sys.executable, command(mode, what)))
def posix_spawn(mode, what): return waits(os.posix_spawn(sys.executable, command(mode, what), os.environ))
def process(method):
    def start(mode, what):
        one = multiprocessing.get_context(method).Process(target=exits, args=(mode, what)); one.start()
        return lambda: (one.join(), one.exitcode)[1]
    return start
def executor(method):
    def start(mode, what):
        pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method))
        job = pool.submit(child.run, mode, what)
        def wait():
            try: return job.result()
            except BrokenProcessPool: return 'broken'
            finally: pool.shutdown()
        return wait
    return start
STARTS = {
    'subprocess': popen, 'bash -c': shell, 'asyncio': in_loop, 'os.fork': fork, 'os.fork and exec': fork_exec,
    'os.spawnv': spawnv, 'os.posix_spawn': posix_spawn,
    'multiprocessing fork': process('fork'), 'multiprocessing spawn': process('spawn'),
    'multiprocessing forkserver': process('forkserver'),
    'ProcessPoolExecutor fork': executor('fork'), 'ProcessPoolExecutor spawn': executor('spawn'),
}
def ended(mode, what):
    wait = STARTS[what](mode, what)
    if mode == 'ends': return wait()
    name = f'ready-{os.environ.get("RANK", "")}-{mode}-{what}'.replace(' ', '-')
    while not os.path.exists(name): time.sleep(0.005)
    with open(name) as file: pid = int(file.read())
    os.kill(pid, getattr(signal, mode))
    return wait()
def all_ways(what): return [ended(mode, what) for mode in ('ends', 'SIGTERM', 'SIGKILL')]
if __name__ == '__main__':
    for what in STARTS: print(what, *work.outer(what, lambda: all_ways(what)), flush=True)
    work.outer('os.exec in place', lambda: os.execv(sys.executable, command('last', 'os.exec in place')))
"""
STARTS = (
    *('subprocess', 'bash -c', 'asyncio', 'os.fork', 'os.fork and exec', 'os.spawnv', 'os.posix_spawn'),
    *('multiprocessing fork', 'multiprocessing spawn', 'multiprocessing forkserver'),
    *('ProcessPoolExecutor fork', 'ProcessPoolExecutor spawn', 'os.exec in place'),
)
LAST = 'output and exit code'
TORCHRUN = ('-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2')
ACCELERATE = ('-m', 'accelerate.commands.launch', '--multi_gpu', '--num_processes', '2', '--num_machines', '1')
ACCELERATE += ('--mixed_precision', 'no', '--dynamo_backend', 'no')


class Absent(Exception):
    """It cannot be had here; the text says why."""


@dataclass
class Launcher:
    """How the program is launched.

    Attributes:
        words: Makes the command without us, from an interpreter.
        ours: Makes the command with us; by default ours in front of it.
        ranks: How many of the program there are.
        pythons: On which versions.
    """

    words: Callable[[str], Sequence[str]]
    ours: Callable[[str], Sequence[str]] | None = None
    ranks: int = 1
    pythons: tuple[str, ...] = SUPPORTED

    def command(self, python: str, with_us: bool) -> list[str]:
        if not with_us:
            return [*self.words(python)]
        return [LENS, '--no-summary', *self.words(python)] if self.ours is None else [*self.ours(python)]


def _here(python: str) -> str:
    """The venv that the tests run in: torch is there."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise Absent('torch is not installed') from None
    return sys.executable


def _uv(python: str) -> list[str]:
    try:
        uv = str(Path(packages('uv')).with_name('uv'))
    except Exception as error:
        raise Absent(f'uv cannot be installed: {type(error).__name__}') from None
    return [uv, 'run', '--offline', '--no-project', '--no-config', '--python', python, 'main.py']


def _accelerate(python: str) -> list[str]:
    try:
        return [python_with(*TRL), *ACCELERATE, 'main.py']
    except Exception as error:
        raise Absent(f'accelerate cannot be installed: {type(error).__name__}') from None


_MINE = '{}.{}'.format(*sys.version_info[:2])
LAUNCHERS = {
    'python': Launcher(lambda python: [python, 'main.py']),
    'uv run': Launcher(_uv),
    'torchrun': Launcher(lambda python: [_here(python), *TORCHRUN, 'main.py'], None, 2, (_MINE,)),
    'torchrun, a launcher a rank': Launcher(
        lambda python: [_here(python), *TORCHRUN, '--no-python', python, 'main.py'],
        lambda python: [_here(python), *TORCHRUN, '--no-python', LENS, '--no-summary', python, 'main.py'],
        *(2, (_MINE,)),
    ),
    'accelerate launch': Launcher(_accelerate, None, 2, (_MINE,)),
}


def columns(names: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Launcher and Python version of each column.

    Args:
        names: Of launchers; all of them by default.
    """
    for name, launcher in LAUNCHERS.items():
        for version in launcher.pythons:
            if not names or name in names:
                yield name, version


def column(name: str, version: str, folder: Path) -> dict[str, str]:
    """Run the program without us and with us, and look at each start.

    Args:
        name: The launcher.
        version: The Python.
        folder: An empty folder.

    Raises:
        Absent: The launcher or the Python is not here.
    """
    python = interpreter(version)
    if python is None:
        raise Absent(f'python{version} is not on this machine')
    launcher = LAUNCHERS[name]
    done: list[Done] = []
    found: Run | None = None
    for with_us in (False, True):
        place = Place(folder / str(with_us))
        place.write({'work.py': WORK, 'child.py': CHILD, 'main.py': MAIN, 'lens.yaml': RULES})
        # What torch's launchers print of threads and where a rank is not the program's.
        env = {'OMP_NUM_THREADS': '1', 'TORCHELASTIC_ERROR_FILE': '', 'LENS_EXPORT_STRATEGY': 'all_ranks'}
        done.append(place.plain(*launcher.command(python, with_us), env=env))
        if with_us and place.runs:
            found = place.run
    plain, traced = done
    same = sorted(plain.stdout.splitlines()) == sorted(traced.stdout.splitlines()) and plain.code == traced.code
    if plain.code or not plain.stdout:
        raise Absent(f'it fails without us: {plain.stderr[-200:]}')
    cells = {start: 'no run' if found is None else cell(found, start, launcher.ranks) for start in STARTS}
    return {**cells, LAST: 'same' if same else 'differ'}


def cell(run: Run, start: str, ranks: int) -> str:
    """Where the children of a start are: 'span' or 'run'; else what is wrong with them.

    Args:
        run: The run.
        start: One of `STARTS`.
        ranks: How many programs started one.
    """
    outer = {span.id: span for span in run.named(start)}
    children = run.named(f'{start}: child')
    if len(children) != ranks or len(outer) != ranks:
        return f'{len(children)} of {ranks}'
    in_place = start == 'os.exec in place'
    cut = [span for span in outer.values() if span.truncated or span.error]
    if cut or any(bool(span.attributes.get('lens.exec')) is not in_place for span in outer.values()):
        return 'its starter is cut short'
    instances = {span.resource['service.instance.id'] for span in (*outer.values(), *children)}
    if len(instances) != (ranks if in_place else 2 * ranks):
        return 'not processes of their own'
    root = run.only('lens.run').id
    above = sorted(span.parent for span in children)
    pooled = start.startswith('ProcessPool')
    if above != (ranks * [root] if pooled else sorted(outer)):
        return 'wrong parent'
    for name in () if in_place else ('SIGTERM', 'SIGKILL'):
        finished, left = run.named(f'{start}: finished before {name}'), run.named(f'{start}: open at {name}')
        if len(finished) != 20 * ranks or any(span.truncated for span in finished):
            return f'lost at {name}'
        if len(left) != ranks or not all(span.truncated for span in left):
            return f'open span lost at {name}'
        if {span.parent for span in (*finished, *left)} != {*above}:
            return f'wrong parent at {name}'
    return 'run' if pooled else 'span'


def table(found: dict[tuple[str, str], dict[str, str]]) -> Iterator[str]:
    """The lines of the table, Markdown: a column a launcher, with all Pythons in one cell where they agree.

    Args:
        found: Launcher and Python -> cells.
    """
    launchers = dict.fromkeys(name for name, _ in found)
    rows = [['', *launchers]]
    rows.append(['Python', *(', '.join(version for other, version in found if other == name) for name in launchers)])
    for start in (*STARTS, LAST):
        row = [start]
        for name in launchers:
            cells = {version: cells[start] for (other, version), cells in found.items() if other == name}
            alike = len(set(cells.values())) == 1
            row.append(next(iter(cells.values())) if alike else ', '.join(f'{v}: {c}' for v, c in cells.items()))
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        '| ' + ' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + ' |' for row in rows
    ]
    yield from (lines[0], '|' + '---|' * len(widths), *lines[1:])


def main(names: Sequence[str]) -> int:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for name, version in columns(names):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[name, version] = column(name, version, Path(folder))
            except Absent as reason:
                print(f'{name}, Python {version}: left out, {reason}', file=sys.stderr)
    for line in table(found):
        print(line)
    return 0 if all(cell in ('span', 'run', 'same') for cells in found.values() for cell in cells.values()) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
