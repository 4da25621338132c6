# SPDX-License-Identifier: Apache-2.0
"""A file that was edited after it was written: what was put in comes out, what was edited stays."""

from __future__ import annotations

import os

import pytest

from tests.unit.codemod.conftest import Desk

RULES = """
- {kind: function, target: "mod:f", group: rollout, name: rl.f}
- {kind: loop, target: "mod:f", match: "for $i in $x:", group: step, name: rl.step}
- {kind: block, target: "mod:f", match: "with a:", group: step, name: rl.a}
"""
SOURCE = 'import os\n\n\ndef f(x):\n    for i in x:\n        g(i)\n        h(i)\n    with a:\n        g(x)\n'


@pytest.fixture
def written(desk: Desk) -> Desk:
    desk.put(RULES, {'mod.py': SOURCE})
    assert desk.run('apply', '--write', '.')[1] == 'mod.py: 3 places\n'
    return desk


def test_edits_around_and_inside_stay(written: Desk) -> None:
    text = written.text('mod.py').replace('            h(i)\n', '            h(i)\n            new(i)\n')
    (written.folder / 'mod.py').write_text(text.replace('import os', 'import os, sys'))
    assert written.run('check', '.')[0] == 0
    code, out, _ = written.run('revert', '.')
    assert (code, out) == (0, 'mod.py: 3 places taken out, edited since; that is kept, and what was put in is out\n')
    expected = SOURCE.replace('        h(i)\n', '        h(i)\n        new(i)\n').replace('import os', 'import os, sys')
    assert written.text('mod.py') == expected


def test_what_the_rules_no_longer_say_goes(written: Desk) -> None:
    written.put(RULES.replace('rl.f', 'rl.other').replace('kind: block', 'kind: block, budget: 2'), {})
    code, out, _ = written.run('check', '.')
    assert code == 1 and out.startswith('mod.py:') and 'source and rules disagree' in out
    written.run('apply', '--write', '.')
    assert "'rl.other'" in written.text('mod.py') and 'budget=2' in written.text('mod.py')
    written.put('- {kind: function, target: "mod:nothing", group: step, name: x}', {})
    written.run('apply', '--write', '.')
    assert written.text('mod.py') == SOURCE


def test_a_use_that_is_not_ours_is_refused_and_nothing_changes(written: Desk) -> None:
    text = written.text('mod.py') + 'print(_lens_block)\n'
    (written.folder / 'mod.py').write_text(text)
    code, _, said = written.run('revert', '.')
    assert code == 1 and '_lens_block is used in a way that lens-codemod does not write' in said
    assert written.text('mod.py') == text


def test_half_a_block_is_refused(written: Desk) -> None:
    (written.folder / 'mod.py').write_text(written.text('mod.py').replace('# lens-codemod: end\n', ''))
    code, _, said = written.run('revert', '.')
    assert code == 1 and 'has lost its last line' in said


def test_the_list_says_where_and_what(written: Desk) -> None:
    shown = [line.partition(': ')[2] for line in written.run('list', '.')[1].splitlines()]
    assert shown == ["function 'rl.f'  (lens)", "block 'rl.step'  (lens)", "block 'rl.a'  (lens)"]


def test_a_diff_changes_nothing_and_a_file_keeps_its_mode(written: Desk) -> None:
    path = written.folder / 'mod.py'
    os.chmod(path, 0o755)
    text = written.text('mod.py')
    assert '-    @_lens' not in written.run('revert', '--diff', '.')[1]
    assert written.text('mod.py') == text
    written.run('revert', '.')
    assert path.stat().st_mode & 0o777 == 0o755


def test_another_style_takes_the_place_of_the_first(written: Desk) -> None:
    written.run('apply', '--style', 'otel', '--write', '.')
    assert 'start_as_current_span' in written.text('mod.py') and 'lens_auto' not in written.text('mod.py')
    assert written.run('check', '.')[0] == 0
    written.run('revert', '.')
    assert written.text('mod.py') == SOURCE
