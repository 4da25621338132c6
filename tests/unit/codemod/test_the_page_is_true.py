# SPDX-License-Identifier: Apache-2.0
"""The example of docs/codemod.md: what the page shows is what is written, and the commands do what they say."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.codemod.conftest import Desk

PAGE = (Path(__file__).parents[3] / 'docs' / 'codemod.md').read_text()
RULES, BEFORE, LENS, OTEL, NEMO_LENS = (
    text for _, text in re.findall(r'^```(yaml|python)\n(.*?)^```$', PAGE, re.M | re.S)
)


def test_the_example_becomes_what_the_page_shows(desk: Desk) -> None:
    desk.put('', {'my_trainer/__init__.py': '', 'my_trainer/loop.py': BEFORE, 'lens.yaml': RULES})
    assert desk.run('check', '.')[0] == 1
    for style, shown in (('lens', LENS), ('otel', OTEL), ('nemo-lens', NEMO_LENS)):
        options = [] if style == 'lens' else ['--style', style]
        assert desk.run('apply', *options, '--write', 'my_trainer') == (0, 'my_trainer/loop.py: 3 places\n', '')
        text = desk.text('my_trainer/loop.py')
        assert text == shown if style == 'lens' else text.endswith(f'# lens-codemod: end\n\n\n{shown}')
        compile(text, 'loop.py', 'exec')
        assert desk.run('check', 'my_trainer') == (0, '3 places, as the rules say\n', '')
        assert len(desk.run('list', 'my_trainer')[1].splitlines()) == 3
    assert desk.run('revert', 'my_trainer') == (0, 'my_trainer/loop.py: 3 places taken out, as it was\n', '')
    assert desk.text('my_trainer/loop.py') == BEFORE
    assert 'would change' in desk.run('apply', 'my_trainer')[2]
    assert desk.text('my_trainer/loop.py') == BEFORE


def test_the_commands_of_the_page_are_those_there_are(desk: Desk) -> None:
    desk.put('', {'my_trainer/loop.py': BEFORE, 'lens.yaml': RULES})
    commands = re.findall(r'^\| `lens-codemod (.*?) PATHS`', PAGE, re.M)
    assert [command.split()[0] for command in commands] == ['apply', 'apply', 'check', 'list', 'revert']
    for command in commands:
        assert desk.run(*command.split(), '.')[0] == 0, command
