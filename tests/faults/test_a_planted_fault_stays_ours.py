# SPDX-License-Identifier: Apache-2.0
"""An exception planted in each part that lives in the traced process: the program is as without us, and it is reported.

The package is copied and one function of the copy raises at its first statement; the product holds no hooks for this.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.tries import WORK
from tests.helpers.program import (
    HOME,
    STAGE_1,
    Outcome,
    Program,
    every_python,
    function,
    label,
    logger,
    metric,
    python,
    timer,
)

TOKEN = 'sk-planted0123456789abcdef'
FILES = {
    'work.py': WORK
    + """
    class Timer:
        def start(self, label):
            self.label = label

        def stop(self, label):
            return label

    def steps(count):
        for n in range(count):
            yield n

    def fails(n):
        raise ValueError(f'no {n}')

    def log(metrics, step):
        print(step, metrics)
""",
    'main.py': """
    import sys
    import work

    timer = work.Timer()

    def body(count):
        for n in range(count):
            timer.start('phase')
            print(work.task(n), list(work.steps(2)), timer.stop('phase'))
            try:
                work.fails(n)
            except ValueError as error:
                print('caught', error)
            work.log({'loss': 0.5 * n}, n)

    work.outer(body, 5)
    sys.exit(3)
    """,
}
RULES = [
    function('a', 'work:task', name='task', attributes={'n': ('+', ('arg', 'n'), ('c', 1))}),
    function('b', 'work:outer', name='outer'),
    function('c', 'work:steps', name='steps'),
    function('d', 'work:fails', name='fails'),
    timer(
        'e',
        pair=[('work:Timer.start', 'Timer.stop')],
        labels={'phase': label('phase')},
    ),
    logger('f', 'work:log', {'loss': metric('rl.loss')}),
]

# File, function, and where the fault is said: a word of the journal's fault records, or of the roll-call.
PLANTS = [
    ('sitecustomize/sitecustomize.py', '_reason', 'processes.tsv'),
    ('rules/plan.py', 'parse', 'processes.tsv'),
    ('hook/activate.py', 'start', 'processes.tsv'),
    ('settings/project.py', 'from_environment', 'processes.tsv'),
    ('hook/loader.py', 'PatchingLoader.__init__', 'finder'),
    ('hook/loader.py', '_give_back', 'loader'),
    ('hook/patches.py', 'Patches.module', 'patch'),
    ('hook/resolve.py', 'resolve', 'patch'),
    ('wrap/code.py', 'wrapped', 'patch'),
    ('wrap/site.py', 'Site.open', 'enter'),
    ('wrap/site.py', 'Site._start', 'enter'),
    ('wrap/site.py', 'Site.leave', 'leave'),
    ('wrap/site.py', 'Site.fail', 'leave'),
    ('wrap/expression.py', 'scalar', 'attribute'),
    ('wrap/timer.py', 'TimerSite.started', 'leave'),
    ('wrap/timer.py', 'TimerSite.stopped', 'leave'),
    ('wrap/logger.py', 'LoggerSite.returned', 'leave'),
    ('record/recorder.py', 'Recorder.open_under', 'enter'),
    ('record/recorder.py', 'Recorder.close', 'leave'),
    ('record/recorder.py', 'Recorder.point', 'leave'),
    ('record/recorder.py', 'exception_event', 'leave'),
    ('record/journal.py', 'Journal.put', 'processes.tsv'),
    ('record/journal.py', 'Journal._open_segment', 'processes.tsv'),
    ('record/memory.py', 'map_shared', 'processes.tsv'),
    ('record/recorder.py', 'Recorder.report', 'processes.tsv'),
]


class Copy:
    """The package and stage 1, copied, with one function that raises.

    Args:
        folder: An empty folder.
        file: A file of the package, or of stage 1.
        name: Qualified name of a function in it.
    """

    def __init__(self, folder: Path, file: str, name: str) -> None:
        leave_out = shutil.ignore_patterns('__pycache__')
        shutil.copytree(HOME, folder / 'lens_auto', ignore=leave_out)
        shutil.copytree(STAGE_1, folder / 'sitecustomize', ignore=leave_out)
        self.folder = folder
        path = folder / file if file.startswith('sitecustomize') else folder / 'lens_auto' / file
        tree = ast.parse(path.read_text())
        target = next(node for found, node in _functions(tree, '') if found == name)
        first = int(ast.get_docstring(target) is not None)
        target.body.insert(first, ast.parse(f'raise RuntimeError("{TOKEN}")').body[0])
        path.write_text(ast.unparse(tree))

    def run(self, program: Program, executable: str) -> Outcome:
        path = f'{self.folder / "sitecustomize"}:{program.app}'
        return program.traced(RULES, python=executable, PYTHONPATH=path, LENS_HOME=str(self.folder / 'lens_auto'))


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f'{prefix}{child.name}.')


def everything(spool: Path) -> bytes:
    return b''.join(path.read_bytes() for path in sorted(spool.iterdir()))


@every_python
def test_the_program_is_as_without_us_and_the_fault_is_told_once(tmp_path: Path, version: str) -> None:
    executable = python(version)
    plain = Program(tmp_path / 'plain', FILES).plain(python=executable)
    assert plain.code == 3 and plain.stdout.count('caught') == 5
    wrong: list[str] = []
    for number, (file, name, where) in enumerate(PLANTS):
        folder = tmp_path / str(number)
        program = Program(folder / 'program', FILES)
        outcome = Copy(folder / 'copy', file, name).run(program, executable)
        told = [fault['where'] for fault in outcome.journal.reports('fault')]
        reasons = ' '.join(row[5] for row in outcome.processes)
        if outcome.visible() != plain.visible():
            wrong.append(f'{file} {name}: the program differs: {outcome.visible()}')
        elif where == 'processes.tsv':
            if 'RuntimeError' not in reasons:
                wrong.append(f'{file} {name}: not in the roll-call: {outcome.processes}')
        elif where not in told:
            wrong.append(f'{file} {name}: not in the journal: {outcome.journal.reports("fault")} {reasons}')
        places = [(fault['where'], fault['key']) for fault in outcome.journal.reports('fault')]
        if len(places) != len(set(places)):
            wrong.append(f'{file} {name}: told more than once: {places}')
        if TOKEN.encode() in everything(program.spool):
            wrong.append(f'{file} {name}: the message of the exception is in the spool')
    assert not wrong, '\n'.join(wrong)


def test_a_site_that_failed_is_out_of_the_process_and_the_others_go_on(tmp_path: Path) -> None:
    program = Program(tmp_path / 'program', FILES)
    program.write(
        {
            'main.py': FILES['main.py'].replace(
                'sys.exit(3)', 'print(work.log.__code__.co_filename, work.task.__code__.co_consts)'
            )
        }
    )
    outcome = Copy(tmp_path / 'copy', 'wrap/logger.py', 'LoggerSite.returned').run(program, python('3.11'))
    assert outcome.code == 0
    assert len(outcome.journal.reports('fault')) == 1
    assert [r['target'] for r in outcome.journal.reports('unpatched')] == ['work:log']
    assert outcome.journal.names().count('task') == 5
    (fault,) = outcome.journal.reports('fault')
    assert fault['type'] == 'RuntimeError' and 'returned' in fault['frames'] and fault['count'] == 1


@pytest.mark.parametrize('where', ['argument', 'environment', 'exception', 'prompt'])
def test_secrets_of_the_program_are_in_nothing_we_write(tmp_path: Path, where: str) -> None:
    main = {
        'argument': 'import work\nwork.task(1)',
        'environment': 'import work\nwork.task(1)',
        'exception': f"""
            import work
            try:
                work.outer(int, "{TOKEN}")
            except ValueError:
                work.task(1)
            work.outer(int, "{TOKEN}")
        """,
        'prompt': f"""
            import work
            work.outer(len, "{TOKEN}")
            work.task(["{TOKEN}"])
            work.log({{"{TOKEN}": 1.0, "loss": "{TOKEN}"}}, 1)
        """,
    }[where]
    program = Program(tmp_path, {'work.py': FILES['work.py'], 'main.py': main})
    rules = [
        *RULES[1:],
        function(
            'a', 'work:task', name='task', attributes={'n': ('arg', 'n'), 'size': ('call', 'len', (('arg', 'n'),))}
        ),
    ]
    environ = (
        {'API_KEY': TOKEN, 'OTEL_EXPORTER_OTLP_HEADERS': f'authorization={TOKEN}'} if where == 'environment' else {}
    )
    outcome = program.traced(
        rules, 'main.py', *([f'--api-key={TOKEN}', TOKEN] if where == 'argument' else []), **environ
    )
    assert outcome.journal.names()
    assert TOKEN.encode() not in everything(program.spool)
