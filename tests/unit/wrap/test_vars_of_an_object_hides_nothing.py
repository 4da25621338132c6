# SPDX-License-Identifier: Apache-2.0
"""A function that may have kept the dict of its own locals is not looked into; one that calls `vars(x)` is."""

from pathlib import Path

from tests.helpers.program import Program, every_python, function, python

MODULE = """
def step(): pass
def apply(f, *a): return f(*a)
class State: pass
def of_object(step_number, state=State()):
    step(); return vars(state)
def of_argument(step_number):
    step(); return [vars(State) for _ in 'a'], list(map(vars, ()))
def alone(step_number):
    kept = vars(); step(); return kept
def by_name(step_number):
    mine = vars; kept = mine(); step(); return kept
def passed(step_number):
    kept = apply(vars, State); step(); return kept
def of_locals(step_number):
    kept = locals(); step(); return kept
"""


@every_python
def test_which_are_read(tmp_path: Path, version: str) -> None:
    names = ['of_object', 'of_argument', 'passed', 'alone', 'by_name', 'of_locals']
    main = 'import m\n' + ''.join(f'm.{name}(7)\n' for name in names)
    rule = function('s', 'm:step', name='step', attributes={'n': ('frame', 'step_number')})
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': main}).traced([rule], python=python(version))
    assert traced.code == 0, traced.stderr
    read = dict(zip(names, [span.attributes.get('n') for span in traced.journal.spans], strict=True))
    hidden = 7 if version == '3.13' else None
    assert read == {
        'of_object': 7,
        'of_argument': 7,
        'passed': 7,
        'alone': hidden,
        'by_name': hidden,
        'of_locals': hidden,
    }
