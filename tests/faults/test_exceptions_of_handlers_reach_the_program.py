# SPDX-License-Identifier: Apache-2.0
"""What a signal handler raises, or another thread injects, while Python is inside our code is the program's: none lost.

How a program times out a reward check is SIGALRM and a TimeoutError; swallowed as a fault of ours it would hang.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.faults.tries import TRIES, Tries
from tests.helpers.program import Program, every_python, function, python

WORK = """
    class Answer:
        text = 'x' * 10

        @property
        def slow(self):
            return sum(range(300))

    def check(answer):
        return answer

    def steps(answer):
        yield answer
"""
TEXT = ('.', ('arg', 'answer'), 'text')
RULES = [
    function(
        'a',
        'work:check',
        name='check',
        attributes={
            'size': ('call', 'len', (TEXT,)),
            'slow': ('.', ('arg', 'answer'), 'slow'),
            'none': ('.', ('arg', 'answer'), 'none'),
        },
    ),
    function('b', 'work:steps', name='steps', attributes={'size': ('call', 'len', (TEXT,))}),
]
ALARMS = """
    import functools, signal, sys, work

    {kind}

    raised = caught = 0

    def handler(*_):
        global raised
        raised += 1
        raise {error}

    signal.signal(signal.SIGALRM, {handler})
    answer = work.Answer()
    while raised < 150:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0011)
            while True:
                {body}
        except {error} as error:
            caught += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(raised - caught)
    work.check(work.check)
    print(work.check.__code__.co_names.count('_lens_rt'))
"""


def alarms(folder: Path, version: str, body: str, error: str, kind: str = '', handler: str = 'handler') -> None:
    main = ALARMS.format(body=body, error=error, kind=kind, handler=handler)
    program = Program(folder, {'work.py': WORK, 'main.py': main})
    executable = python(version)
    assert program.plain(python=executable).stdout.split()[0] == '0'
    outcome = program.traced(RULES, python=executable)
    assert (outcome.stdout.split(), outcome.stderr, outcome.code) == (['0', '1'], '', 0)
    assert outcome.journal.reports('fault') == []
    assert outcome.journal.reports('unpatched') == []
    # Nothing stays open above the last call, and the call is recorded.
    last = outcome.journal.spans[-1]
    assert last.name == 'check' and last.ended and last.parent == bytes.fromhex('cd' * 8)
    assert last.attributes.get('size') is None


@every_python
def test_alarms_in_a_loop_that_is_nearly_all_ours(tmp_path: Path, version: str) -> None:
    alarms(tmp_path, version, 'work.check(answer)', 'TimeoutError')


@every_python
def test_alarms_over_generators_of_a_handler_behind_a_partial(tmp_path: Path, version: str) -> None:
    handler = 'functools.partial(handler, 1)'
    alarms(tmp_path, version, 'list(work.steps(answer))', 'AttributeError', handler=handler)


@every_python
def test_an_exception_class_of_the_program(tmp_path: Path, version: str) -> None:
    alarms(tmp_path, version, 'work.check(answer)', 'Stop', kind='class Stop(Exception): pass')


@every_python
def test_exceptions_that_another_thread_injects(tmp_path: Path, version: str) -> None:
    main = """
        import ctypes, threading, time, work

        class Stop(Exception): pass

        def inject(thread):
            return ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Stop))

        lost = 0
        for n in range(60):
            state = []

            def loop():
                answer = work.Answer()
                try:
                    state.append(1)
                    end = time.monotonic() + 5
                    while time.monotonic() < end:
                        for _ in range(50): work.check(answer)
                    state.append('lost')
                except Stop:
                    state.append('caught')

            thread = threading.Thread(target=loop)
            thread.start()
            while not state: time.sleep(0)
            time.sleep(0.0003 * (n % 7))
            inject(thread.ident)
            thread.join()
            lost += state[-1] != 'caught'
            if lost: break
        print(lost)
        work.check(1)
    """
    program = Program(tmp_path, {'work.py': WORK, 'main.py': main})
    # No property: what is injected while one runs for us cannot be told from what the property itself raises.
    rule = function(
        'a', 'work:check', attributes={'size': ('call', 'len', (TEXT,)), 'none': ('.', ('arg', 'answer'), 'none')}
    )
    outcome = program.traced([rule], python=python(version))
    assert (outcome.stdout, outcome.stderr) == ('0\n', '')
    assert outcome.journal.reports('fault') == []


@every_python
def test_a_termination_handler_that_raises(tmp_path: Path, version: str) -> None:
    main = """
        import os, signal, sys, work

        class Ended(Exception): pass

        def handler(number, frame):
            signal.signal(number, signal.SIG_DFL)
            raise Ended

        signal.signal(signal.SIGTERM, handler)
        n = 0
        try:
            while True:
                n += 1
                work.task(7)
                if n == 50: os.write(1, b'1\\n')
        except Ended:
            sys.exit(5)
    """
    tries = Tries(tmp_path, main)
    for one in tries.run(python(version), TRIES // 2, lambda child, random: child.terminate()):
        assert one.code == 5, one.stderr
        assert one.journal.reports('fault') == []


@every_python
def test_alarms_while_modules_are_patched(tmp_path: Path, version: str) -> None:
    """Wherever in stage 2 it strikes, the import fails as it would have, and the next one is patched, once."""
    main = """
        import importlib, signal, sys
        for n in range(150):
            class Late(Exception): pass
            def handler(*_): raise Late
            signal.signal(signal.SIGALRM, handler)
            try:
                # Again after a while: what strikes a weakref callback of importlib's own locks, Python itself drops.
                signal.setitimer(signal.ITIMER_REAL, 0.00004 * (n + 1), 1.0)
                import work
                work = importlib.reload(work)
                while True: pass
            except Late:
                signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        import work
        work = importlib.reload(work)  # a reload that the last alarm struck has left a module that is half of each
        work.check(7)
        print(work.check.__code__.co_names.count('_lens_rt'))
    """
    program = Program(tmp_path, {'work.py': WORK, 'main.py': main})
    outcome = program.traced(RULES, python=python(version))
    callback = '(?:_get_module_lock|_WeakValueDictionary)'
    dropped = re.compile(rf'Exception ignored in: <function {callback}.*?\n(?:__main__.)?Late: ?\n', re.DOTALL)
    assert (outcome.stdout, dropped.sub('', outcome.stderr)) == ('1\n', '')
    assert outcome.journal.reports('fault') == []
    assert outcome.journal.names().count('check') == 1
