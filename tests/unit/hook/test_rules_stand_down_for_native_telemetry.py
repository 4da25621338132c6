# SPDX-License-Identifier: Apache-2.0
"""`native`: where a framework's own telemetry will really record, rules marked so stand down, and only those."""

from pathlib import Path

import pytest

from tests.helpers.program import Program, function, label, logger, metric, plan_of, resource, timer

FRAMEWORK = """
    import contextlib
    class Timer:
        @contextlib.contextmanager
        def time(self, label): yield
    class Config:
        def __init__(self, enabled): self.telemetry = {'enabled': enabled}
    def log(metrics): pass
    def step():
        log({'loss': 1, 'ours': 2})
        with Timer().time('both'):
            with Timer().time('ours'): ours()
    def ours(): pass
"""
MAIN = 'from fw.core import *\n{before}\nstep()\n'
NATIVE = {'module': 'fw.telemetry', 'library': ('lib.otel',), 'enabled': ('env', 'FW_OTEL')}
RULES = [
    function('step', 'fw.core:step', native=True),
    function('ours', 'fw.core:ours'),
    timer('t', ['fw.core:Timer.time'], (), {'both': label('both', native=True), 'ours': label('timed')}),
    logger('l', 'fw.core:log', {'loss': metric('loss')}, native=True),
    logger('m', 'fw.core:log', {'ours': metric('ours')}),
    resource('c', 'fw.core:Config.__init__', ('.', ('self',), 'telemetry')),
]
ALL = 'step\n  both\n    timed\n      ours'
OURS = 'timed\n  ours'
THERE = {'fw/telemetry.py': 'raise SystemExit("imported")', 'lib/otel/__init__.py': 'raise SystemExit("imported")'}
CASES = {
    'it is there and on': (THERE, '1', '', OURS),
    'its library is a namespace in a namespace': (
        {'fw/telemetry.py': '', 'lib/otel/deep/trace.py': '', 'lib/otel/x.txt': ''},
        '1',
        '',
        OURS,
    ),
    'it is off': (THERE, '0', '', ALL),
    'nothing says that it is on': (THERE, '', '', ALL),
    'its module is not there': ({'lib/otel/__init__.py': ''}, '1', '', ALL),
    'its library is not there': ({'fw/telemetry.py': '', 'lib/other.py': ''}, '1', '', ALL),
    'nothing of its library is there': ({'fw/telemetry.py': ''}, '1', '', ALL),
    'the config of the run says that it is on': (THERE, '', 'Config(True)', OURS),
    'the variable wins over the config': (THERE, '0', 'Config(True)', ALL),
    'and the other way round': (THERE, '1', 'Config(False)', OURS),
    'the config of the run says nothing of it': (THERE, '', 'Config(None)', ALL),
}


@pytest.mark.parametrize('case', CASES)
def test_native(tmp_path: Path, case: str) -> None:
    files, variable, before, expected = CASES[case]
    main = MAIN.format(before=before)
    program = Program(tmp_path, {'fw/__init__.py': '', 'fw/core.py': FRAMEWORK, 'main.py': main, **files})
    env = {'LENS_PROVISIONAL': 'span_groups'} | ({'FW_OTEL': variable} if variable else {})
    traced = program.traced(plan_of(RULES, native=NATIVE), **env)
    assert traced.code == 0, traced.stderr
    assert traced.journal.tree() == expected
    assert {name for name, _, _ in traced.journal.points} == ({'ours'} if expected == OURS else {'loss', 'ours'})
    said = {report['reason'] for report in traced.journal.reports('missing')}
    assert said == ({'fw.telemetry records it by itself'} if expected == OURS else set())
    assert traced.journal.reports('fault') == []


def test_an_expression_that_fails_says_no(tmp_path: Path) -> None:
    native = {**NATIVE, 'enabled': ('call', 'int', (('env', 'FW_OTEL'),))}
    main = MAIN.format(before='')
    program = Program(tmp_path, {'fw/__init__.py': '', 'fw/core.py': FRAMEWORK, 'main.py': main, **THERE})
    traced = program.traced(plan_of(RULES, native=native), FW_OTEL='maybe')
    assert (traced.code, traced.journal.tree()) == (0, ALL), traced.stderr
