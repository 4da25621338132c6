# SPDX-License-Identifier: Apache-2.0
"""Every way to start a process: the child records into its own journal, under the span that started it where it can
know that, and neither parent nor child behaves otherwise than without us.

`pytest -s` prints the matrix.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lens_auto.record.reader import identity
from tests.helpers.program import SUPPORTED, Outcome, Program, function, python

WORK = """
import os
def outer(f): return f()
def step(what='step', hold=None):
    if hold: hold()
    return what
"""
CHILD = """
import sys, work
print(work.step(sys.argv[1]), flush=True)
sys.exit(len(sys.argv[1]))
"""
HEAD = """
import asyncio, multiprocessing, os, signal, subprocess, sys, threading, time
from concurrent.futures import ProcessPoolExecutor
import work
CHILD = [sys.executable, 'child.py', 'child']
def target():
    print(work.step('child'), flush=True)
    os._exit(5)
def job():
    return work.step('child')
def show(status): print('exit', status, flush=True)
def forked(child):
    sys.stdout.flush()
    pid = os.fork()
    if not pid: child()
    show(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
def waited(pid): show(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
def in_task(coroutine):
    asyncio.run(coroutine())
async def exec_():
    show(await (await asyncio.create_subprocess_exec(*CHILD)).wait())
async def shell_():
    show(await (await asyncio.create_subprocess_shell(' '.join(CHILD))).wait())
def process(method):
    p = multiprocessing.get_context(method).Process(target=target); p.start(); p.join(); show(p.exitcode)
def executor(method):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        print(pool.submit(job).result())
def mp_pool():
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        print(pool.apply(job))
"""
UNDER, ROOT, NOT = 'under the span', 'under the run', 'not reached'
STARTS = {
    'subprocess.run': ('show(subprocess.run(CHILD).returncode)', UNDER),
    'subprocess, env given': ('show(subprocess.run(CHILD, env={**os.environ, "X": "1"}).returncode)', UNDER),
    'subprocess, shell=True': ('show(subprocess.run(" ".join(CHILD), shell=True).returncode)', UNDER),
    'subprocess, close_fds=False': ('show(subprocess.run(CHILD, close_fds=False).returncode)', UNDER),
    'bash -c, more than one command': (
        'show(subprocess.run(["bash", "-c", "true && " + " ".join(CHILD) + "; exit $?"]).returncode)',
        UNDER,
    ),
    'env NAME=value python': ('show(subprocess.run(["env", "X=1", *CHILD]).returncode)', UNDER),
    'nohup in a new session': ('show(subprocess.run(["setsid", "-w", *CHILD]).returncode)', UNDER),
    'asyncio, exec': ('in_task(exec_)', UNDER),
    'asyncio, shell': ('in_task(shell_)', UNDER),
    'os.fork': ('forked(target)', UNDER),
    'os.fork, then execv': ('forked(lambda: os.execv(sys.executable, CHILD))', UNDER),
    'os.fork, then execve': ('forked(lambda: os.execve(sys.executable, CHILD, env={**os.environ, "X": "1"}))', UNDER),
    'os.fork, then execlp': ('forked(lambda: os.execlp("env", "env", *CHILD))', UNDER),
    'os.fork, then execvpe': ('forked(lambda: os.execvpe("env", ["env", *CHILD], os.environb))', UNDER),
    'os.posix_spawn': ('waited(os.posix_spawn(sys.executable, CHILD, os.environ))', UNDER),
    'os.posix_spawn, by bytes': ('waited(os.posix_spawn(sys.executable, CHILD, {**os.environb}, setsid=1))', UNDER),
    'os.posix_spawnp': ('waited(os.posix_spawnp("env", ("env", *CHILD), dict(os.environ)))', UNDER),
    'os.spawnv': ('show(os.spawnv(os.P_WAIT, sys.executable, CHILD))', UNDER),
    'os.spawnlpe, not waited for': ('waited(os.spawnlpe(os.P_NOWAIT, "env", "env", *CHILD, os.environ))', UNDER),
    'os.popen': (
        '(lambda pipe: (print(pipe.read()), show(pipe.close())))(os.popen(" ".join(CHILD)))',
        UNDER,  # it is a Popen with shell=True
    ),
    'os.system': ('show(os.waitstatus_to_exitcode(os.system(" ".join(CHILD))))', ROOT),
    'multiprocessing, fork': ('process("fork")', UNDER),
    'multiprocessing, spawn': ('process("spawn")', UNDER),
    'multiprocessing, forkserver': ('process("forkserver")', UNDER),
    'ProcessPoolExecutor, fork': ('executor("fork")', ROOT),
    'ProcessPoolExecutor, spawn': ('executor("spawn")', ROOT),
    'ProcessPoolExecutor, forkserver': ('executor("forkserver")', ROOT),
    'multiprocessing.Pool': ('mp_pool()', ROOT),
    'os.posix_spawn of python -I': (
        'waited(os.posix_spawn(sys.executable, [*CHILD[:1], "-I", *CHILD[1:]], os.environ))',
        NOT,
    ),
    'os.spawnv of python -S': ('show(os.spawnv(os.P_WAIT, sys.executable, [*CHILD[:1], "-S", *CHILD[1:]]))', NOT),
    'os.fork, then execv of python -E': (
        'forked(lambda: os.execv(sys.executable, [*CHILD[:1], "-E", *CHILD[1:]]))',
        NOT,
    ),
    'os.posix_spawn, environment emptied': ('waited(os.posix_spawn(sys.executable, CHILD, {"PYTHONPATH": "."}))', NOT),
    'os.spawnvpe of env -i': (
        'show(os.spawnvpe(os.P_WAIT, "env", ["env", "-i", "PYTHONPATH=.", *CHILD], os.environ))',
        NOT,
    ),
    'python -I': ('show(subprocess.run([sys.executable, "-I", *CHILD[1:]]).returncode)', NOT),
    'env -i python': ('show(subprocess.run(["env", "-i", "PYTHONPATH=.", *CHILD]).returncode)', NOT),
}
RULES = [function('outer', 'work:outer'), function('step', 'work:step', name=('arg', 'what'))]
MAIN = (
    HEAD
    + """
if __name__ == '__main__':
    work.outer(lambda: {start})
    assert 'LENS_PARENT' not in os.environ
"""
)


def place(outcome: Outcome, name: str = 'child') -> str:
    spans = {span.id: span for span in outcome.journal.spans}
    found = [span for span in spans.values() if span.name == name]
    if not found:
        return NOT
    [span] = found
    assert span.ended
    above = spans.get(span.parent)
    return UNDER if above is not None and above.name == 'outer' else ROOT


@pytest.mark.parametrize('version', SUPPORTED)
@pytest.mark.parametrize('start', STARTS)
def test_a_start_of_every_kind(tmp_path: Path, start: str, version: str) -> None:
    source, expected = STARTS[start]
    program = Program(tmp_path, {'work.py': WORK, 'child.py': CHILD, 'main.py': MAIN.replace('{start}', source)})
    interpreter = python(version)
    traced = program.traced(RULES, python=interpreter)
    plain = program.plain(python=interpreter)
    # Without us a forked pool's worker or an isolated child may fail; then it fails in the same way.
    assert traced.visible() == plain.visible()
    found = place(traced)
    print(f'\n{start:<34} {version}  {found:<15} same output and exit code', end='')
    assert found == expected
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []
    writers = {identity(path.name)[0] for path in (tmp_path / 'spool').glob('*.jnl')}  # pyright: ignore[reportOptionalSubscript]
    assert len(writers) == (1 if expected is NOT else 2)  # a journal of its own
    if expected is NOT:
        reasons = [row[5] for row in traced.processes if row[4] == 'stood_down']
        option = re.search('-[IES]$', start)
        wanted = f'started with {option[0]}' if option else 'started with an environment without ours'
        assert reasons == [wanted]


KILLED = (
    HEAD
    + """
def doomed():
    work.step('finished')
    work.step('open', hold=lambda: (ready(), signal.pause()))
def ready():
    open('ready', 'w').close()
def wait_for_it():
    import time
    while not os.path.exists('ready'): time.sleep(0.01)
def kill(pid): wait_for_it(); os.kill(pid, signal.{signal})
def run():
    if '{how}' == 'fork':
        pid = os.fork()
        if not pid: doomed()
        kill(pid); show(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    elif '{how}' == 'subprocess':
        p = subprocess.Popen([sys.executable, '-c', 'import main; main.doomed()'])
        kill(p.pid); show(p.wait())
    else:
        p = multiprocessing.get_context('{how}').Process(target=doomed); p.start()
        kill(p.pid); p.join(); show(p.exitcode)
if __name__ == '__main__':
    work.outer(run)
"""
)


@pytest.mark.parametrize('name', ['SIGTERM', 'SIGKILL'])
@pytest.mark.parametrize('how', ['fork', 'subprocess', 'spawn', 'forkserver'])
def test_a_killed_child_loses_nothing(tmp_path: Path, how: str, name: str) -> None:
    source = KILLED.replace('{how}', how).replace('{signal}', name)
    program = Program(tmp_path, {'work.py': WORK, 'main.py': source})
    traced = program.traced(RULES)
    (program.app / 'ready').unlink()
    assert traced.visible() == program.plain().visible()
    assert traced.journal.tree() == 'outer\n  finished\n  open...'


STORM = (
    HEAD
    + """
def many():
    for n in range(500):
        pid = os.fork()
        if not pid:
            work.step(str(n)); os._exit(0)
        children.append(pid)
    print(sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
children = []
work.outer(many)
"""
)


def test_five_hundred_forked_children(tmp_path: Path) -> None:
    traced = Program(tmp_path, {'work.py': WORK, 'main.py': STORM}).traced(RULES)
    assert traced.visible() == ('0\n', '', 0)
    outer, *steps = traced.journal.spans
    assert sorted(int(span.name) for span in steps) == list(range(500))
    assert {span.parent for span in steps} == {outer.id} and len({span.id for span in steps}) == 500


def test_children_that_record_nothing_leave_nothing(tmp_path: Path) -> None:
    source = STORM.replace('work.step(str(n)); ', '').replace('500', '50')
    traced = Program(tmp_path, {'work.py': WORK, 'main.py': source}).traced(RULES)
    assert traced.visible() == ('0\n', '', 0)
    assert len(list((tmp_path / 'spool').glob('*.jnl'))) == 1


def test_a_fork_while_other_threads_record(tmp_path: Path) -> None:
    source = (
        HEAD
        + """
stop = False
def busy():
    while not stop: work.step('busy'); time.sleep(0.0005)
def main():
    global stop
    threads = [threading.Thread(target=busy) for _ in range(4)]
    for t in threads: t.start()
    for n in range(30):
        pid = os.fork()
        if not pid:
            for _ in range(20): work.step(f'child {n}')
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    stop = True
    for t in threads: t.join()
work.outer(main)
"""
    )
    traced = Program(tmp_path, {'work.py': WORK, 'main.py': source}).traced(RULES)
    assert (traced.code, traced.journal.reports('fault')) == (0, []), traced.stderr
    names = traced.journal.names()
    assert [names.count(f'child {n}') for n in range(30)] == [20] * 30
    assert all(span.ended for span in traced.journal.spans)


HOLDING = (
    HEAD
    + """
import logging, warnings
warnings.simplefilter('ignore'); logging.basicConfig()
mutex, again, ready, over = threading.Lock(), threading.RLock(), threading.Event(), threading.Event()
def holds():
    # What another thread holds stays held in the child: the program's affair, and none of ours may wait for it.
    with again, logging.root.handlers[0].lock:
        ready.set(); over.wait()
def holder():
    with mutex:
        pid = os.fork()
        if not pid:
            signal.alarm(20)
            work.step('child of a holder')
            import importing
            print(mutex.locked(), again.acquire(blocking=False), flush=True)
            os._exit(0)
    show(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
other = threading.Thread(target=holds); other.start(); ready.wait()
thread = threading.Thread(target=work.outer, args=(holder,)); thread.start(); thread.join()
import importing  # forks in its own body, under the import's lock
over.set(); other.join()
"""
)
IMPORTING = """
import os, sys, work
sys.stdout.flush()
pid = os.fork()
if not pid:
    work.step('child of an import'); os._exit(0)
os.waitpid(pid, 0)
"""


@pytest.mark.parametrize('version', SUPPORTED)
def test_a_fork_from_a_thread_that_holds_locks(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'work.py': WORK, 'importing.py': IMPORTING, 'main.py': HOLDING})
    rules = [*RULES, function('named', 'importing:absent')]
    traced = program.traced(rules, python=python(version))
    assert traced.visible() == program.plain(python=python(version)).visible()
    assert traced.stdout.startswith('True False\nexit 0\n')
    assert traced.journal.tree() == 'outer\n  child of a holder\n  child of an import\nchild of an import'


WAKING = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter('ignore')
def first(): import work
thread = threading.Thread(target=first)
pids = []
thread.start()
while thread.is_alive() and len(pids) < 100:
    pid = os.fork()
    if not pid:
        signal.alarm(10)
        import late
        os._exit(0)
    pids.append(pid); time.sleep(0.001)
thread.join()
print({os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids} or {0})
"""


@pytest.mark.parametrize('version', SUPPORTED)
def test_a_fork_while_another_thread_loads_us(tmp_path: Path, version: str) -> None:
    files = {'work.py': WORK, 'late.py': 'def step(): pass\n', 'main.py': WAKING}
    program = Program(tmp_path, files)
    for _ in range(3):
        traced = program.traced([*RULES, function('late', 'late:step')], python=python(version))
        assert traced.visible() == ('{0}\n', '', 0)
        # Who was forked in the middle of it does without us, and is on the list.
        assert {row[5] for row in traced.processes} <= {'', 'forked while another thread loaded stage 2'}


def test_a_venv_that_is_activated_in_a_shell(tmp_path: Path) -> None:
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', str(tmp_path / 'venv')], check=True)
    words = f'source {tmp_path}/venv/bin/activate && python child.py child && exit 3'
    source = HEAD + f'work.outer(lambda: show(subprocess.run(["bash", "-c", {words!r}]).returncode))\n'
    files = {'work.py': WORK, 'child.py': CHILD.replace('sys.exit', 'print(sys.prefix); sys.exit'), 'main.py': source}
    program = Program(tmp_path, files)
    traced = program.traced(RULES)
    assert traced.visible() == program.plain().visible()
    assert f'{tmp_path}/venv\n' in traced.stdout
    assert traced.journal.tree() == 'outer\n  child'


def test_exec_in_place_goes_on_in_a_journal_of_the_same_process(tmp_path: Path) -> None:
    source = HEAD + "work.step('before')\nsys.stdout.flush()\nos.execv(sys.executable, CHILD)\n"
    program = Program(tmp_path, {'work.py': WORK, 'child.py': CHILD, 'main.py': source})
    traced = program.traced(RULES)
    assert traced.visible() == program.plain().visible()
    assert sorted(traced.journal.names()) == ['before', 'child']
    names = [identity(path.name) for path in (tmp_path / 'spool').glob('*.jnl')]
    assert len({name[0] for name in names if name}) == 1 and len(names) == 2


def test_a_span_that_is_open_at_an_exec_in_place_is_known_and_has_no_end(tmp_path: Path) -> None:
    source = HEAD + 'work.outer(lambda: (sys.stdout.flush(), os.execv(sys.executable, CHILD)))\n'
    program = Program(tmp_path, {'work.py': WORK, 'child.py': CHILD, 'main.py': source})
    traced = program.traced(RULES)
    assert traced.visible() == program.plain().visible()
    assert traced.journal.tree() == 'outer...\n  child'
    assert traced.journal.reports('exec') == [{}]


LOOKS = """
import copy, inspect, os, pickle, posix, sys, traceback, types
import work
names = ('execv', 'execve', 'posix_spawn', 'posix_spawnp')
class Holder: spawn = os.posix_spawn
def looks():
    for name in names:
        one = getattr(os, name)
        print(one, one.__name__, one.__qualname__, one.__module__, one.__doc__, one.__text_signature__, one.__self__)
        print(isinstance(one, types.BuiltinFunctionType), inspect.isbuiltin(one), inspect.isfunction(one))
        try: print(inspect.signature(one))
        except ValueError as error: print(error)
        print(one is getattr(posix, name), one == getattr(posix, name), name in dir(os))
        print(pickle.dumps(one), pickle.loads(pickle.dumps(one)) is one, copy.deepcopy(one) is one, {one: 1}[one])
        for args in ((), (1,), ('no such', ['a']), ('/no/such', ['a'], {}), ('/bin/true', [], {}),
                     ('/bin/true', 'a', {}), ('/bin/true', ['a'], 3), ('/bin/true', ['a'], {1: 2}),
                     (b'/no/such', [b'a'], {b'a': b'b'})):
            try: one(*args)
            except BaseException: print(traceback.format_exc())
    print(Holder().spawn('/bin/true', ['true'], {}) > 0)
    try: os.execvp('no-such-program', ['a'])
    except FileNotFoundError as error:
        print(error, sys.version_info > (3, 11) and len(traceback.extract_tb(error.__traceback__)))
    print(os.spawnv(os.P_WAIT, '/no/such', ['a']))
work.outer(looks)
"""


@pytest.mark.parametrize('version', SUPPORTED)
def test_functions_of_the_interpreter_are_as_without_us(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'work.py': WORK, 'main.py': LOOKS})
    traced = program.traced(RULES, python=python(version))
    plain = program.plain(python=python(version))
    assert plain.code == 0, plain.stderr
    # On 3.10 a traceback shows our frame, see docs/limits.md.
    shown = [re.sub(r'  File "[^"]*builtin.py".*\n.*\n', '', one.stdout) for one in (traced, plain)]
    assert version != '3.10' or shown[0] != traced.stdout
    assert shown[0].splitlines() == shown[1].splitlines() and traced.stderr == plain.stderr
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []
    assert all(span.ended for span in traced.journal.spans)


def test_they_are_the_interpreters_own_where_nothing_is_recorded(tmp_path: Path) -> None:
    source = 'import os, work\nwork.step()\nprint(type(os.execv), type(os.posix_spawn))\n'
    program = Program(tmp_path, {'work.py': WORK, 'main.py': source})
    off = program.traced(RULES, LENS_TRACES_ENABLED='0')
    assert off.visible() == program.plain().visible()
    assert program.traced(RULES).visible() != off.visible()


def test_a_daemon_that_leaves_its_parent_behind(tmp_path: Path) -> None:
    source = (
        HEAD
        + """
def daemonise():
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        if os.fork(): os._exit(0)
        for fd in range(3, 100):
            if fd != w:
                try: os.close(fd)
                except OSError: pass
        work.step('in the daemon')
        os.write(w, b'done'); os._exit(0)
    os.waitpid(pid, 0); os.close(w)
    print(os.read(r, 10))
work.outer(daemonise)
"""
    )
    program = Program(tmp_path, {'work.py': WORK, 'main.py': source})
    traced = program.traced(RULES)
    assert traced.visible() == program.plain().visible()
    assert traced.journal.tree() == 'outer\n  in the daemon'


def test_a_child_tells_its_own_children_of_itself(tmp_path: Path) -> None:
    source = HEAD + "work.outer(lambda: show(subprocess.run([sys.executable, 'middle.py']).returncode))\n"
    middle = HEAD + "work.step('middle', hold=lambda: show(subprocess.run(CHILD).returncode))\nsubprocess.run(CHILD)\n"
    program = Program(tmp_path, {'work.py': WORK, 'child.py': CHILD, 'main.py': source, 'middle.py': middle})
    traced = program.traced(RULES)
    assert traced.visible() == program.plain().visible()
    # The second one was started by no span of the child's own.
    assert traced.journal.tree() == 'outer\n  middle\n    child\nchild'


def test_other_pythons_stand_down_and_are_listed(tmp_path: Path) -> None:
    old = [path for version in ('3.8', '3.9', '2.7') for path in [_other(version)] if path]
    if not old:
        pytest.skip('no python older than ours on this machine')
    source = HEAD + f"work.outer(lambda: show(subprocess.run([{old[0]!r}, 'old.py']).returncode))\n"
    files = {'work.py': WORK, 'main.py': source, 'old.py': 'import work, sys\nwork.step()\nprint("ran")\n'}
    program = Program(tmp_path, files)
    traced = program.traced(RULES)
    assert traced.visible() == program.plain().visible()
    assert [row[4] for row in traced.processes] == ['armed', 'stood_down']


def _other(version: str) -> str | None:
    versions = Path(os.environ.get('PYENV_ROOT', Path.home() / '.pyenv')) / 'versions'
    return next((str(path) for path in sorted(versions.glob(f'{version}*/bin/python{version}'))), None)
