# SPDX-License-Identifier: Apache-2.0
"""The roll-call: Python processes of the run that never reported, found by the spool in their environment.

Stage 1 writes a line in every process it runs in. Where a process runs without it (another PYTHONPATH, an isolated
interpreter) only the process tree can tell, so it is looked at every other second. A process's environment is compared
in memory and never kept.
"""

from __future__ import annotations

import os
from itertools import islice
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from lens_auto.collect.ledger import Ledger
    from lens_auto.collect.totals import ProcessRow

    # What tells a program's memory from any other's, and is inherited by a fork: (start of code, start of stack).
    Image = tuple[bytes, bytes]

UNREPORTED = 'unreported'
WORKER = 'worker'
RAY = 'ray'  # role of Ray's own helpers
_EVERY = 2.0
_FIRST = _SOON = 0.5
_GROWN = 2.0  # seconds in which a Python that can report has reported
_MOST = 5000
# Helpers as stage 1 knows them: those that run isolated leave no line that says so.
MODULES = ('pip', 'venv', 'ensurepip', 'virtualenv', 'uv', 'compileall', 'py_compile')
COMMANDS = ('multiprocessing.resource_tracker', 'multiprocessing.semaphore_tracker')
PROGRAMS = (
    *('pip', 'pip3', 'uv', 'uvx', 'virtualenv', 'ninja', 'cmake', 'meson', 'conda', 'mamba'),
    *('lens-instrument', 'lens-rules'),
)
RAY_PROGRAMS = ('log_monitor.py', 'monitor.py', 'dashboard.py', 'agent.py', 'main.py', 'setup_worker.py')
_INSTALLERS = {*MODULES, '__pip-runner__.py', '_in_process.py'} | {'pip', 'pip3'}
# Ray gives its own agents such a title too.
_AGENTS = (b'ray::DashboardAgent', b'ray::RuntimeEnvAgent')
_SETUP = 'helper: setup_worker.py'
_WORKER_FILE = b'ray/_private/workers/default_worker.py'
_ISOLATED = {
    'I': 'python runs isolated (-I)',
    'E': 'python ignores PYTHONPATH (-E)',
    'S': 'python runs without site (-S)',
}


def took_part(row: ProcessRow) -> bool:
    """Whether stage 1 armed the process.

    Args:
        row: The process.
    """
    return row.outcome not in ('stood_down', UNREPORTED)


def counts(rows: Iterable[ProcessRow]) -> dict[str, Any]:
    """Of Ray's workers, and of the other Python processes: how many there were, and why some were not instrumented.

    Args:
        rows: The run's processes.
    """
    found: dict[str, Any] = {}
    for kind in ('workers', 'processes'):
        found[kind] = {'seen': 0, 'instrumented': 0, 'not': []}
    reasons: dict[str, dict[str, int]] = {'workers': {}, 'processes': {}}
    for row in rows:
        kind = 'workers' if row.role == WORKER else 'processes'
        if row.role == RAY or (not took_part(row) and row.reason.startswith('helper: ')):
            continue
        found[kind]['seen'] += 1
        if took_part(row):
            found[kind]['instrumented'] += 1
        else:
            why = readable(row.reason)
            reasons[kind][why] = reasons[kind].get(why, 0) + 1
    for kind, some in reasons.items():
        ranked = sorted(some.items(), key=lambda one: (-one[1], one[0]))
        found[kind]['not'] = [{'reason': reason, 'count': count} for reason, count in ranked]
    return found


def readable(reason: str) -> str:
    """A reason as the summary tells it.

    Args:
        reason: As stage 1 or the roll-call gave it.
    """
    words = reason.split()
    if words[:1] == ['python'] and words[3:] == ['is', 'not', 'supported']:
        return f'venv has {"Python" if words[1] == "cpython" else words[1]} {words[2]}'
    return reason or 'no reason given'


class _Seen:
    """A Python of the run without a line of its own, as of the last look."""

    __slots__ = ('command', 'pid', 'program', 'reason', 'since', 'start', 'worker')

    def __init__(
        self, pid: int, start: int, worker: bool, program: str, command: bytes, reason: str, since: float
    ) -> None:
        self.pid = pid
        self.start = start
        self.worker = worker
        self.program = program
        self.command = command
        self.reason = reason
        self.since = since


