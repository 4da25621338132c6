# SPDX-License-Identifier: Apache-2.0
"""Source in the words of a library whose spans the program itself sends, and rules besides: each has its own, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from lens_auto.codemod.cli import main
from tests.helpers.run import Place
from tests.unit.codemod.test_every_style_runs_with_and_without_its_library import (
    MAIN,
    NEMO,
    NEMO_LENS,
    OTEL,
    RULES,
    SOURCE,
)

FILES = {'mod.py': SOURCE, 'nemo/lens.py': NEMO, 'main.py': MAIN, 'lens.yaml': f'framework: mine\nrules:\n{RULES}'}
COMMAND = ('--span-groups', 'all', 'python', 'main.py')
TREE = """\
lens.run
  rl.job
    ~ rl.step i=0
      rl.generation
        rl.score
      rl.fit
    ~ rl.step i=1
      rl.generation
        rl.score
      rl.fit
    rl.wait"""


@pytest.mark.parametrize('style, theirs', [('otel', OTEL), ('nemo-lens', NEMO_LENS)])
def test_the_rules_spans_go_to_the_run_and_the_sources_to_the_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: str, theirs: str
) -> None:
    place = Place(tmp_path).write(FILES)
    ruled = place.record(*COMMAND).tree('i')
    assert ruled == TREE
    monkeypatch.chdir(place.cwd)
    assert main(['apply', '--style', style, '--write', 'mod.py']) == 0

    done = place.lens('--no-summary', *COMMAND)
    assert done.stdout == theirs
    assert place.runs[-1].tree('i') == TREE

    (place.cwd / 'lens.yaml').unlink()
    done = place.lens('--no-summary', *COMMAND)
    assert done.stdout == theirs
    assert place.runs[-1].tree('i') == 'lens.run'
