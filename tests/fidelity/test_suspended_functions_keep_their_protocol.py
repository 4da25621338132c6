# SPDX-License-Identifier: Apache-2.0
"""send, throw, close and their async forms do to a wrapped function what they do to the function."""

from pathlib import Path

from tests.helpers.program import Program, every_python, function, python

SOURCE = (Path(__file__).parent / 'protocols.py').read_text()
NAMES = ['echo', 'stubborn', 'converts', 'delegates', 'empty', 'old', 'awaits', 'awaiting', 'fails']
NAMES += ['a_echo', 'a_stubborn', 'a_converts', 'a_empty']
RULES = [function(f'{number:02}', f'protocols:{name}', name=name) for number, name in enumerate(NAMES)]


@every_python
def test_random_scripts_of_calls_have_the_outcomes_they_have_without_us(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'protocols.py': SOURCE})
    plain = program.plain('protocols.py', python=python(version))
    traced = program.traced(RULES, 'protocols.py', python=python(version))
    pairs = zip(plain.stdout.splitlines(), traced.stdout.splitlines(), strict=True)
    assert [pair for pair in pairs if pair[0] != pair[1]] == []
    complaints = [[line for line in run.stderr.splitlines() if line[:1] not in (' ', 'T')] for run in (plain, traced)]
    assert [line.partition(' at ')[0] for line in complaints[1]] == [
        line.partition(' at ')[0] for line in complaints[0]
    ]
    assert traced.journal.reports('fault') == []
    spans = traced.journal.spans
    assert {span.name for span in spans} >= set(NAMES)
    # The agent's context never stays behind: no span has become the parent of a later script's.
    assert {span.name for span in spans if span.parent != bytes.fromhex('cd' * 8)} <= {'echo', 'old'}