class Rollcall:
    """Looks for processes of the run that did not report, and writes them into the ledger."""

    def __init__(self, spool: str, host: str, ledger: Ledger, proc: str = '/proc') -> None:
        """Begin; nothing is read before `look`.

        Args:
            spool: The spool, by which processes of the run are known.
            host: This node.
            ledger: Knows who reported; gets a row for each process that did not.
            proc: The process file system.
        """
        self._word = b'LENS_SPOOL=' + os.fsencode(spool) + b'\0'
        self._host = host
        self._ledger = ledger
        self._proc = proc
        self._met = 0  # how many rows of the ledger were looked up
        self._next = monotonic() + _FIRST
        self._images: set[Image] = set()
        self._strangers: set[int] = set()  # of other runs, or no Python: looked at once they were grown
        self._settled: set[int] = set()  # reported, and what they are is known
        self._seen: dict[tuple[int, int], _Seen] = {}
        self._said: set[tuple[int, int]] = set()

    def step(self) -> None:
        """Look up processes that reported just now; look around when it is time."""
        if len(self._ledger.processes) > self._met:
            self._meet()
        now = monotonic()
        if now >= self._next:
            self.look(now)
            self._next = monotonic() + _EVERY

    def _meet(self) -> None:
        """Remember what forks of the processes that reported look like, while these are alive."""
        for pid, start in islice(self._ledger.processes, self._met, None):
            stat = self._stat(pid)
            if stat is not None and int(stat[19]) == start:
                self._remember(stat)
                argv = self._read(pid, 'cmdline')
                if is_worker(argv):
                    self._ledger.processes[pid, start].role = WORKER
            if self._ledger.processes[pid, start].reason == _SETUP:
                # Its command line is to be read before the worker puts a title in its place.
                self._next = min(self._next, monotonic() + _SOON)
        self._met = len(self._ledger.processes)

    def _remember(self, stat: list[bytes]) -> None:
        image = _image(stat)
        if image is not None and len(self._images) < _MOST:
            self._images.add(image)

    def look(self, now: float | None = None) -> None:
        """Look at all processes once.

        Args:
            now: By `monotonic`; the present by default.
        """
        now = monotonic() if now is None else now
        pids = {int(name) for name in os.listdir(self._proc) if name.isdigit()} - {os.getpid()}
        self._strangers &= pids
        self._settled &= pids
        for pid in sorted(pids - self._strangers - self._settled):
            stat = self._stat(pid)
            if stat is None:
                continue
            start = int(stat[19])
            grown = _age(start) >= _GROWN
            environ = self._environ(pid, stat)
            if self._word not in environ or not self._is_python(pid):
                # A young one may yet become a program of the run.
                if grown and self._word not in environ and len(self._strangers) < _MOST * 10:
                    self._strangers.add(pid)
                continue
            if stat[0] not in (b'Z', b'X'):
                self._judge(pid, start, stat, environ, now, grown)
        self._conclude(pids)

    def _judge(self, pid: int, start: int, stat: list[bytes], environ: bytes, now: float, grown: bool) -> None:
        argv = self._read(pid, 'cmdline')
        worker = is_worker(argv)
        row = self._ledger.processes.get((pid, start))
        mine = row is not None and row.outcome != UNREPORTED
        if mine and row is not None and worker:
            row.role = WORKER
        # Ray's setup_worker.py stands down, and becomes a worker by exec: what it said is not the worker's word.
        if mine and row is not None and not (worker and row.reason == _SETUP):
            self._remember(stat)
            if grown:
                self._settled.add(pid)
            return
        if _image(stat) in self._images and not worker:
            return  # a fork of one that reported: it is what its parent is
        told = b'LENS_ENABLED=1\0' in environ or (argv.startswith(b'ray::') and b'LENS_ENABLED=' not in environ)
        if not told or is_helper(argv) or self._installs(int(stat[1])):
            return
        seen = self._seen.get((pid, start))
        # The title of a worker says what it does just now.
        if seen is None or seen.worker != worker or not (worker or seen.command == argv):
            if len(self._seen) >= _MOST:
                return
            program = program_of(argv)[1] or 'python'
            if not worker and program != 'python':
                program = os.path.basename(program)
            program = 'default_worker.py' if worker else program
            seen = _Seen(pid, start, worker, program, argv, reason(argv, environ), now)
            self._seen[pid, start] = seen
        if now - seen.since >= _GROWN or (row is None and grown):
            self._say(seen)

    def _conclude(self, pids: set[int]) -> None:
        """Whoever was seen and has ended will not report any more; whoever reported since is no concern of ours."""
        for who, seen in list(self._seen.items()):
            row = self._ledger.processes.get(who)
            if row is not None and took_part(row):
                del self._seen[who]
            elif seen.pid not in pids:
                if row is None or row.reason == _SETUP:
                    self._say(seen)
                del self._seen[who]

    def finish(self) -> None:
        """The run is over: whoever was seen without a line, and is gone, had none."""
        self._conclude({pid for pid, start in self._seen if self._started(pid) == start})

    def _say(self, seen: _Seen) -> None:
        who = (seen.pid, seen.start)
        if who not in self._said:
            self._said.add(who)
            role = WORKER if seen.worker else 'python'
            self._ledger.missed((self._host, *who), role, seen.program, seen.reason)

    def _installs(self, pid: int) -> bool:
        """Whether a process, or who started it, installs packages: what such a one runs is no part of the run."""
        for _ in range(4):
            if pid <= 1:
                return False
            option, program, _ = program_of(self._read(pid, 'cmdline'))
            name = os.path.basename(program) if not option else program.split('.')[0]
            if name in _INSTALLERS and self._is_python(pid):
                return True
            stat = self._stat(pid)
            if stat is None:
                return False
            pid = int(stat[1])
        return False

    def _started(self, pid: int) -> int:
        stat = self._stat(pid)
        return int(stat[19]) if stat is not None and stat[0] not in (b'Z', b'X') else 0

    def _stat(self, pid: int) -> list[bytes] | None:
        fields = self._read(pid, 'stat').rpartition(b')')[2].split()
        return fields if len(fields) > 25 else None

    def _environ(self, pid: int, stat: list[bytes]) -> bytes:
        """Its environment; of one whose title has overwritten a part of it, that of its parent as well."""
        environ = self._read(pid, 'environ')
        if self._word not in environ and environ and self._read(pid, 'cmdline').startswith(b'ray::'):
            # Nothing of the parent's but our own: what else it has need not be this one's.
            above = self._read(int(stat[1]), 'environ')
            if self._word in above:
                environ += b'\0' + self._word
        return environ

    def _is_python(self, pid: int) -> bool:
        try:
            name = os.path.basename(os.readlink(f'{self._proc}/{pid}/exe'))
        except OSError:
            return False
        return name.startswith(('python', 'pypy'))

    def _read(self, pid: int, name: str) -> bytes:
        try:
            with open(f'{self._proc}/{pid}/{name}', 'rb') as file:
                return file.read()
        except OSError:
            return b''  # another user's, or gone


