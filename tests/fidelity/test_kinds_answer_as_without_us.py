# SPDX-License-Identifier: Apache-2.0
"""The table of kinds x checks: what Python's own tools say of a wrapped function is what they say of the function."""

import json
from pathlib import Path

from tests.fidelity.gallery import TARGETS
from tests.helpers.program import Program, every_python, function, python

HERE = Path(__file__).parent
RULES = [
    function(f'{number:02}', f'gallery:{name}', name=kind) for number, (kind, (_, name)) in enumerate(TARGETS.items())
]
RULES.append(function('base', 'gallery:Base.overridden', name='override that calls super'))


def program(folder: Path) -> Program:
    files = {name: (HERE / name).read_text() for name in ('gallery.py', 'answers.py')}
    return Program(folder, files)


@every_python
def test_every_kind_answers_and_behaves_as_without_us(tmp_path: Path, version: str) -> None:
    made = program(tmp_path)
    plain = made.plain('answers.py', python=python(version))
    traced = made.traced(RULES, 'answers.py', python=python(version))
    assert traced.stderr == plain.stderr == ''
    expected, found = json.loads(plain.stdout), json.loads(traced.stdout)
    assert found['behaviour'] == expected['behaviour']
    differing = {key for key, answer in expected['answers'].items() if found['answers'][key] != answer}
    print('\n' + table(version, expected['answers'], differing))  # `pytest -s` shows it
    assert {key: (found['answers'][key], expected['answers'][key]) for key in differing} == {}
    missing = traced.journal.reports('missing') + traced.journal.reports('fault')
    assert missing == []
    assert set(traced.journal.names()) == set(TARGETS)


def table(version: str, answers: dict[str, object], differing: set[str]) -> str:
    kinds = list(dict.fromkeys(key.partition('|')[0] for key in answers))
    checks = list(dict.fromkeys(key.partition('|')[2] for key in answers))
    lines = [f'Python {version}: same answer as without us (= same, x differs, - the same error)']
    lines += [f'  {letter} {check}' for letter, check in zip('abcdefghijklmnopqrstuvwxyz', checks, strict=False)]
    lines.append(f'{"":34}' + ' '.join('abcdefghijklmnopqrstuvwxyz'[: len(checks)]))
    for kind in kinds:
        marks = []
        for check in checks:
            answer = answers[f'{kind}|{check}']
            error = isinstance(answer, list) and answer and str(answer[0]).endswith('Error')
            marks.append('x' if f'{kind}|{check}' in differing else '-' if error else '=')
        lines.append(f'{kind:34}' + ' '.join(marks))
    return '\n'.join(lines)


@every_python
def test_an_override_and_the_method_it_calls_are_one_span(tmp_path: Path, version: str) -> None:
    made = program(tmp_path).write({'main.py': 'import gallery as g; g.Child().overridden(); g.Base().overridden()'})
    traced = made.traced(RULES, python=python(version))
    assert traced.journal.names() == ['override that calls super'] * 2


@every_python
def test_a_name_on_the_subclass_records_the_subclass_only(tmp_path: Path, version: str) -> None:
    made = program(tmp_path).write({'main.py': 'import gallery as g; g.Child().inherited(1); g.Base().inherited(1)'})
    traced = made.traced(RULES, python=python(version))
    assert traced.journal.names() == ['inherited, named on the subclass']