def _image(stat: list[bytes]) -> Image | None:
    code, stack = stat[23], stat[25]
    return (code, stack) if len(stack) > 1 else None


def _age(start: int) -> float:
    import time

    return time.clock_gettime(time.CLOCK_BOOTTIME) - start / os.sysconf('SC_CLK_TCK')


def program_of(argv: bytes) -> tuple[str, str, str]:
    """What a Python was asked to run: ('m' | 'c' | '', module, command or script, its own option letters).

    Args:
        argv: Its command line, a zero byte after each word.
    """
    words = iter(os.fsdecode(argv.rstrip(b'\0')).split('\0')[1:])
    letters = ''
    for word in words:
        if word[:1] != '-' or word == '-':
            return '', word, letters
        if word[:2] == '--':
            if word == '--check-hash-based-pycs':
                next(words, '')
            continue
        for index, letter in enumerate(word[1:], 2):
            if letter in 'mcWX':
                value = word[index:] or next(words, '')
                if letter in 'mc':
                    return letter, value, letters
                break
            letters += letter
    return '', '', letters


def is_worker(argv: bytes) -> bool:
    """Whether a command line is that of a worker of Ray, which names itself `ray::` and what it does.

    Args:
        argv: The command line.
    """
    if argv.startswith(b'ray::'):
        return not argv.startswith(_AGENTS)
    if _WORKER_FILE not in argv:
        return False
    option, program, _ = program_of(argv)
    return not option and program.endswith(_WORKER_FILE.decode())


def is_helper(argv: bytes) -> bool:
    """Whether a command line is that of a program that takes part in nobody's run, as stage 1 judges.

    Args:
        argv: The command line.
    """
    if argv.startswith(_AGENTS):
        return True
    option, program, _ = program_of(argv)
    if option == 'm':
        return program.split('.')[0] in MODULES
    if option == 'c':
        return any(command in program for command in COMMANDS)
    name = os.path.basename(program)
    if name in PROGRAMS or ('/ray/' in program and name in RAY_PROGRAMS):
        return True
    return 'torch/_inductor/compile_worker' in program or 'triton/backends' in program


def reason(argv: bytes, environ: bytes) -> str:
    """Why a Python of the run did not run stage 1, as far as it shows from outside.

    Args:
        argv: Its command line.
        environ: Its environment.
    """
    letters = '' if argv.startswith(b'ray::') else program_of(argv)[2]
    for letter, said in _ISOLATED.items():
        if letter in letters:
            return said
    path = next((item[11:] for item in environ.split(b'\0') if item.startswith(b'PYTHONPATH=')), b'')
    if not path and argv.startswith(b'ray::'):
        return 'did not start our stage 1'  # a title overwrites the first of the environment
    if not path:
        return 'its PYTHONPATH was removed'
    if not any(_is_ours(entry) for entry in path.split(b':')):
        return 'its PYTHONPATH was replaced'
    return 'did not start our stage 1'


def _is_ours(entry: bytes) -> bool:
    """Whether a folder holds stage 1."""
    if not entry.startswith(b'/'):
        return False
    try:
        with open(entry + b'/sitecustomize.py', 'rb') as file:
            return b'Stage 1 of lens-auto' in file.read(400)
    except OSError:
        return False
